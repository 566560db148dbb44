import { formatProblem } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import type { Overview, OverviewRow } from '../fleet/use-cases/overview.ts';
import { describeNodeSource } from '../kubelet/effective/node-source.ts';
import { describeIdentity, describeSource } from '../kubelet/layers/config-source.ts';
import { nodeDocument } from './node-document.ts';
import type { WatchedTable } from './watch-table.ts';

/** A column of `status`, `fleet status` or `dynamic status`. Null: unknown. */
interface Column {
  readonly header: string;
  readonly cell: (row: OverviewRow, now: Date) => string | null;
}

/** The columns and the document of a command that shows hosts and Nodes. */
export interface StatusView {
  readonly columns: (rows: readonly OverviewRow[]) => readonly Column[];
  readonly wide: readonly Column[];
  /** The text of an unknown value. */
  readonly unknown: string;
  /** The row for machines. It has no ages: time alone is not a change. */
  readonly document: (row: OverviewRow) => object;
  /** Lines below the table. @param problems of the host of the row, printed otherwise on standard error */
  readonly notes: (row: OverviewRow, problems: readonly string[]) => readonly string[];
  readonly empty: string;
}

const HOST: Column = { header: 'HOST', cell: ({ host }) => host };
const NODE: Column = { header: 'NODE', cell: ({ node }) => node };
const STATUS: Column = { header: 'STATUS', cell: ({ ready }) => ready };
const KUBELET: Column = { header: 'KUBELET', cell: ({ kubelet }) => kubelet };

/** `status`. */
export const ALL: StatusView = {
  columns: (rows) => {
    // Without hosts to read, these columns would only say "unknown".
    const ofHosts = (column: Column): readonly Column[] => (rows.every(({ host }) => host === null) ? [] : [column]);
    return [
      ...ofHosts(HOST),
      { ...NODE, header: 'NODE NAME' },
      STATUS,
      KUBELET,
      { header: 'CONFIG', cell: ({ configuration }) => shortName(configuration) },
      ...ofHosts({ header: 'DRIFT', cell: driftText }),
      { header: 'CHANGE', cell: ({ change }) => change },
      ...(rows.some(({ rollout }) => rollout !== null) ? [{ header: 'ROLLOUT', cell: ({ rollout }: OverviewRow) => rollout ?? '-' }] : []),
      ...ofHosts({ header: 'CERTIFICATES', cell: expiryText }),
    ];
  },
  wide: [
    { header: 'CONFIGMAP', cell: ({ configuration }) => (configuration?.includes('/') === true ? configuration : 'none') },
    { header: 'CERTIFICATE FILE', cell: ({ certificate }) => certificate?.path ?? null },
  ],
  unknown: 'unknown',
  document: ({ certificate, inspected: _, dynamic: _dynamic, ...row }) => ({
    ...row,
    certificate: certificate === null ? null : { ...certificate, notAfter: certificate.notAfter?.toISOString() ?? null },
  }),
  notes: (row, problems) => [
    ...(row.drift ?? []).map((one) => `${row.host ?? row.node}: ${one}`),
    ...(row.change === null || row.change === 'none' ? [] : nodeNotes(row)),
    ...(problems.length > 0 ? [] : unseenNotes(row)),
  ],
  empty: 'No hosts or Nodes found.',
};

/** `fleet status`: the hosts of the fleet file. */
export const HOSTS: StatusView = {
  columns: (rows) => [
    HOST,
    ...(rows.every(({ host, node }) => node === null || node === host) ? [] : [NODE]),
    { header: 'REACHABLE', cell: ({ inspected }) => (inspected?.reachable === true ? 'yes' : 'no') },
    KUBELET,
    { header: 'CONFIG', cell: ({ inspected }) => inspected?.config ?? null },
    { header: 'SOURCE', cell: ({ inspected }) => (inspected?.source == null ? null : describeNodeSource(inspected.source)) },
    { header: 'HEALTH', cell: ({ inspected }) => inspected?.health ?? null },
    STATUS,
    { header: 'DRIFT', cell: ({ inspected }) => inspected?.drift ?? null },
  ],
  wide: [
    { header: 'ADDRESS', cell: ({ inspected }) => inspected?.address ?? null },
    { header: 'GROUPS', cell: ({ inspected }) => inspected?.groups.join(',') || null },
  ],
  unknown: '-',
  document: ({ inspected }) => inspected ?? {},
  notes: (row) => (row.inspected?.reachable === true ? unseenNotes(row) : []),
  empty: 'No hosts found.',
};

