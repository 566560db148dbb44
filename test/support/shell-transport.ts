import { spawn } from 'node:child_process';
import type { RunOptions, RunResult, Transport } from '../../src/host/transport.ts';

export interface ShellOptions {
  /** Replaces `/bin/sh`: a program and its first arguments. */
  readonly shell: readonly [string, ...string[]];
  /** The name it is called by; bash is a POSIX shell when called `sh`. */
  readonly argv0?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  /** Sends only this much of the input, like a connection that breaks. */
  readonly cutStdinAt?: number;
}

/**
 * Runs programs for `/bin/sh` in another shell, environment or user of the local host. Rejects any other
 * command.
 */
export function shellTransport({ shell, argv0, env, uid, gid, cutStdinAt }: ShellOptions): Transport {
  const [program, ...first] = shell;
  return {
    name: 'local',
    run: (argv, options = {}) => {
      if (argv[0] !== '/bin/sh') throw new Error(`not a shell: ${argv[0]}`);
      const child = spawn(program, [...first, ...argv.slice(1)], {
        ...(argv0 === undefined ? {} : { argv0 }),
        // No HOME: startup files of the current user must not apply.
        env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env },
        ...(uid === undefined ? {} : { uid }),
        ...(gid === undefined ? {} : { gid }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        timeout: options.timeoutMs ?? 60_000,
      });
      const input = Buffer.from(options.stdin ?? '');
      child.stdin.on('error', () => {});
      child.stdin.end(cutStdinAt === undefined ? input : input.subarray(0, cutStdinAt));
      return collect(child, options);
    },
    close: async () => {},
  };
}

function collect(child: ReturnType<typeof spawn>, options: RunOptions): Promise<RunResult> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout.push(chunk);
    options.onStdout?.(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode, signal) => resolve({ exitCode, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) }));
  });
}
