import type { ExitCode } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { ASSIGNED_EVENT_REASON, CONFIG_EVENT_REASON, type ConfigHistoryEntry } from '../dynamic/status/config-event.ts';
import {
  type NodeStatus,
  type NodeStatusRequest,
  readNodeHistory,
  readNodeStatus,
  watchNodeStatus,
} from '../dynamic/use-cases/node-status.ts';
import type { AssessedNode } from '../dynamic/workflows/read-nodes.ts';
import { type NodeChoice, openNodeNames } from '../fleet/use-cases/named-hosts.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { Assigner } from '../kubelet/effective/node-source.ts';
import {
  describeIdentity,
  describeSource,
  formatConfigSource,
  formatConfigStatus,
  formatIdentity,
} from '../kubelet/layers/config-source.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderDocument } from './output/show-document.ts';
import { showTable, type TableRequest } from './show-table.ts';
import { tableWatch, type WatchedTable } from './watch-table.ts';

const API_VERSION = 'kubeletadm.dev/v1alpha1';

export interface DynamicStatusRequest extends Omit<NodeStatusRequest, 'names' | 'selector'> {
  /** Undefined: all Nodes. */
  readonly choice: NodeChoice | undefined;
  /** Print each change until interrupted. */
  readonly watches: boolean;
  readonly output: TableRequest & { readonly verbosity: number };
}

export interface DynamicHistoryRequest {
  /** One node. */
  readonly choice: NodeChoice;
  readonly cluster: KubeconfigRequest;
  readonly format: ReadFormat;
}

/** `dynamic status [NODE...] [--watch]`. */
export async function runDynamicStatus(services: Services, { choice, ...rest }: DynamicStatusRequest): Promise<ExitCode> {
  const names = choice === undefined || choice.kind === 'selector' ? [] : await openNodeNames(services, rest.cluster, choice);
  const request = { ...rest, names, selector: choice?.kind === 'selector' ? choice.selector : undefined };
  const { verbosity } = request.output;
  if (request.watches) {
    const show = tableWatch(services.output, request.output);
    return watchNodeStatus(services, request, {
      reporter: services.reporter({ verbosity, format: 'text' }),
      changed: (status) => show(tableOf(status)),
    });
  }
  const table = tableOf(await readNodeStatus(services, request));
  showTable(
    services.output,
    {
      ...table,
      notes: table.rows.flatMap(({ notes }) => notes),
      document: () => ({ apiVersion: API_VERSION, kind: 'NodeConfigList', items: table.rows.map(({ document }) => document) }),
    },
    request.output,
  );
  return 0;
}

/** `dynamic history NODE`: oldest first. */
export async function runDynamicHistory(services: Services, request: DynamicHistoryRequest): Promise<ExitCode> {
  const { choice, cluster, format } = request;
  const [node = ''] = await openNodeNames(services, cluster, choice);
  const events = await readNodeHistory(services, { node, cluster });
  const items = events.map(({ at, reason, identity, message }) => ({
    at: at.toISOString(),
    reason,
    source: identity === null ? null : formatIdentity(identity),
    message,
  }));
  const rows = events.map((event) => [event.at.toISOString().replace('.000', ''), happened(event)]);
  const table =
    rows.length === 0 ? ['No change found: API servers delete Events after an hour by default.'] : renderTable([['AT', 'CHANGE'], ...rows]);
  const document = { apiVersion: API_VERSION, kind: 'NodeConfigHistory', node, items };
  services.output.stdout(format === 'text' ? joinLines(table) : renderDocument(document, format));
  return 0;
}

const WORDS: Readonly<Record<string, string>> = {
  KubeletConfigGood: 'good',
  KubeletConfigRejected: 'rejected',
  KubeletConfigUnavailable: 'unavailable',
  KubeletConfigAssignmentLost: 'assignment lost',
};

/** Events whose message is a sentence that names the change. */
const SENTENCES: readonly string[] = [ASSIGNED_EVENT_REASON, 'KubeletConfigFallenBack'];

