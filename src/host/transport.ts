import type { Dial } from '../kube/dial.ts';
export interface RunOptions {
  /** Sent to the stdin of the process, which is then closed. Secrets are passed here, never in argv. */
  readonly stdin?: string;
  /** Default 60,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** More output on stdout or stderr kills the process with an error; default 32 MiB. */
  readonly maxOutputBytes?: number;
  readonly onStdout?: ((chunk: Uint8Array) => void) | undefined;
}

/** Result of a process. Output is not trimmed. `exitCode` is null if the process was killed by a signal. */
export interface RunResult {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/**
 * A connection to a host. Only the SSH transport quotes an argv. `run` resolves for any exit code.
 * Errors (AppError): HOST_UNREACHABLE, HOST_KEY_MISMATCH, HOST_KEY_REVOKED, HOST_KEY_UNKNOWN,
 * HOST_AUTH_FAILED, HOST_TIMEOUT, HOST_CONNECTION_LOST, HOST_OUTPUT_TOO_LARGE, HOST_COMMAND_NOT_FOUND (the
 * program itself could not be started).
 */
export interface Transport {
  readonly name: string;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Absent: the local host reaches the same addresses directly. */
  readonly dial?: Dial | undefined;
  close(): Promise<void>;
}
