import { AppError, type ExitCode, formatProblem, isAppError, messageOf } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import type { CommandServices } from './command.ts';

const TIMEOUT_MS = 60_000;

/**
 * Runs a command, and then the shell command of `--notify` with a summary as JSON on its standard input, also after an error
 * or an interruption. A failure of the shell command is a warning and does not change the exit code.
 * @param options.command the name of the command, e.g. `upgrade apply`
 */
export async function withNotification(
  services: CommandServices,
  { notify, command }: { readonly notify: string; readonly command: string },
  work: (services: CommandServices) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { clock, hostname } = services;
  const startedAt = clock.now();
  let hosts: Readonly<Record<string, number>> | null = null;
  const runEnded = (counts: Readonly<Record<string, number>>): void => {
    hosts = counts;
  };
  const send = (exitCode: ExitCode, problems: readonly string[]): Promise<void> => {
    const endedAt = clock.now();
    const seconds = Math.round((endedAt.getTime() - startedAt.getTime()) / 1000);
    const times = { startedAt: startedAt.toISOString(), endedAt: endedAt.toISOString(), seconds };
    // Hosts: null without a run over hosts.
    const result = { command, localHost: hostname, exitCode, ...times, hosts, problems };
    return run(services, notify, { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'RunSummary', ...result });
  };
  let exitCode: ExitCode;
  try {
    exitCode = await work({ ...services, runEnded });
  } catch (error) {
    await send(isAppError(error) ? error.exitCode : 1, isAppError(error) ? error.problems.map(formatProblem) : [messageOf(error)]);
    throw error;
  }
  await send(exitCode, []);
  return exitCode;
}

async function run({ output, runLocal }: CommandServices, notify: string, summary: object): Promise<void> {
  const argv = ['sh', '-c', notify];
  try {
    const options = { stdin: `${printableJson(summary)}\n`, timeoutMs: TIMEOUT_MS, ignoresInterruption: true };
    output.stderr(await runLocal(argv, options));
  } catch (error) {
    const text = error instanceof AppError ? (error.problems[0]?.message ?? error.code) : messageOf(error);
    // The command may have the URL of a webhook, which is a secret.
    const why = text.replace(`${argv.join(' ')} `, '');
    const problem = { code: 'NOTIFICATION_FAILED', message: `the command of --notify failed: ${why}` };
    output.stderr(`warning: ${formatProblem({ ...problem, hint: 'The result of the run is not affected' })}\n`);
  }
}
