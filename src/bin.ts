#!/usr/bin/env node
import { interrupted } from './base/errors.ts';
import { SECRET_VARIABLES } from './base/secret-variables.ts';
import { runCli } from './cli/run.ts';
import { VERSION } from './version.ts';
import { createServices } from './wiring.ts';

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
const services = createServices({ env, stdin, stdout, stderr, signal: interruption.signal, onForcedExit, program });
void runCli(process.argv.slice(2), services, VERSION).then((code) => {
  process.exitCode = code;
  if (!hungUp) return;
  // As a signal that was caught is ended by. Node would dump core at its end: it can't leave a terminal as it was that has gone.
  process.removeAllListeners('SIGHUP');
  process.kill(process.pid, 'SIGHUP');
});
