import { untilAborted } from '../../../base/abort.ts';
import type { HostKeys } from '../../host-keys.ts';
import { checkHostKey, type HostKey, knownHostsNames } from '../../known-hosts.ts';
import type { SshConfig, SshOverrides } from '../../resolve-target.ts';
import type { SshTarget } from '../../target.ts';
import { type ConnectOptions, openConnection } from './connection.ts';
import { type Identities, identities } from './identities.ts';
import { type JumpHosts, jumpHosts } from './jump-hosts.ts';

/** Stops the handshake once the key was received. */
class Observed extends Error {
  readonly key: HostKey;
  constructor(key: HostKey) {
    super('host key received');
    this.key = key;
  }
}

const NO_IDENTITIES: Identities = { candidates: async () => ({ candidates: [], skipped: [] }) };

/**
 * Inspects the keys of hosts: connects up to the host key only, without login; logs in to jump hosts. Of the
 * key types of a host, a known one is requested first.
 */
export function sshHostKeys(
  config: SshConfig,
  overrides: SshOverrides,
  options: Omit<ConnectOptions, 'identities' | 'verifyHostKey'>,
): HostKeys {
  const connectOptions: ConnectOptions = { ...options, identities: identities() };
  const jumps = jumpHosts();
  return {
    config,
    overrides,
    inspect: async (target, signal) => {
      const known = await options.hostKeys.knownHosts(target);
      const key = await shownKey(target, { jumps, options: connectOptions, signal });
      return { key, verdict: checkHostKey(known, knownHostsNames(target), key) };
    },
    save: (target, key) => options.hostKeys.save(target, key),
  };
}

async function shownKey(
  target: SshTarget,
  { jumps, options, signal }: { readonly jumps: JumpHosts; readonly options: ConnectOptions; readonly signal: AbortSignal | undefined },
): Promise<HostKey> {
  const lease = target.proxyJump.length === 0 ? null : jumps.lease(target.proxyJump, options, target.name);
  const verifyHostKey = (key: HostKey): never => {
    throw new Observed(key);
  };
  try {
    const via = lease === null ? null : await untilAborted(lease.connection, signal);
    await openConnection(target, { hostKeys: options.hostKeys, identities: NO_IDENTITIES, verifyHostKey }, { via, signal });
    throw new Error('connected without a check of the host key');
  } catch (error) {
    if (error instanceof Observed) return error.key;
    throw error;
  } finally {
    lease?.release();
  }
}
