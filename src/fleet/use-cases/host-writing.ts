import type { RunAttribution } from '../history/host-history.ts';
import type { HostTarget } from '../host-target.ts';
import type { LockOwnerPorts } from '../ports.ts';
import type { MemberWriteOptions } from '../run/workflow-member.ts';

const DEFAULT_CONFIRM_MS = 300_000;

export interface WritingRequest {
  readonly breakLock: boolean;
  /**
   * Time limit for confirming a change. Undefined: the default for hosts over SSH; null: changes need no
   * confirmation.
   */
  readonly confirmMs: number | null | undefined;
  /** Recorded on each changed host; undefined: changes are not recorded. */
  readonly note?: RunAttribution | undefined;
}

/** Write options of each host; null for a root directory instead of a host, and for a command that takes no lock (`writing` undefined). */
export function hostWriteOptions(
  { self, newId }: LockOwnerPorts,
  writing: WritingRequest | undefined,
): (target: HostTarget) => Promise<MemberWriteOptions | null> {
  let id: Promise<string> | undefined;
  return async ({ address, member, rootDir }) => {
    if (rootDir !== undefined || writing === undefined) return null;
    const { breakLock, confirmMs } = writing;
    id ??= newId();
    const note = writing.note && { ...writing.note, run: writing.note.run ?? (await id) };
    return {
      owner: { id: await newId(), name: self.name, processId: self.id, machine: self.machine },
      breakLock,
      note,
      isGone: ({ machine, processId }) => machine === self.machine && processId !== self.id && !self.isRunning(processId),
      confirmMs: confirmMs === undefined ? (address === undefined && member === undefined ? null : DEFAULT_CONFIRM_MS) : confirmMs,
    };
  };
}
