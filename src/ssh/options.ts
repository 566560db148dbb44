import type { Secret } from '../base/text/secret.ts';

/** How hosts are reached over SSH, for all hosts of a command. */
export interface SshOptions {
  readonly configFile?: string | undefined;
  readonly identityFiles?: readonly string[] | undefined;
  readonly knownHostsFile?: string | undefined;
  readonly acceptNewHostKeys?: boolean | undefined;
  readonly connectTimeoutMs?: number | undefined;
  readonly become?: 'auto' | 'sudo' | 'none' | undefined;
  /** SSH client for hosts without a setting in the fleet file: the built-in client (default), or the system's `ssh`. */
  readonly transport?: 'builtin' | 'openssh' | undefined;
  readonly password?: Secret | undefined;
  readonly sudoPassword?: Secret | undefined;
  readonly passphrase?: Secret | undefined;
}
