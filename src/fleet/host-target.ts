import type { SshOptions } from '../ssh/options.ts';
import type { ResolvedSsh } from './model.ts';

/** Which host, and how to get there. Absent `address` is this machine. */
export interface HostTarget {
  /** `user@address[:port]`, `ssh://...` or an alias of the SSH configuration. */
  readonly address?: string | undefined;
  readonly rootDir?: string | undefined;
  readonly ssh?: SshOptions | undefined;
  /** In place of `address`: a host of a fleet. */
  readonly member?: FleetHostTarget | undefined;
  /** Maximum time for one command, whatever the fleet file says. Default: a minute; changes that take longer by nature have more. */
  readonly commandTimeoutMs?: number | undefined;
}

/** A host of a fleet as its file says it is reached. */
export interface FleetHostTarget {
  readonly name: string;
  readonly ssh: ResolvedSsh;
  /** Of the fleet file: relative key files count from there. */
  readonly directory: string;
}

/** Whether nothing but this machine itself is meant. */
export function isThisMachine(target: HostTarget | undefined): boolean {
  return target?.address === undefined && target?.member === undefined && target?.rootDir === undefined;
}
