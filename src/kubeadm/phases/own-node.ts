import type { PhaseContext } from '../../host/phase.ts';

/**
 * Whether the Node that a phase changes is the Node of the host, for a host that could not show it when the
 * run was planned: it had not joined.
 */
export interface OwnNodeCheck {
  readonly isDone: boolean;
  /** @throws AppError with what speaks against it: the host cannot prove to be that Node, or another one */
  run(context: PhaseContext): Promise<void>;
}

/**
 * A change of the Node has to wait. Null: what the host is was known when the run was planned, or the
 * credentials are the host's own.
 */
export function isUnchecked(check: OwnNodeCheck | null): boolean {
  return check !== null && !check.isDone;
}

/** Why a change waits, for the plan. */
export function waitsForCheck(nodeName: string): string {
  return `changes Node ${nodeName} after the host has proved to be this Node`;
}