/** The text of an Event. Events of the agent describe more than the change. */
function happened({ reason, identity, message }: ConfigHistoryEntry): string {
  if (SENTENCES.includes(reason)) return message;
  const word = WORDS[reason];
  if (word !== undefined || reason !== CONFIG_EVENT_REASON) return `${word ?? reason}: ${message}`;
  return `changed to ${identity === null ? 'the local configuration' : describeIdentity(identity)}`;
}

/** A node's dynamic configuration for machines. */
export function nodeDocument({ config, verdict }: AssessedNode): object {
  const { source } = config.source;
  return {
    node: config.name,
    backend: config.backend,
    kubeletVersion: config.kubeletVersion,
    ready: config.isReady,
    state: verdict.state,
    ...(verdict.since === null ? {} : { since: verdict.since.toISOString() }),
    ...(verdict.why === null ? {} : { why: verdict.why }),
    ...(verdict.hint === null ? {} : { hint: verdict.hint }),
    ...(source === null ? {} : { configSource: formatConfigSource(source) }),
    ...(config.assigner === null ? {} : { assignedBy: assignerDocument(config.assigner) }),
    ...(config.report === null ? {} : { activeObserved: config.report.observed, reportedAt: config.report.at }),
    ...(config.report?.trialEnds == null ? {} : { trialEnds: config.report.trialEnds }),
    ...(config.status === null ? {} : { status: formatConfigStatus(config.status) }),
  };
}

/** The author of an assignment for machines. */
export function assignerDocument({ by, at, reason }: Assigner): object {
  return { by, ...(at === null ? {} : { at: at.toISOString() }), ...(reason === null ? {} : { reason }) };
}

function tableOf({ nodes, now }: NodeStatus): WatchedTable {
  return {
    columns: ['NODE', 'BACKEND', 'STATE', 'CHANGED', 'REPORTED', 'ASSIGNED', 'ACTIVE', 'LAST KNOWN GOOD'],
    wide: ['KUBELET', 'READY', 'ASSIGNED BY', 'REASON'],
    rows: nodes.map((node) => ({
      name: `node/${node.config.name}`,
      cells: rowOf(node, now),
      wide: [
        node.config.kubeletVersion || '-',
        node.config.isReady ? 'yes' : 'no',
        node.config.assigner?.by ?? '-',
        node.config.assigner?.reason ?? '-',
      ],
      // Without the ages of the row: time alone is not a change.
      document: nodeDocument(node),
      notes: notesOf(node),
    })),
    empty: 'No nodes found.',
  };
}

function notesOf({ config, verdict }: AssessedNode): readonly string[] {
  return [
    ...(verdict.why === null ? [] : [`${config.name}: ${verdict.why}.${verdict.hint === null ? '' : ` ${verdict.hint}.`}`]),
    ...(config.status?.error ? [`${config.name}: reported error: "${config.status.error}"`] : []),
  ];
}

function rowOf({ config, verdict }: AssessedNode, now: Date): readonly string[] {
  const { source, status, report } = config;
  const assigned = source.source === null ? '-' : describeSource(source.source);
  const local = status === null ? '-' : 'local';
  return [
    config.name,
    config.backend,
    verdict.state,
    verdict.since === null ? '-' : formatAge(now.getTime() - verdict.since.getTime()),
    reportedAge(config, now),
    assigned,
    report?.observed === false ? 'unknown' : status?.active ? describeIdentity(status.active) : local,
    status?.lastKnownGood ? describeIdentity(status.lastKnownGood) : local,
  ];
}

/** The age of the agent's last report. Kubelets up to 1.23 and earlier versions of the agent do not record the time. */
function reportedAge({ report }: AssessedNode['config'], now: Date): string {
  const at = Date.parse(report?.at ?? '');
  return Number.isNaN(at) ? '-' : formatAge(now.getTime() - at);
}