/** `dynamic status`: the Nodes of the cluster. */
export const NODES: StatusView = {
  columns: () => [
    NODE,
    { header: 'BACKEND', cell: ({ dynamic }) => dynamic?.config.backend ?? null },
    { header: 'STATE', cell: ({ dynamic }) => dynamic?.verdict.state ?? null },
    { header: 'CHANGED', cell: ({ dynamic }, now) => ageText(dynamic?.verdict.since ?? null, now) },
    // Kubelets up to 1.23 and earlier versions of the agent do not record the time of a report.
    { header: 'REPORTED', cell: ({ dynamic }, now) => ageText(new Date(dynamic?.config.report?.at ?? Number.NaN), now) },
    {
      header: 'ASSIGNED',
      cell: ({ dynamic }) => (dynamic?.config.source.source == null ? null : describeSource(dynamic.config.source.source)),
    },
    { header: 'ACTIVE', cell: activeText },
    { header: 'LAST KNOWN GOOD', cell: lastKnownGoodText },
  ],
  wide: [
    KUBELET,
    { header: 'READY', cell: ({ ready }) => (ready === 'Ready' ? 'yes' : 'no') },
    { header: 'ASSIGNED BY', cell: ({ dynamic }) => dynamic?.config.assigner?.by ?? null },
    { header: 'REASON', cell: ({ dynamic }) => dynamic?.config.assigner?.reason ?? null },
  ],
  unknown: '-',
  document: ({ dynamic }) => (dynamic === null ? {} : nodeDocument(dynamic)),
  notes: nodeNotes,
  empty: 'No nodes found.',
};

/**
 * The table of an overview.
 * @param options.withProblems the problems of hosts are lines below their rows, as in a table that is watched
 */
export function tableOf(view: StatusView, { rows, failure }: Overview, now: Date, { withProblems = false } = {}): WatchedTable {
  const columns = view.columns(rows);
  const cellsOf = (row: OverviewRow, wanted: readonly Column[]): readonly string[] =>
    wanted.map(({ cell }) => cell(row, now) ?? view.unknown);
  const problemsOf = (name: string | null): readonly string[] =>
    name === null ? [] : (failure?.problems ?? []).filter(({ host }) => host === name).map(formatProblem);
  return {
    columns: columns.map(({ header }) => header),
    wide: view.wide.map(({ header }) => header),
    rows: rows.map((row) => ({
      name: row.host === null ? `node/${row.node}` : `host/${row.host}`,
      cells: cellsOf(row, columns),
      wide: cellsOf(row, view.wide),
      document: view.document(row),
      notes: [...view.notes(row, problemsOf(row.host)), ...(withProblems ? problemsOf(row.host) : [])],
    })),
    empty: view.empty,
  };
}

/** A ConfigMap without its namespace; a path as it is. */
function shortName(configuration: string | null): string | null {
  if (configuration === null || configuration.startsWith('/')) return configuration;
  return configuration.replace(/^[^/ ]+\//, '');
}

function driftText({ drift, changed }: OverviewRow): string | null {
  if (drift === null) return null;
  if (drift.length === 0) return 'none';
  return `${drift.length} ${drift.length === 1 ? 'difference' : 'differences'}${changed === null ? '' : `: ${changed}`}`;
}

/** `client in 34d`; an expired one, or one with another error, says so. */
function expiryText({ certificate }: OverviewRow, now: Date): string | null {
  if (certificate === null || certificate.notAfter === null) return null;
  const left = certificate.notAfter.getTime() - now.getTime();
  return left <= 0 ? `${certificate.role} expired` : `${certificate.role} in ${formatAge(left)}`;
}

function ageText(at: Date | null, now: Date): string | null {
  return at === null || Number.isNaN(at.getTime()) ? null : formatAge(now.getTime() - at.getTime());
}

function activeText({ dynamic }: OverviewRow): string | null {
  const { status, report } = dynamic?.config ?? { status: null, report: null };
  if (report?.observed === false) return 'unknown';
  return status === null ? null : status.active ? describeIdentity(status.active) : 'local';
}

function lastKnownGoodText({ dynamic }: OverviewRow): string | null {
  const { status } = dynamic?.config ?? { status: null };
  return status === null ? null : status.lastKnownGood ? describeIdentity(status.lastKnownGood) : 'local';
}

function unseenNotes({ host, node, unseen }: OverviewRow): readonly string[] {
  return unseen.map((why) => `${host ?? node}: not read: ${why}`);
}

function nodeNotes({ dynamic }: OverviewRow): readonly string[] {
  if (dynamic === null) return [];
  const { config, verdict } = dynamic;
  return [
    ...(verdict.why === null ? [] : [`${config.name}: ${verdict.why}.${verdict.hint === null ? '' : ` ${verdict.hint}.`}`]),
    ...(config.status?.error ? [`${config.name}: reported error: "${config.status.error}"`] : []),
  ];
}
