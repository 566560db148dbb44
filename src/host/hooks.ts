import * as z from 'zod';
import { quoteShell } from '../base/text/shell-quote.ts';
import { secretSource } from './operation/install-model.ts';
import type { OperationOf, RunCommand } from './operation/operation.ts';

const hostHook = z
  .strictObject({
    command: z.array(z.string()).readonly(),
    timeoutSeconds: z.number(),
    /** Layer that declares the hook: `group edge`. */
    layer: z.string(),
    /** Sources of the secrets in the environment of the command, by variable. */
    env: z.exactOptional(z.record(z.string(), secretSource).readonly()),
  })
  .readonly();

/** The hooks of a host, run as root; null: none. The schema is part of saved plans. */
export const hostHooks = z.strictObject({ beforeChange: z.nullable(hostHook), afterChange: z.nullable(hostHook) }).readonly();
export type HostHook = z.infer<typeof hostHook>;
export type HostHooks = z.infer<typeof hostHooks>;

/** Begins the last line of a failed hook, which reports how the command ended. */
const ENDED = 'kubeletadm-hook-ended ';

/**
 * SIGTERM at the time limit, and SIGKILL 10 s later where timeout(1) supports that (busybox before 1.34 does
 * not). Standard output goes to standard error, which is reported for a failure.
 */
const RUN_HOOK = `limit=$1; shift
kill='-k 10'; timeout $kill 1 true 2>/dev/null || kill=
timeout $kill "$limit" env "$@" >&2; status=$?
[ "$status" = 0 ] || printf '\\n${ENDED}%s\\n' "$status" >&2
exit "$status"`;

export function hookText(command: readonly string[]): string {
  const [shell, flag, text] = command;
  return command.length === 3 && shell === 'sh' && flag === '-c' ? (text ?? '') : command.map(quoteShell).join(' ');
}

/** The command that runs a hook on the host, with its environment and time limit. */
export function runHook({ hook, command, environment, timeoutSeconds, secrets }: OperationOf<'run-hook'>): RunCommand {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const argv = ['sh', '-c', RUN_HOOK, 'sh', String(timeoutSeconds), ...variables, ...command];
  return { kind: 'run', argv, what: `the hook ${hook}`, secrets };
}

/** Exit codes of timeout(1) at the time limit: after SIGTERM, and after SIGKILL. */
const TIMEOUT_CODES: readonly number[] = [124, 137, 143];

/** Reads the standard error of a failed hook. An exit code of null: unknown. `output`: lines without empty ones. */
export function readHookFailure(stderr: string): {
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  readonly output: readonly string[];
} {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  const end = lines.findLast((line) => line.startsWith(ENDED));
  const exitCode = end === undefined ? null : Number(end.slice(ENDED.length));
  return {
    exitCode: Number.isInteger(exitCode) ? exitCode : null,
    timedOut: exitCode !== null && TIMEOUT_CODES.includes(exitCode),
    output: lines.filter((line) => !line.startsWith(ENDED)),
  };
}
