import type { HostTarget } from '../host-target.ts';
import type { WritingPorts } from '../ports.ts';
import type { MemberWriting } from '../workflow-member.ts';

const DEFAULT_CONFIRM_MS = 300_000;

/** How hosts are changed. */
export interface WritingRequest {
  readonly breakLock: boolean;
  /** The time in which a change must be confirmed. Undefined: the default for hosts over SSH; null: changes need no confirmation. */
  readonly confirmMs: number | null | undefined;
}

/** How each host is written to; null for a directory in place of a host. */
export function hostWriting(
  { self, newId }: WritingPorts,
  { breakLock, confirmMs }: WritingRequest,
): (target: HostTarget) => Promise<MemberWriting | null> {
  return async ({ address, member, rootDir }) => {
    if (rootDir !== undefined) return null;
    return {
      owner: { id: await newId(), name: self.name, processId: self.id, machine: self.machine },
      breakLock,
      isGone: ({ machine, processId }) => machine === self.machine && processId !== self.id && !self.isRunning(processId),
      confirmMs: confirmMs === undefined ? (address === undefined && member === undefined ? null : DEFAULT_CONFIRM_MS) : confirmMs,
    };
  };
}
