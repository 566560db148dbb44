import type { Dial } from '../kube/dial.ts';
import type { Answers, FactQueries } from './facts/query.ts';
import type { Operation } from './plan/operation.ts';

export interface PerformOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called as each operation is done, in order. */
  readonly onDone?: (index: number) => void;
}

/**
 * A Linux host: questions are answered in one round trip (AppError HOST_ANSWER_TOO_LARGE for a file of more than 256 KiB), operations run in order in one remote program and stop at the first that fails
 * (AppError HOST_OPERATION_FAILED, HOST_NO_SPACE, HOST_READ_ONLY, HOST_PERMISSION_DENIED with the operation named).
 */
export interface Host {
  readonly name: string;
  query<Q extends FactQueries>(queries: Q, options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number }): Promise<Answers<Q>>;
  perform(operations: readonly Operation[], options?: PerformOptions): Promise<void>;
  /** Opens a TCP connection from the host. Absent: what the host reaches is reached from here as well. */
  readonly dial?: Dial;
  close(): Promise<void>;
}
