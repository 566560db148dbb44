import type { Dial } from '../../kube/dial.ts';
import type { ParseText } from '../facts/parse-text.ts';
import type { FactQueries, FactQueryResults } from '../facts/query.ts';
import type { Operation } from '../operation/operation.ts';

export interface PerformOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called when each operation is complete, in order. */
  readonly onDone?: ((index: number) => void) | undefined;
  /** The run changes the host no more: its lock is released by the same program. Without a lock of no effect. */
  readonly isLast?: boolean | undefined;
}

/**
 * Queries are answered in one round trip (AppError HOST_ANSWER_TOO_LARGE for a file of more than 256 KiB).
 * Operations run in order in one remote program that stops at the first failure (AppError
 * HOST_OPERATION_FAILED, HOST_NO_SPACE, HOST_READ_ONLY, HOST_PERMISSION_DENIED).
 */
export interface Host {
  readonly name: string;
  /** `areKeys`: the names of the queries are their keys (`queryKey`). */
  query<Q extends FactQueries>(
    queries: Q,
    options?: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number; readonly areKeys?: boolean },
  ): Promise<FactQueryResults<Q>>;
  perform(operations: readonly Operation[], options?: PerformOptions): Promise<void>;
  /** Opens a TCP connection from the host. Absent: the local host reaches the same addresses directly. */
  readonly dial?: Dial | undefined;
  /** Parses texts of the host, equal texts of several hosts once. Absent: each text is parsed. */
  readonly parseText?: ParseText | undefined;
  close(): Promise<void>;
}
