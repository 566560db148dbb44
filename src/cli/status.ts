import type { ExitCode } from '../base/errors.ts';
import { type NodeStatusRequest, readNodeStatus, watchNodeStatus } from '../dynamic/use-cases/node-status.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import type { FleetStatus } from '../fleet/use-cases/fleet-status.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { type NodeChoice, openNodeNames } from '../fleet/use-cases/named-hosts.ts';
import {
  type Overview,
  type OverviewRequest,
  overviewOfHosts,
  overviewOfNodes,
  readHosts,
  readOverview,
  watchOverview,
} from '../fleet/use-cases/overview.ts';
import type { Services } from './output/services.ts';
import type { RunPage } from './report/run-page.ts';
import { withPage } from './report/with-page.ts';
import { showTable, type TableRequest } from './show-table.ts';
import { ALL, HOSTS, NODES, type StatusView, tableOf } from './status-views.ts';
import { type RunWatch, watchRun } from './watch-run.ts';
import { tableWatch } from './watch-table.ts';

interface Shown {
  readonly output: TableRequest & { readonly verbosity: number };
  /** Print changed rows until interrupted. */
  readonly watches: boolean;
}

export interface StatusRequest extends OverviewRequest, Shown {}

export interface FleetStatusRequest extends FleetRunRequest, Shown {
  /** The file of the HTML report; undefined: none. */
  readonly report: string | undefined;
}

export interface DynamicStatusRequest extends Omit<NodeStatusRequest, 'names' | 'selector'>, Shown {
  /** Undefined: all Nodes. */
  readonly choice: NodeChoice | undefined;
}

const API_VERSION = 'kubeletadm.dev/v1alpha1';

/** `status [HOST|NODE...]`: hosts and Nodes in one table. Exit code as `fleet status`. */
export async function runStatus(services: Services, request: StatusRequest): Promise<ExitCode> {
  const read = (view: RunWatch): Promise<Overview> => readOverview(services, request, view).finally(() => view.close());
  if (request.watches)
    return watchOverview(services, (view) => readOverview(services, request, view), watched(services, request, 'status', ALL));
  return show(services, request, ALL, await read(watchOf(services, request, 'status')), (items, { unseen, rollouts }) => ({
    ...{ apiVersion: API_VERSION, kind: 'Status', items, unseen, rollouts },
  }));
}

/** `fleet status`: the hosts of the fleet file. */
export async function runFleetStatus(services: Services, request: FleetStatusRequest): Promise<ExitCode> {
  const { report } = request;
  const read = (view: Pick<RunWatch, 'reporter' | 'ports'>, readsCertificates = false): Promise<FleetStatus> =>
    readHosts(services, request, { ...view, readsCertificates });
  if (request.watches)
    return watchOverview(services, async (view) => overviewOfHosts(await read(view)), watched(services, request, 'fleet status', HOSTS));
  const page = { command: 'fleet status', subject: fleetFileOf(request.file), reason: undefined, report, serve: undefined };
  const status = await withPage(services, page, async (shown) => {
    const startedAt = services.clock.now();
    const watch = watchOf(services, request, 'fleet status', shown);
    const found = await read(watch, shown !== null).finally(() => watch.close());
    if (shown === null) return found;
    const { statusReport } = await import('../fleet/report/report-model.ts');
    shown.show({ startedAt, live: () => null, model: (head) => statusReport({ ...head, ...found }) });
    return found;
  });
  return show(services, request, HOSTS, overviewOfHosts(status), (hosts) => ({ apiVersion: API_VERSION, kind: 'FleetStatus', hosts }));
}

/** `dynamic status [NODE...]`: the Nodes of the cluster. */
export async function runDynamicStatus(services: Services, { choice, ...rest }: DynamicStatusRequest): Promise<ExitCode> {
  const names = choice === undefined || choice.kind === 'selector' ? [] : await openNodeNames(services, rest.cluster, choice);
  const request = { ...rest, names, selector: choice?.kind === 'selector' ? choice.selector : undefined };
  if (request.watches) {
    const { reporter, changed } = watched(services, request, 'dynamic status', NODES);
    return watchNodeStatus(services, request, { reporter, changed: ({ nodes }) => changed(overviewOfNodes(nodes)) });
  }
  const { nodes } = await readNodeStatus(services, request);
  return show(services, request, NODES, overviewOfNodes(nodes), (items) => ({ apiVersion: API_VERSION, kind: 'NodeConfigList', items }));
}

function watchOf(services: Services, { output }: Shown, title: string, shown: RunPage | null = null): RunWatch {
  const page = shown === null ? null : { of: shown, command: title, state: 'planning' as const, hosts: [], canary: 0 };
  return watchRun(services, { format: 'text', verbosity: output.verbosity }, { title, reads: true, page });
}

/** Prints changed rows; a live display would be between them. */
function watched(services: Services, request: Shown, title: string, view: StatusView) {
  const watch = watchOf(services, request, title);
  watch.close();
  const print = tableWatch(services.output, request.output);
  return { ...watch, changed: (overview: Overview) => print(tableOf(view, overview, services.clock.now(), { withProblems: true })) };
}

/** Prints an overview once. @throws the problems of hosts that were not inspected */
function show(
  services: Services,
  { output }: Shown,
  view: StatusView,
  overview: Overview,
  documentOf: (rows: readonly object[], overview: Overview) => object,
): ExitCode {
  const table = tableOf(view, overview, services.clock.now());
  const notes = [
    ...table.rows.flatMap((row) => row.notes),
    ...overview.rollouts.map((what) => `rollout ${what}`),
    ...overview.unseen.map((what) => `Not read: ${what}.`),
  ];
  const document = (): object =>
    documentOf(
      table.rows.map((row) => row.document),
      overview,
    );
  showTable(services.output, { ...table, notes, document }, output);
  if (overview.failure !== null) throw overview.failure;
  return 0;
}
