import { AppError, type ExitCode, interrupted, type Problem } from '../base/errors.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import {
  type DrainRequest,
  drainChosenNodes,
  drainExitCode,
  type MaintenanceRequest,
  type NodeMaintenance,
  readMaintenance,
  uncordonChosenNodes,
} from '../fleet/use-cases/maintain-nodes.ts';
import type { RunSettings } from '../host/run-settings.ts';
import type { DrainOutcome } from '../maintenance/drain/drain-nodes.ts';
import { forecastLine, namesOf } from '../maintenance/drain/drain-problems.ts';
import type { DrainForecast, NodeForecast } from '../maintenance/forecast/forecast.ts';
import { drainForecastDocument } from '../maintenance/forecast/forecast-document.ts';
import { outcomesText } from '../maintenance/member-outcome.ts';
import type { Services } from './output/services.ts';
import { type OutputRequest, renderDocument } from './output/show-document.ts';

import { showTable, type TableRequest } from './show-table.ts';

const API_VERSION = 'kubeletadm.dev/v1alpha1';

export interface DrainCommandRequest extends Omit<DrainRequest, 'reporter'> {
  readonly run: RunSettings;
  readonly output: OutputRequest;
}

export interface UncordonRequest extends Omit<MaintenanceRequest, 'reporter'> {
  readonly output: OutputRequest;
}

export interface MaintenanceStatusRequest {
  readonly choice: MaintenanceRequest['choice'] | undefined;
  readonly cluster: MaintenanceRequest['cluster'];
  readonly output: TableRequest;
}

/** `drain NODE...` and `maintenance start NODE...`; a dry run shows the forecast. */
export async function runDrain(services: Services, { output, run, ...request }: DrainCommandRequest): Promise<ExitCode> {
  const { format, verbosity } = output;
  const reporter = services.reporter({ verbosity, format: 'text' });
  const isText = format === 'text';
  const { dryRun } = run;
  const outcomes = await drainChosenNodes(services, { ...request, reporter }, (forecast, held) => {
    if (isText && (dryRun || verbosity > 0)) services.output.stdout(joinLines(forecastText(forecast, held)));
    else if (isText) services.output.stderr(joinLines(warningText(forecast)));
    else if (dryRun) services.output.stdout(renderDocument(drainForecastDocument(forecast, held), format));
    return !dryRun;
  });
  if (outcomes === null) return 0;
  if (format !== 'text') services.output.stdout(renderDocument(resultDocument(outcomes), format));
  else
    services.output.stdout(
      `${outcomesText(
        outcomes.map(({ outcome }) => outcome),
        'node',
      ).replace(' changed', ' drained')}.\n`,
    );
  const exitCode = drainExitCode(outcomes, services);
  if (exitCode === 0) return 0;
  const problems = outcomes.flatMap(({ node, error }): readonly Problem[] => error?.problems.map((one) => ({ host: node, ...one })) ?? []);
  throw new AppError(problems.length > 0 ? problems : interrupted('SIGINT').problems, { exitCode });
}

/** The forecast of each node with what blocks it, and the number of nodes at once. */
function forecastText(forecast: DrainForecast, held: ReadonlyMap<string, string>): readonly string[] {
  const { nodes, atOnce } = forecast;
  const lines = nodes.flatMap((node) => {
    const why = held.get(node.node);
    return [`${node.node}: ${why === undefined ? forecastLine(node) : `skipped: ${why}`}`, ...detailsOf(node)];
  });
  const blocked = nodes.filter(({ node, state }) => state === 'blocked' || held.has(node)).map(({ node }) => node);
  const summary = blocked.length === 0 ? 'every node can be drained' : `cannot be drained: ${namesText(blocked)}`;
  const rate = nodes.length > 1 ? `; without waiting for a budget, ${atOnce} at a time` : '';
  return [...lines, `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}: ${summary}${rate}.`];
}

