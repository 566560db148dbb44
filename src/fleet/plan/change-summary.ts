import { groupBy } from '../../base/group-by.ts';
import type { Json } from '../../base/json.ts';
import { truncate } from '../../base/text/table.ts';
import { describeDone } from '../../host/operation-kinds.ts';
import { type Change, type ClusterChange, changedRef, type HostChange, isClusterChange } from '../../host/plan/change.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import type { FieldChange } from '../../host/plan/impact.ts';
import { NODE_SETTINGS_PATH } from '../../kubeadm/node-settings/node-settings.ts';

/** More files, images or kinds of objects are counted, not named. */
const MOST_NAMED = 3;

/**
 * Summarises the applied changes of a host in a few clauses: `updated config.yaml`, `kubelet restarted`. The
 * clauses contain no name of the host, so that hosts with equal changes have equal summaries. Directories and
 * the file with the node settings are omitted, because they follow from the other changes.
 */
export function summarizeChanges({ phases }: Pick<HostPlan, 'phases'>): readonly string[] {
  const changes = phases.flatMap(({ plan }) => plan.changes);
  const deferred = phases.flatMap(({ phase, plan }) => (plan.deferred === undefined ? [] : [`${phase} deferred`]));
  const files = changes.filter((change) => change.kind !== 'make-directory' && !isBookkeeping(change));
  return [...summarize(files.length === 0 ? changes : files), ...deferred];
}

function isBookkeeping(change: Change): boolean {
  return 'path' in change && change.path === NODE_SETTINGS_PATH;
}

/** More fields of a file are counted, not named. */
const MOST_FIELDS = 3;
const MAX_VALUE = 30;

/** `config.yaml maxPods 70 → 72, podPidsLimit unset → 99`. */
function fieldsText(path: string, fields: readonly FieldChange[]): string {
  const named = fields.slice(0, MOST_FIELDS).map(({ field, before, after }) => `${field} ${valueText(before)} → ${valueText(after)}`);
  const more = fields.length > MOST_FIELDS ? [`${fields.length - MOST_FIELDS} more fields`] : [];
  return `${nameOf(path)} ${[...named, ...more].join(', ')}`;
}

function valueText(value: Json): string {
  return value === null ? 'unset' : truncate(typeof value === 'string' ? value : JSON.stringify(value), MAX_VALUE);
}

/** The fields that a change of a running kubelet's file changes; null: unknown, or none. */
function fieldsOf(change: Change): readonly FieldChange[] | null {
  if (change.kind !== 'write-file' && change.kind !== 'remove-file') return null;
  return change.fields !== undefined && change.fields.length > 0 ? change.fields : null;
}

function summarize(changes: readonly Change[]): readonly string[] {
  const paths = (desired: (change: Change) => boolean): readonly string[] => [
    ...new Set(changes.flatMap((change) => (desired(change) && 'path' in change ? [nameOf(change.path)] : []))),
  ];
  return [
    ...changes.flatMap((change) => {
      const fields = fieldsOf(change);
      return fields === null || !('path' in change) ? [] : [fieldsText(change.path, fields)];
    }),
    ...filesText(
      'updated',
      paths((change) => change.kind === 'write-file' && change.action === 'update' && fieldsOf(change) === null),
    ),
    ...filesText(
      'created',
      paths((change) => change.kind === 'write-file' && change.action === 'create'),
    ),
    ...filesText(
      'installed',
      paths(({ kind }) => kind === 'put-file' || kind === 'upload-file' || kind === 'download-file'),
    ),
    ...filesText(
      'removed',
      paths(({ kind }) => REMOVALS.has(kind)),
    ),
    ...namesText(
      'pulled',
      changes.flatMap((change) => (change.kind === 'pull-image' ? [change.image] : [])),
      'images',
    ),
    ...changes.flatMap((change): readonly string[] =>
      isClusterChange(change) || change.kind === 'pull-image' || FILE_KINDS.has(change.kind) ? [] : [commandText(change)],
    ),
    ...objectTexts(changes.filter(isClusterChange)),
  ].filter((clause, i, all) => all.indexOf(clause) === i);
}

const REMOVALS: ReadonlySet<string> = new Set(['remove-file', 'remove-directory', 'remove-empty-directory', 'empty-directory']);
const FILE_KINDS: ReadonlySet<string> = new Set([
  ...REMOVALS,
  'write-file',
  'put-file',
  'upload-file',
  'download-file',
  'make-directory',
  'daemon-reload',
]);

function filesText(verb: string, names: readonly string[]): readonly string[] {
  return namesText(verb, names, 'files');
}

function namesText(verb: string, names: readonly string[], plural: string): readonly string[] {
  if (names.length === 0) return [];
  return [`${verb} ${names.length <= MOST_NAMED ? names.join(', ') : `${names.length} ${plural}`}`];
}

function nameOf(path: string): string {
  return path.replace(/^.*\/(?=.)/, '');
}

function commandText(change: HostChange): string {
  switch (change.kind) {
    case 'restart-unit':
      return `${change.unit} restarted`;
    case 'start-unit':
      return `${change.unit} started`;
    case 'stop-unit':
      return `${change.unit} stopped`;
    case 'enable-unit':
      return `${change.unit} enabled`;
    default:
      return describeDone(change);
  }
}

/** Names only the kinds: the names of many objects contain the name of the host. */
function objectTexts(changes: readonly ClusterChange[]): readonly string[] {
  const verbOf = (kind: string): string => (/^(?:create|add)/.test(kind) ? 'created' : (VERBS[kind] ?? 'updated'));
  return [...groupBy(changes, ({ kind }) => verbOf(kind))].flatMap(([verb, group]) => {
    const kinds = [...new Set(group.map((change) => changedRef(change).kind))];
    return kinds.length <= MOST_NAMED ? kinds.map((kind) => `${kind} ${verb}`) : [`${group.length} objects ${verb}`];
  });
}

const VERBS: Readonly<Record<string, string>> = { 'delete-object': 'deleted', 'remove-etcd-member': 'deleted' };
