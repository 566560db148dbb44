import { type ExitCode, interrupted } from './base/errors.ts';
import { SECRET_VARIABLES } from './base/secret-variables.ts';

/** What the process hands to the adapters. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly signal: AbortSignal;
  /** As in `Services`. */
  readonly onForcedExit?: (listener: () => void) => () => void;
  /** What runs; absent: no single file. */
  readonly program?: { readonly script: string; readonly executable: string };
}

/**
 * Runs a program in this process: its streams, its environment without secrets, its signals. Sets the exit code.
 * @param run gets the arguments without the interpreter and the script; its signal is aborted by SIGINT, SIGTERM and, on a terminal, SIGHUP
 */
export function runProcess(run: (argv: readonly string[], environment: Environment) => Promise<ExitCode>): void {
  const { stdin, stdout, stderr } = process;
  // Secrets are for this process alone: what it starts (ssh and its commands, credential plugins, programs of this machine) inherits the environment.
  const env = { ...process.env };
  for (const name of Object.values(SECRET_VARIABLES)) delete process.env[name];
  const interruption = new AbortController();
  const forcedExitListeners = new Set<() => void>();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => {
      const reason = interrupted(name);
      interruption.abort(reason);
      // A second signal ends the process at once.
      process.once(name, () => {
        try {
          for (const listener of forcedExitListeners) listener();
        } finally {
          process.exit(reason.exitCode);
        }
      });
    });
  }
  // A terminal that goes away is no Ctrl-C out of impatience: it is told by the kernel and by the shell, and the run comes to its end in peace. Without a terminal
  // (nohup, whose mask Node takes off at its start; a pipeline) nobody has gone, and the run goes on.
  const hasTerminal = [stdin, stdout, stderr].some(({ isTTY }) => isTTY);
  let hungUp = false;
  process.on('SIGHUP', () => {
    if (!hasTerminal) return;
    hungUp = true;
    interruption.abort(interrupted('SIGHUP'));
  });

  // A reader that leaves early (head) is no error, and never ends work on a host halfway. A result that cannot be written is one.
  stderr.on('error', () => undefined);
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    stderr.write(`cannot write to standard output: ${error.message} [OUTPUT_UNWRITABLE]\n`);
    process.once('exit', () => {
      process.exitCode ||= 1;
    });
  });
  const program = { script: process.argv[1] ?? '', executable: process.execPath };
  const onForcedExit = (listener: () => void): (() => void) => {
    forcedExitListeners.add(listener);
    return () => forcedExitListeners.delete(listener);
  };
  const environment = { env, stdin, stdout, stderr, signal: interruption.signal, onForcedExit, program };
  void run(process.argv.slice(2), environment).then((code) => {
    process.exitCode = code;
    if (!hungUp) return;
    // As a signal that was caught is ended by. Node would dump core at its end: it can't leave a terminal as it was that has gone.
    process.removeAllListeners('SIGHUP');
    process.kill(process.pid, 'SIGHUP');
  });
}
