import type { HostKey, KnownHosts } from './known-hosts.ts';
import type { SshTarget } from './target.ts';

/** The store of known host keys. */
export interface HostKeyStore {
  /** The known keys in the target's files, the user's first. */
  knownHosts(target: SshTarget): Promise<KnownHosts>;
  /**
   * Saves a key under the target's name.
   * @returns the file it was written to, or null when no file is configured
   */
  save(target: SshTarget, key: HostKey): Promise<string | null>;
}
