import type { HostKey, HostKeyVerdict, KnownHosts } from './known-hosts.ts';
import type { SshConfig, SshOverrides } from './resolve-target.ts';
import type { SshTarget } from './target.ts';

/** The key that a host presents, and the result of its check against known_hosts. */
export interface PresentedHostKey {
  readonly key: HostKey;
  readonly verdict: HostKeyVerdict;
}

export interface HostKeys extends Pick<HostKeyStore, 'save'> {
  readonly config: SshConfig;
  /** The command line's settings for all hosts. */
  readonly overrides: SshOverrides;
  /**
   * Reads the key that a host presents. Logs in to jump hosts only, not to the host itself.
   * @throws AppError HOST_UNREACHABLE, HOST_TIMEOUT; for jump hosts also HOST_KEY_*, HOST_AUTH_FAILED
   */
  inspect(target: SshTarget, signal?: AbortSignal): Promise<PresentedHostKey>;
}

export interface HostKeyStore {
  /** The known keys in the target's files, the user's first. */
  knownHosts(target: SshTarget): Promise<KnownHosts>;
  /**
   * Saves a key under the target's name.
   * @returns the file it was written to, or null when no file is configured
   */
  save(target: SshTarget, key: HostKey): Promise<string | null>;
}
