#!/usr/bin/env node
import { runCli } from './cli/run.ts';
import { VERSION } from './version.ts';
import { createServices } from './wiring.ts';

const interrupted = new AbortController();
for (const [name, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(name, () => {
    interrupted.abort(new Error(`interrupted by ${name}`));
    // A second signal ends the process at once.
    process.once(name, () => process.exit(code));
  });
}

const { env, stdin, stdout, stderr } = process;
// A reader that leaves early (head) is no error.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
const services = createServices({ env, stdin, stdout, stderr, signal: interrupted.signal });
void runCli(process.argv.slice(2), services, VERSION).then((code) => {
  process.exitCode = code;
});
