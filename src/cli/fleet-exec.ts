import { AppError, type ExitCode, formatProblem, isAppError, type Problem } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { joinLines } from '../base/text/styled.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { inParallel } from '../fleet/in-parallel.ts';
import type { ResolvedHost } from '../fleet/model.ts';
import { selectHosts } from '../fleet/select.ts';
import { fleetTargets } from '../fleet/use-cases/fleet-members.ts';
import type { FleetHostsRequest } from '../fleet/use-cases/fleet-request.ts';
import { directoryOf, readFleet } from '../fleet/use-cases/load-fleet.ts';
import type { CommandFact } from '../host/facts/query.ts';
import type { Services } from './services.ts';

interface Executed {
  readonly host: string;
  readonly result: CommandFact | null;
  readonly problems: readonly Problem[];
}

export interface FleetExecRequest extends FleetHostsRequest {
  readonly argv: readonly string[];
  /** Number of hosts processed at once. */
  readonly parallel: number;
  readonly timeoutMs: number;
  readonly format: 'text' | 'json';
}

/**
 * `fleet exec -- COMMAND [ARGUMENT...]`: runs as root on every host. A single argument is a shell command
 * line, as with ssh.
 */
export async function runFleetExec(services: Services, request: FleetExecRequest): Promise<ExitCode> {
  const { argv, parallel, timeoutMs, format } = request;
  const fleet = await readFleet(services, request);
  const hosts = selectHosts(fleet.hosts, request.selection);
  const targetOf = await fleetTargets(services, request.connection, directoryOf(services, fleet.file));
  let done = 0;
  const executed = await inParallel(hosts, parallel, async (host) => {
    const one = await execute(services, targetOf(host), host, { argv, timeoutMs });
    done++;
    show(services, format, one);
    services.output.status?.(done === hosts.length ? null : `${done}/${hosts.length} hosts`);
    return one;
  });
  services.output.status?.(null);
  if (services.signal.aborted && isAppError(services.signal.reason)) throw services.signal.reason;
  const failed = executed.filter(({ result }) => result?.exitCode !== 0);
  if (failed.length === 0) return 0;
  throw new AppError(failed.flatMap(problemsOf), { exitCode: failed.length === executed.length ? 1 : 4 });
}

async function execute(
  services: Services,
  target: HostTarget,
  { name }: ResolvedHost,
  { argv, timeoutMs }: { readonly argv: readonly string[]; readonly timeoutMs: number },
): Promise<Executed> {
  try {
    services.signal.throwIfAborted();
    const host = await services.connectHost(target);
    try {
      const { run } = await host.query({ run: { kind: 'command', argv } }, { signal: services.signal, timeoutMs });
      return { host: name, result: run, problems: [] };
    } finally {
      await host.close();
    }
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { host: name, result: null, problems: error.problems.map((problem) => ({ host: name, ...problem })) };
  }
}

/** The complete output of a host as one block. */
function show({ output }: Services, format: FleetExecRequest['format'], { host, result, problems }: Executed): void {
  if (format === 'json') {
    const reported = result === null ? { problems: problems.map(formatProblem) } : { ...result };
    output.stdout(`${printableJson({ host, ...reported })}\n`);
    return;
  }
  if (result === null) return;
  const end = result.exitCode === 0 ? '' : ` (${exitText(result)})`;
  const lines = [`${host}:${end}`, ...linesOf(result.stdout), ...linesOf(result.stderr)];
  output.stdout(joinLines(lines));
}

function linesOf(text: string): readonly string[] {
  return text === ''
    ? []
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => `  ${line.replace(/\r$/, '')}`);
}

function exitText({ exitCode }: CommandFact): string {
  return exitCode === null ? 'killed by a signal' : `exit code ${exitCode}`;
}

function problemsOf({ host, result, problems }: Executed): readonly Problem[] {
  if (result === null) return problems;
  const message = result.exitCode === null ? 'a signal killed the command' : `the command exited with code ${result.exitCode}`;
  return [{ host, code: 'COMMAND_FAILED', message }];
}
