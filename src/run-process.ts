import { type ExitCode, interrupted } from './base/errors.ts';
import { SECRET_VARIABLES } from './base/secret-variables.ts';

/** The parts of the process that the adapters need. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };
  readonly signal: AbortSignal;
  readonly onForcedExit?: (listener: () => void) => () => void;
  /** The running program; absent when it is not a single file. */
  readonly program?: { readonly script: string; readonly executable: string };
  /** argv[0] and the path of the script, as the process was started: links are not resolved. */
  readonly startedAs?: readonly string[];
}

/**
 * Runs a program in this process: its streams, its environment without secrets, its signals. Sets the exit code.
 * @param run receives the arguments without the interpreter and the script; SIGINT, SIGTERM and, on a terminal,
 *   SIGHUP abort its signal
 */
export function runProcess(run: (argv: readonly string[], environment: Environment) => Promise<ExitCode>): void {
  const { stdin, stdout, stderr } = process;
  // Secrets are for this process alone: its child processes (ssh and its commands, credential plugins, local
  // programs) inherit the environment.
  const env = { ...process.env };
  for (const name of Object.values(SECRET_VARIABLES)) delete process.env[name];
  const interruption = new AbortController();
  const forcedExitListeners = new Set<() => void>();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    let isFirst = true;
    // Not `once`: a second signal that arrives during the abort would end the process without a report.
    process.on(name, () => {
      const reason = interrupted(name);
      if (isFirst) {
        isFirst = false;
        interruption.abort(reason);
        return;
      }
      // A second signal ends the process immediately.
      try {
        for (const listener of forcedExitListeners) listener();
      } finally {
        process.exit(reason.exitCode);
      }
    });
  }
  // SIGHUP from a closed terminal: the kernel and the shell both send it, so a second one is not a request to
  // exit immediately; the run stops in an orderly way.
  // Without a terminal (nohup, whose signal mask Node resets at startup; a pipeline) SIGHUP is ignored, and the
  // run continues.
  const hasTerminal = [stdin, stdout, stderr].some(({ isTTY }) => isTTY);
  let hungUp = false;
  process.on('SIGHUP', () => {
    if (!hasTerminal) return;
    hungUp = true;
    interruption.abort(interrupted('SIGHUP'));
  });

  reportUnwritableOutput(process);
  const program = { script: process.argv[1] ?? '', executable: process.execPath };
  const startedAs = [process.argv0, program.script];
  const onForcedExit = (listener: () => void): (() => void) => {
    forcedExitListeners.add(listener);
    return () => forcedExitListeners.delete(listener);
  };
  const environment = { env, stdin, stdout, stderr, signal: interruption.signal, onForcedExit, program, startedAs };
  void run(process.argv.slice(2), environment).then((code) => {
    process.exitCode = code;
    if (!hungUp) return;
    // Ends with the signal, as shells expect of a process that caught it. A normal exit would make Node abort
    // with a core dump while it restores the closed terminal.
    process.removeAllListeners('SIGHUP');
    process.kill(process.pid, 'SIGHUP');
  });
}

/**
 * A reader that exits early (head) is not an error, and never stops changes of a host halfway. A result that cannot be
 * written is an error.
 */
function reportUnwritableOutput({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): void {
  stderr.on('error', () => undefined);
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    stderr.write(`cannot write to standard output: ${error.message} [OUTPUT_UNWRITABLE]\n`);
    process.once('exit', () => {
      process.exitCode ||= 1;
    });
  });
}
