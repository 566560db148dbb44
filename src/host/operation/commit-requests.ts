export interface LockOwner {
  /** Unique per run and host, unpredictable. */
  readonly id: string;
  /** For messages: `alice@laptop`. */
  readonly name: string;
  /** Process id of the run on its host. */
  readonly processId: number;
  /** Identifies a host and its boot, so that a process id of another host is not mistaken for a local one. */
  readonly machine: string;
}

/** Takes a lock, or renews the TTL of a lock that the owner already holds. */
export interface LockRequest {
  readonly owner: LockOwner;
  /** TTL, after which others may take it. */
  readonly seconds: number;
  /** The lock that may be broken before its TTL: none, the one with an id, or any. */
  readonly breaks: { readonly kind: 'none' } | { readonly kind: 'id'; readonly id: string } | { readonly kind: 'any' };
}

/** A revert to arm before anything is changed. */
export interface RevertRequest {
  readonly id: string;
  /** Owner of the change, for messages. */
  readonly owner: string;
  /** Without a confirmation within this time, the previous files are restored. */
  readonly timeoutSeconds: number;
  /** Paths that the change may modify; their current state is saved. */
  readonly paths: readonly string[];
  /** Units whose state is saved too. */
  readonly units: readonly string[];
  /** systemd reads some of the files. */
  readonly reload: boolean;
}
