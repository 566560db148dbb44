import type { Problem } from '../base/errors.ts';

export interface NodeClaim {
  readonly nodeName: string;
  /** Proven by certificate and key; otherwise named by the operator. */
  readonly isProven: boolean;
  readonly machineId: string | null;
}

export interface NodeClaimRegistration {
  /** Replaces an earlier claim when the host is planned again. `host` is its name in messages. */
  set(host: string, claim: NodeClaim): void;
  /** Another host of the run claims the Node. Empty: no conflict among the hosts checked so far. */
  problems(): readonly Problem[];
}
