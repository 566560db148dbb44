import type { HostKeys } from '../../host-keys.ts';
import { checkHostKey, type HostKey, knownHostsNames } from '../../known-hosts.ts';
import type { SshConfig, SshOverrides } from '../../resolve-target.ts';
import type { SshTarget } from '../../target.ts';
import { type JumpHosts, jumpHosts } from '../client/jump-hosts.ts';
import { type ConnectOptions, openConnection, type SshConnection } from './connection.ts';
import { type Identities, identities } from './identities.ts';

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
  const jumps = jumpHosts<SshConnection>();
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
  {
    jumps,
    options,
    signal,
  }: { readonly jumps: JumpHosts<SshConnection>; readonly options: ConnectOptions; readonly signal: AbortSignal | undefined },
): Promise<HostKey> {
  const verifyHostKey = (key: HostKey): never => {
    throw new Observed(key);
  };
  const observed = { hostKeys: options.hostKeys, identities: NO_IDENTITIES, verifyHostKey };
  try {
    await jumps.connect(
      target,
      (hop, via, connecting) =>
        openConnection(hop, hop === target ? observed : { ...options, password: undefined }, { via, signal: connecting }),
      signal,
    );
    throw new Error('connected without a check of the host key');
  } catch (error) {
    if (error instanceof Observed) return error.key;
    throw error;
  }
}
