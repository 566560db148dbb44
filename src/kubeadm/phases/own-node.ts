import type { PhaseContext } from '../../host/phase.ts';

/**
 * Checks at apply time that the Node to be changed belongs to the host, for a host that had not joined when
 * the run was planned.
 */
export interface OwnNodeCheck {
  readonly isDone: boolean;
  /** @throws AppError: the host cannot prove to be this Node, or is another one */
  run(context: PhaseContext): Promise<void>;
}

/**
 * Whether a change of the Node must wait. Null: the host was verified when the run was planned, or the
 * credentials are its own.
 */
export function isUnchecked(check: OwnNodeCheck | null): boolean {
  return check !== null && !check.isDone;
}

/** Why a change is deferred, for the plan. */
export function deferredUntilCheck(nodeName: string): string {
  return `changes Node ${nodeName} after checking that the host belongs to this Node`;
}
