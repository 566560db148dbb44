import type { Problem } from '../../core/errors.ts';
import { hostKeyMismatch, hostKeyRevoked, hostKeyUnknown } from '../../core/problems/host.ts';
import type { HostKeyStore } from '../../core/ssh/host-key-store.ts';
import {
  type HostKey,
  hostKeyFingerprint,
  hostKeyTypeName,
  judgeHostKey,
  type KnownHosts,
  knownHostsNames,
} from '../../core/ssh/known-hosts.ts';
import type { SshTarget } from '../../core/ssh/target.ts';

/** A key nobody knows, for a person to compare. */
export interface UnknownHostKey {
  readonly host: string;
  /** As known_hosts names it: `10.0.0.7` or `[10.0.0.7]:2222`. */
  readonly knownAs: string;
  /** `ED25519`, `ECDSA`, `RSA`. */
  readonly type: string;
  /** `SHA256:…` */
  readonly fingerprint: string;
}

/** Asks a person whether this is the host's key. */
export type ConfirmHostKey = (key: UnknownHostKey) => Promise<boolean>;

/** Hears what is worth saying and no reason to stop. */
export type Notice = (problem: Problem) => void;

export interface HostKeyPolicy {
  readonly hostKeys: HostKeyStore;
  readonly confirmHostKey?: ConfirmHostKey | undefined;
  readonly notice?: Notice | undefined;
}

/**
 * Decides about the key a host shows: resolves when it is to be trusted.
 * @throws AppError HOST_KEY_MISMATCH (changed or revoked, whatever is configured), HOST_KEY_UNKNOWN
 */
export function hostKeyCheck(target: SshTarget, known: KnownHosts, policy: HostKeyPolicy): (key: HostKey) => Promise<void> {
  const host = target.name;
  const names = knownHostsNames(target);
  const knownAs = names.name;
  return async (key) => {
    const verdict = judgeHostKey(known, names, key);
    // Most keys are known: nobody wants to hear of them.
    if (verdict.kind === 'known') return;
    const shown = describeKey(key);
    switch (verdict.kind) {
      case 'mismatch':
        throw hostKeyMismatch({ host, knownAs, shown, known: describeKey(verdict.entry), entry: verdict.entry });
      case 'revoked':
        throw hostKeyRevoked({ host, knownAs, shown, entry: verdict.entry });
      case 'unknown': {
        const unknownKey = { host, knownAs, type: hostKeyTypeName(key.type), fingerprint: hostKeyFingerprint(key) };
        if (!(await mayAccept(target, unknownKey, policy)))
          throw hostKeyUnknown({ host, knownAs, shown, files: target.userKnownHostsFiles, mend: howToMakeKnown(target) });
        await remember(target, key, policy);
      }
    }
  };
}

function describeKey(key: HostKey): string {
  return `${hostKeyTypeName(key.type)} key ${hostKeyFingerprint(key)}`;
}

async function mayAccept(target: SshTarget, key: UnknownHostKey, { confirmHostKey }: HostKeyPolicy): Promise<boolean> {
  switch (target.strictHostKeyChecking) {
    case 'accept-new':
      return true;
    case 'ask':
      return (await confirmHostKey?.(key)) ?? false;
    case 'yes':
      return false;
  }
}

function howToMakeKnown(target: SshTarget): string {
  const { hostName, port, user } = target;
  const flags = port === 22 ? '' : ` -p ${port}`;
  const [file = '~/.ssh/known_hosts'] = target.userKnownHostsFiles;
  const scan =
    target.proxyJump.length > 0 || target.hostKeyAlias !== null ? '' : `, add it with ssh-keyscan${flags} ${hostName} >> ${file}`;
  return `Compare the fingerprint with the host's own${scan}, connect once with ssh${flags} ${user}@${hostName}, or accept new keys with --ssh-accept-new`;
}

/** Like ssh, goes on when the file cannot be written: the key is good, it will be asked for again. */
async function remember(target: SshTarget, key: HostKey, { hostKeys, notice }: HostKeyPolicy): Promise<void> {
  const shown = describeKey(key);
  try {
    const file = await hostKeys.remember(target, key);
    const where = file === null ? 'no file to remember it in is configured' : `now in ${file}`;
    notice?.({ code: 'HOST_KEY_ADDED', severity: 'warning', host: target.name, message: `accepted the new ${shown}; ${where}` });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const message = `accepted the new ${shown}, but could not remember it: ${why}`;
    notice?.({ code: 'HOST_KEY_NOT_ADDED', severity: 'warning', host: target.name, message });
  }
}
