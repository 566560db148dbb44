import type { SshOptions } from '../ssh/target.ts';
import type { ResolvedSsh } from './file/model.ts';

/** A host and its connection settings. Absent `address`: the local host. */
export interface HostTarget {
  /** `user@address[:port]`, `ssh://...` or an alias of the SSH configuration. */
  readonly address?: string | undefined;
  readonly rootDir?: string | undefined;
  readonly ssh?: SshOptions | undefined;
  /** In place of `address`: a host of a fleet. */
  readonly member?: FleetHostTarget | undefined;
  /** Maximum time for one command; overrides the fleet file. Default: one minute; slow changes have more. */
  readonly commandTimeoutMs?: number | undefined;
}

/** A host of a fleet with the connection settings of its file. */
export interface FleetHostTarget {
  readonly name: string;
  readonly ssh: ResolvedSsh;
  /** Directory of the fleet file; relative key files are resolved against it. */
  readonly directory: string;
}

export function targetName({ member, address, rootDir }: HostTarget): string {
  return member?.name ?? address ?? rootDir ?? 'localhost';
}

/** Whether the target is the local host alone. */
export function isLocalHost(target: HostTarget | undefined): boolean {
  return target?.address === undefined && target?.member === undefined && target?.rootDir === undefined;
}
