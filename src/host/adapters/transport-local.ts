import { setMaxListeners } from 'node:events';
import { execa } from 'execa';
import { onAbort } from '../../base/abort.ts';
import { resolveWithin } from '../../base/adapters/clock-system.ts';
import { checkArgv } from '../argv.ts';
import { hostCommandNotFound, hostConnectionLost, hostOutputTooLarge, hostTimeout } from '../host-problems.ts';
import type { RunOptions, RunResult, Transport } from '../transport.ts';

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
/** Between SIGTERM and SIGKILL, and again for processes that keep the output open. */
const GRACE_MS = 1000;

/**
 * Runs commands in process groups, so that stopping one stops its children. `root`: directory for chroot;
 * needs root.
 */
export function localTransport(options: { readonly name?: string; readonly root?: string } = {}): Transport {
  const name = options.name ?? 'localhost';
  const running = new Set<AbortController>();
  let isClosed = false;
  const closed = (): Error => hostConnectionLost({ host: name, why: 'the transport was closed' });
  return {
    name,
    run: async (argv, runOptions = {}) => {
      const checked = checkArgv(options.root === undefined ? argv : ['chroot', options.root, ...argv], name);
      if (isClosed) throw closed();
      const stop = new AbortController();
      running.add(stop);
      try {
        return await run(name, checked, runOptions, stop);
      } finally {
        running.delete(stop);
      }
    },
    close: async () => {
      isClosed = true;
      for (const stop of running) stop.abort(closed());
    },
  };
}

async function run(
  name: string,
  [program, ...args]: readonly [string, ...string[]],
  options: RunOptions,
  stop: AbortController,
): Promise<RunResult> {
  const { stdin, timeoutMs = DEFAULT_TIMEOUT_MS, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES, onStdout } = options;
  options.signal?.throwIfAborted();
  // One signal stops many commands, which is not a listener leak.
  if (options.signal) setMaxListeners(0, options.signal);
  const child = execa(program, args, {
    reject: false,
    stripFinalNewline: false,
    encoding: 'buffer',
    detached: true,
    maxBuffer: maxOutputBytes,
    ...(stdin === undefined ? { stdin: 'ignore' as const } : { input: stdin }),
  });
  if (onStdout) child.stdout.on('data', (chunk: Uint8Array) => stop.signal.aborted || orStop(stop, () => onStdout(chunk)));
  const timer = setTimeout(() => stop.abort(hostTimeout({ host: name, what: `${program} did not exit`, timeoutMs })), timeoutMs);
  const forget = onAbort(options.signal, (reason) => stop.abort(reason));
  try {
    const result = await Promise.race([child, stopped(child, stop.signal)]);
    stop.signal.throwIfAborted();
    if (result.isMaxBuffer) {
      signalGroup(child.pid, 'SIGKILL');
      const stream = /^Command's stderr/.test(result.shortMessage ?? '') ? 'stderr' : 'stdout';
      throw hostOutputTooLarge({ host: name, command: program, stream, maxOutputBytes });
    }
    if (child.pid === undefined) throw cannotStart(name, program, result.cause);
    return { exitCode: result.exitCode ?? null, signal: result.signal ?? null, stdout: result.stdout, stderr: result.stderr };
  } finally {
    clearTimeout(timer);
    forget();
  }
}

/** An exception of a listener inside a stream would terminate the process. */
function orStop(stop: AbortController, listener: () => void): void {
  try {
    listener();
  } catch (error) {
    stop.abort(error);
  }
}

/** Rejects with the reason when the process group has exited or was abandoned. */
async function stopped(child: Promise<unknown> & { readonly pid?: number | undefined }, stop: AbortSignal): Promise<never> {
  await new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
  signalGroup(child.pid, 'SIGTERM');
  if ((await resolveWithin(GRACE_MS, child)) === null) {
    signalGroup(child.pid, 'SIGKILL');
    await resolveWithin(GRACE_MS, child);
  }
  throw stop.reason;
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It is gone already.
  }
}

function cannotStart(host: string, command: string, cause: unknown): Error {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
  const isMissing = code === 'ENOENT' || code === 'EACCES';
  return hostCommandNotFound({ host, command, cause, ...(isMissing ? {} : { why: code }) });
}
