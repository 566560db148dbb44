import type { HostKey, KnownHosts } from './known-hosts.ts';
import type { SshTarget } from './target.ts';

/** Where the host keys we know are kept. */
export interface HostKeyStore {
  /** What the files of this target say, the user's first. */
  knownHosts(target: SshTarget): Promise<KnownHosts>;
  /**
   * Makes a key known under the target's name.
   * @returns the file it was written to, or null when no file is configured
   */
  save(target: SshTarget, key: HostKey): Promise<string | null>;
}
