import type { Problem } from '../base/errors.ts';
import type { Secret } from '../base/text/secret.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
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
  /** The ssh_config files that were read, without included ones; absent: unknown. */
  readonly configFiles?: readonly string[];
  /** The ssh_config from which the host was imported; absent: it was not. */
  readonly importedFrom?: string;
  /** Unsupported settings of ssh_config that affect how a host is reached. */
  readonly warnings: readonly Problem[];
}

/** `host:port` for messages, with brackets around an IPv6 address. */
export function addressOf({ hostName, port }: SshTarget): string {
  return hostName.includes(':') ? `[${hostName}]:${port}` : `${hostName}:${port}`;
}

/** Hint for a host name without an address: where HostName was looked up. */
export function unknownNameHint({ configFiles = [], importedFrom }: SshTarget): string {
  const read = configFiles.length === 0 ? 'no ssh_config was read' : `HostName was looked up in ${configFiles.join(' and ')}`;
  if (importedFrom !== undefined && !configFiles.includes(importedFrom))
    return `The host was imported from ${importedFrom}, but ${read}. Pass --ssh-config ${quoteShell(importedFrom)}, or set sshConfig in the fleet file`;
  return `Check the spelling of the name and the DNS settings; ${read} (--ssh-config FILE reads another file)`;
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
