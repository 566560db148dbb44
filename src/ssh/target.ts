import type { Problem } from '../base/errors.ts';
import type { Secret } from '../base/text/secret.ts';
import type { KnownHostsEntry } from './known-hosts.ts';
import type { SshPolicy } from './policy.ts';

/**
 * `accept-new`: an unknown key is accepted and saved. A changed key is never accepted, regardless of the
 * configuration.
 */
export type StrictHostKeyChecking = 'yes' | 'ask' | 'accept-new';

/** The resolved connection parameters of one host, with absolute paths. */
export interface SshTarget {
  /** Inventory name, first word of every message about this host. */
  readonly name: string;
  /** The name compared with `Host` of ssh_config, if different from `hostName`. */
  readonly alias?: string;
  readonly hostName: string;
  readonly user: string;
  readonly port: number;
  /** Private keys to try, in order; also public keys whose private key is in the agent. */
  readonly identityFiles: readonly string[];
  /** Use only those agent keys that match identity files. */
  readonly identitiesOnly: boolean;
  /** Socket of the agent, or null. */
  readonly identityAgent: string | null;
  /** Jump hosts, the nearest first. */
  readonly proxyJump: readonly SshTarget[];
  /** New keys are saved to the first file. */
  readonly userKnownHostsFiles: readonly string[];
  readonly globalKnownHostsFiles: readonly string[];
  /** Files with keys that are revoked for all hosts (RevokedHostKeys); absent: none. */
  readonly revokedHostKeysFiles?: readonly string[];
  readonly strictHostKeyChecking: StrictHostKeyChecking;
  /**
   * Keys configured for this host outside of these files, as in a fleet file. If present, only these keys are
   * accepted.
   */
  readonly pinnedHostKeys?: readonly KnownHostsEntry[];
  /** Replaces host and port in known_hosts. */
  readonly hostKeyAlias: string | null;
  readonly hashKnownHosts: boolean;
  /** Cryptography and login settings of ssh_config; absent: defaults. */
  readonly policy?: SshPolicy;
  /** Timeout of connection, key exchange and authentication together. */
  readonly connectTimeoutMs: number;
  readonly addressFamily: 'any' | 'inet' | 'inet6';
  /** Local address to connect from. */
  readonly bindAddress: string | null;
  /** Unsupported settings of ssh_config that affect how a host is reached. */
  readonly warnings: readonly Problem[];
}

/** `host:port` for messages, with brackets around an IPv6 address. */
export function addressOf({ hostName, port }: SshTarget): string {
  return hostName.includes(':') ? `[${hostName}]:${port}` : `${hostName}:${port}`;
}

/**
 * Identifies a chain of jump hosts. Timeouts and warnings are ignored, because they do not change the
 * connection.
 */
export function routeKey(hops: readonly SshTarget[]): string {
  return JSON.stringify(hops.map(({ connectTimeoutMs: _, warnings: __, ...route }) => route));
}

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
