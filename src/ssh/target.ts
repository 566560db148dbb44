import type { Problem } from '../base/errors.ts';
import type { KnownHostsEntry } from './known-hosts.ts';
import type { SshPolicy } from './policy.ts';

/** `accept-new`: an unknown key is accepted and remembered. A changed key is never accepted, whatever is configured. */
export type StrictHostKeyChecking = 'yes' | 'ask' | 'accept-new';

/** How to reach one host over SSH: everything decided, every path absolute. */
export interface SshTarget {
  /** Inventory name, first word of every message about this host. */
  readonly name: string;
  /** What `Host` of ssh_config is compared with, where that is not `hostName`. */
  readonly alias?: string;
  /** Name or address to connect to. */
  readonly hostName: string;
  readonly user: string;
  readonly port: number;
  /** Private keys to try, in order; also public keys whose private half the agent has. */
  readonly identityFiles: readonly string[];
  /** Of the agent's keys, only those that are among the identity files. */
  readonly identitiesOnly: boolean;
  /** Socket of the agent, or null. */
  readonly identityAgent: string | null;
  /** Hosts to go through, the nearest first. */
  readonly proxyJump: readonly SshTarget[];
  /** The first is the one that new keys are written to. */
  readonly userKnownHostsFiles: readonly string[];
  readonly globalKnownHostsFiles: readonly string[];
  /** Files with keys that no host may have (RevokedHostKeys); absent: there are none. */
  readonly revokedHostKeysFiles?: readonly string[];
  readonly strictHostKeyChecking: StrictHostKeyChecking;
  /** Keys given for this host elsewhere than in those files, as in a fleet file. When there are any, no other key is known. */
  readonly pinnedHostKeys?: readonly KnownHostsEntry[];
  /** Stands for host and port in known_hosts. */
  readonly hostKeyAlias: string | null;
  readonly hashKnownHosts: boolean;
  /** What ssh_config demands of cryptography and login; absent: nothing. */
  readonly policy?: SshPolicy;
  /** For all of connection, key exchange and authentication. */
  readonly connectTimeoutMs: number;
  readonly addressFamily: 'any' | 'inet' | 'inet6';
  /** Local address to connect from. */
  readonly bindAddress: string | null;
  /** Settings of ssh_config that change how a host is reached and that are not supported. */
  readonly warnings: readonly Problem[];
}

/** The same for the same way through the same hosts: how long one may take, and what there is to say about it, does not count. */
export function routeKey(hops: readonly SshTarget[]): string {
  return JSON.stringify(hops.map(({ connectTimeoutMs: _, warnings: __, ...route }) => route));
}
