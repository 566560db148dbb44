import type { Problem } from '../base/errors.ts';

/** The Node that a host of a run stands for. */
export interface NodeClaim {
  readonly nodeName: string;
  /** By certificate and key; else by the word of the operator. */
  readonly isProven: boolean;
  /** Null: not known. */
  readonly machineId: string | null;
}

/** The claim of one member. */
export interface OwnClaim {
  /**
   * Takes the place of an earlier one, where the host is planned again.
   * @param host its name in messages
   */
  set(host: string, claim: NodeClaim): void;
  /**
   * Why the host may not be changed: another host of the run stands for its Node. Empty: none does, as far as
   * hosts were looked at.
   */
  problems(): readonly Problem[];
}
