/** Who writes to a host. */
export interface LockOwner {
  /** New for every run and host, unpredictable. */
  readonly id: string;
  /** For people: `alice@laptop`. */
  readonly name: string;
  /** Of the run, on its machine. */
  readonly processId: number;
  /** Tells machines and their boots apart, so that nobody takes a process of another machine for his own. */
  readonly machine: string;
}

/** A lock to be taken, or its time to begin anew where its owner has it already. */
export interface LockRequest {
  readonly owner: LockOwner;
  /** After which others may take it. */
  readonly seconds: number;
  /** Whose lock is taken away even if its time is not over: nobody's, that of an id, anybody's. */
  readonly breaks: { readonly kind: 'none' } | { readonly kind: 'id'; readonly id: string } | { readonly kind: 'any' };
}

/** A revert to be armed, before anything is changed. */
export interface RevertRequest {
  readonly id: string;
  /** For people: who makes the change. */
  readonly owner: string;
  /** Without a confirmation within this time the files from before come back. */
  readonly timeoutSeconds: number;
  /** What the change may touch; what is there now is kept. */
  readonly paths: readonly string[];
  /** Units whose state is kept with them. */
  readonly units: readonly string[];
  /** Some of the files are read by systemd itself. */
  readonly reload: boolean;
}