function detailsOf({ daemonSet, mirror, blockers, unplaced, longGrace, hostPath }: NodeForecast): readonly string[] {
  const stays = [
    daemonSet.length > 0 ? `${daemonSet.length} of DaemonSets` : '',
    mirror.length > 0 ? `${mirror.length} static` : '',
  ].filter(Boolean);
  return [
    ...blockers.map(({ kind, why, pods, fix }) => `  ${kind}: ${why}: ${namesOf(pods)}. ${fix}.`),
    ...unplaced.map(({ pod, why }) => `  no place (estimate): ${pod}: ${why}`),
    ...longGrace.map(({ pod, seconds }) => `  long grace period: ${pod}: ${seconds} s`),
    ...(hostPath.length > 0 ? [`  data on the node (hostPath): ${namesOf(hostPath)}`] : []),
    ...(stays.length > 0 ? [`  stay: ${stays.join(', ')}`] : []),
  ];
}

/** Lines for nodes that will wait; others need none before the run. */
function warningText({ nodes }: DrainForecast): readonly string[] {
  return nodes.filter(({ state }) => state === 'waits').map((node) => `${node.node}: ${forecastLine(node)}`);
}

function resultDocument(outcomes: readonly DrainOutcome[]): object {
  const nodes = outcomes.map(({ node, outcome, error, drained }) => ({
    node,
    outcome: outcome === 'changed' ? 'drained' : outcome,
    wasCordoned: drained !== null && !drained.isOurs,
    pods: drained?.pods.map(({ name, stage, refusals, why }) => ({ name, stage, refusals, why })) ?? [],
    requests: drained?.requests ?? 0,
    problems: error?.problems ?? [],
  }));
  return { apiVersion: API_VERSION, kind: 'DrainResult', nodes };
}

/** `uncordon NODE...` and `maintenance end NODE...`. Exit code 3: a cordon of others stays. */
export async function runUncordon(services: Services, { output, ...request }: UncordonRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: output.verbosity, format: 'text' });
  const nodes = await uncordonChosenNodes(services, { ...request, reporter });
  const { format } = output;
  if (format === 'text')
    services.output.stdout(joinLines(nodes.map(({ node, state, why }) => `${node}: ${state}${why === '' ? '' : `: ${why}`}`)));
  else services.output.stdout(renderDocument({ apiVersion: API_VERSION, kind: 'UncordonResult', nodes }, format));
  const refused = nodes.filter(({ state }) => state === 'refused');
  if (refused.length === 0) return 0;
  throw new AppError(
    refused.map(({ node, why }) => ({
      code: 'NODE_HELD',
      host: node,
      message: `not uncordoned: ${why}`,
      hint: `If its owner agrees: kubectl uncordon ${node}`,
    })),
    { exitCode: 3 },
  );
}

/** `maintenance status [NODE...]`. */
export async function runMaintenanceStatus(services: Services, { output, ...request }: MaintenanceStatusRequest): Promise<ExitCode> {
  const nodes = await readMaintenance(services, request);
  showTable(
    services.output,
    {
      columns: ['NODE', 'STATE', 'BY', 'SINCE', 'REASON'],
      rows: nodes.map((one) => ({ name: `node/${one.node}`, cells: cellsOf(one) })),
      empty: 'No node is cordoned or in maintenance.',
      document: () => ({ apiVersion: API_VERSION, kind: 'MaintenanceStatus', nodes }),
    },
    output,
  );
  return 0;
}

function cellsOf({ node, isCordoned, owner, conditions, obstacle }: NodeMaintenance): readonly string[] {
  const state = conditions.map(({ type }) => type).join(',') || (isCordoned ? 'cordoned' : obstacle === null ? 'in service' : 'held');
  const foreign = conditions.find(({ isOurs }) => !isOurs);
  const reason =
    owner?.reason ?? (foreign === undefined ? (obstacle ?? '-') : [foreign.reason, foreign.message].filter(Boolean).join(': '));
  return [node, state, owner?.operator ?? (obstacle === null ? '-' : 'others'), owner?.since ?? '-', reason];
}
