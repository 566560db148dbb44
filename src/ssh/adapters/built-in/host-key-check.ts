import type { Problem } from '../../../base/errors.ts';
import { systemErrorText } from '../../../base/system-error.ts';
import { hostKeyMismatch, hostKeyRevoked, hostKeyTooShort, hostKeyUnknown } from '../../../host/host-problems.ts';
import type { HostKeyStore } from '../../host-keys.ts';
import { rsaBits } from '../../key-format.ts';
import { checkHostKey, describeHostKey, type HostKey, type KnownHosts, knownHostsNames } from '../../known-hosts.ts';
import { MINIMAL_RSA_BITS } from '../../policy.ts';
import type { SshTarget } from '../../target.ts';

export interface HostKeyPolicy {
  readonly hostKeys: HostKeyStore;
  /** Receives warnings. */
  readonly notice?: ((problem: Problem) => void) | undefined;
}

/**
 * Verifies the host key synchronously when the host presents it. `new`: an unknown key is accepted, and must
 * be saved once the host has proved that it owns the key.
 * @throws AppError HOST_KEY_MISMATCH and HOST_KEY_REVOKED (regardless of the configuration), HOST_KEY_WEAK,
 *   HOST_KEY_UNKNOWN
 */
export type VerifyHostKey = (key: HostKey) => 'known' | 'new';

/** @param known entries of the target's known_hosts files, loaded before connecting */
export function hostKeyVerifier(target: SshTarget, known: KnownHosts): VerifyHostKey {
  const host = target.name;
  const names = knownHostsNames(target);
  const knownAs = names.name;
  const minimalBits = target.policy?.minimalRsaBits ?? MINIMAL_RSA_BITS;
  return (key) => {
    const bits = rsaBits(Buffer.from(key.blob, 'base64'));
    if (bits !== null && bits < minimalBits) throw hostKeyTooShort({ host, knownAs, shown: describeHostKey(key), bits, minimalBits });
    const verdict = checkHostKey(known, names, key);
    if (verdict.kind === 'known') return 'known';
    const shown = describeHostKey(key);
    switch (verdict.kind) {
      case 'mismatch':
        throw hostKeyMismatch({ host, knownAs, shown, known: describeHostKey(verdict.entry), entry: verdict.entry });
      case 'revoked':
        throw hostKeyRevoked({ host, knownAs, shown, entry: verdict.entry });
      case 'unknown':
        if (target.strictHostKeyChecking === 'accept-new') return 'new';
        throw hostKeyUnknown({ host, knownAs, shown, files: target.userKnownHostsFiles, hint: knownHostsHint(target) });
    }
  };
}

function knownHostsHint(target: SshTarget): string {
  const { hostName, port, user } = target;
  const flags = port === 22 ? '' : ` -p ${port}`;
  const [file = '~/.ssh/known_hosts'] = target.userKnownHostsFiles;
  const scan = target.proxyJump.length > 0 || target.hostKeyAlias !== null ? '' : `; run ssh-keyscan${flags} ${hostName} >> ${file}`;
  return `Compare the fingerprint with that of the key on the host (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub). If both are equal, accept the key in one of these ways: connect once with ssh${flags} ${user}@${hostName}; add --ssh-accept-new${scan}`;
}

/** Adds an accepted key to known_hosts. Like ssh, continues when the file cannot be written. */
export async function saveHostKey(target: SshTarget, key: HostKey, { hostKeys, notice }: HostKeyPolicy): Promise<void> {
  const shown = describeHostKey(key);
  try {
    const file = await hostKeys.save(target, key);
    const where = file === null ? 'not saved: no known_hosts file is configured' : `saved in ${file}`;
    notice?.({ code: 'HOST_KEY_ADDED', severity: 'warning', host: target.name, message: `accepted the new ${shown}; ${where}` });
  } catch (error) {
    const why = systemErrorText(error);
    const message = `accepted the new ${shown}, but could not save the key: ${why}`;
    notice?.({ code: 'HOST_KEY_NOT_ADDED', severity: 'warning', host: target.name, message });
  }
}
