import { type ExitCode, formatProblem } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { joinLines } from '../base/text/styled.ts';
import { estimateRestMs } from '../fleet/run/run-steps.ts';
import { type ExecutedCommand, type ExecuteRequest, executeOnFleet } from '../fleet/use-cases/execute-on-fleet.ts';
import type { CommandFact } from '../host/facts/query.ts';
import { type LiveCount, type LiveView, liveDisplay } from './output/live-view.ts';
import type { Services } from './output/services.ts';

export interface FleetExecRequest extends ExecuteRequest {
  readonly format: 'text' | 'json';
}

/**
 * `fleet exec -- COMMAND [ARGUMENT...]`: runs as root on every host. A single argument is a shell command
 * line, as with ssh.
 */
export async function runFleetExec(services: Services, request: FleetExecRequest): Promise<ExitCode> {
  const { clock } = services;
  const state = { startedAt: clock.now().getTime(), endedAt: [] as number[], total: 0, failed: 0 };
  const display = liveDisplay(services, () => viewOf(state, clock.now().getTime()));
  const failure = await executeOnFleet(services, request, (one, { total }) => {
    show(services, request.format, one);
    state.total = total;
    state.endedAt.push(clock.now().getTime());
    if (one.result?.exitCode !== 0) state.failed++;
  }).finally(() => display.close());
  if (failure !== null) throw failure;
  return 0;
}

function viewOf(
  {
    startedAt,
    endedAt,
    total,
    failed,
  }: { readonly startedAt: number; readonly endedAt: readonly number[]; readonly total: number; readonly failed: number },
  now: number,
): LiveView {
  const done = endedAt.length;
  const counts: readonly LiveCount[] = [
    { word: 'ok', count: done - failed },
    { word: 'failed', count: failed, style: 'red' },
  ];
  const restMs = estimateRestMs(endedAt, total - done, now);
  return { title: 'fleet exec', startedAt, total, done, restMs, counts, notes: [], active: [], failures: [] };
}

/** The complete output of a host as one block. */
function show({ output }: Services, format: FleetExecRequest['format'], { host, result, problems }: ExecutedCommand): void {
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
