import type { Dial } from '../kube/dial.ts';
export interface RunOptions {
  /** Sent to the process, then its input is closed. Secrets travel here, never in argv. */
  readonly stdin?: string;
  /** Default 60,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** More output than this on stdout or stderr ends the process with an error; default 32 MiB. A hostile host can't fill our memory. */
  readonly maxOutputBytes?: number;
  /** Called with each piece of stdout as it arrives. */
  readonly onStdout?: (chunk: Uint8Array) => void;
}

/** What a process left. Output is not trimmed. `exitCode` is null when a signal ended it. */
export interface RunResult {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/**
 * All that a way to reach a host has to provide. A command is an argv array, never a string: only the SSH transport quotes.
 * `run` resolves whatever the exit code is.
 *
 * Errors (AppError): HOST_UNREACHABLE, HOST_KEY_MISMATCH, HOST_KEY_REVOKED, HOST_KEY_UNKNOWN, HOST_AUTH_FAILED, HOST_TIMEOUT, HOST_CONNECTION_LOST,
 * HOST_OUTPUT_TOO_LARGE, HOST_COMMAND_NOT_FOUND (the program itself could not be started).
 */
export interface Transport {
  /** Inventory name, first word of every message about this host. */
  readonly name: string;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Absent: what the host reaches is reached from here as well. */
  readonly dial?: Dial;
  close(): Promise<void>;
}
