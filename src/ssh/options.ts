import type { Secret } from '../base/text/secret.ts';

/** How hosts are reached over SSH, for all hosts of a command. */
export interface SshOptions {
  readonly configFile?: string;
  readonly identityFiles?: readonly string[];
  readonly knownHostsFile?: string;
  readonly acceptNewHostKeys?: boolean;
  readonly connectTimeoutMs?: number;
  readonly become?: 'auto' | 'sudo' | 'none';
  /** Who speaks SSH where the fleet file does not say: the built-in client (default), or the system's `ssh`. */
  readonly transport?: 'builtin' | 'openssh';
  readonly password?: Secret;
  readonly sudoPassword?: Secret;
  readonly passphrase?: Secret;
}
