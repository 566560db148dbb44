import type { HostKey, HostKeyVerdict } from './known-hosts.ts';
import type { SshConfig, SshOverrides } from './resolve-target.ts';
import type { SshTarget } from './target.ts';

/** The key a host shows, and what is known of it. */
export interface ShownHostKey {
  readonly key: HostKey;
  readonly verdict: HostKeyVerdict;
}

/** Looks at the keys of hosts and makes them known. */
export interface HostKeys {
  /** What targets are worked out with. */
  readonly config: SshConfig;
  /** What the command line says of all hosts. */
  readonly overrides: SshOverrides;
  /**
   * The key a host shows. Nobody logs in there, only on the hosts on the way.
   * @throws AppError HOST_UNREACHABLE, HOST_TIMEOUT; of a host on the way also HOST_KEY_*, HOST_AUTH_FAILED
   */
  inspect(target: SshTarget, signal?: AbortSignal): Promise<ShownHostKey>;
  /**
   * Makes a key known under the target's name.
   * @returns the file it was written to, or null when no file is configured
   */
  save(target: SshTarget, key: HostKey): Promise<string | null>;
}
