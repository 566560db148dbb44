import { AppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { describeCommit } from '../../host/commit/commit-problems.ts';
import { commitRecord } from '../../host/commit/record.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import { type PlannedWorkflow, planWorkflow } from '../../host/run-workflow.ts';
import { NODE_SETTINGS_PATH } from '../../kubeadm/node-settings/node-settings.ts';
import type { RestoredFiles } from '../../kubeadm/phases/restore-files.ts';
import { nodeCluster } from '../../kubeadm/use-cases/node-cluster.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { isKubeletFile, KUBELET_FILES } from '../../kubeadm/workflows/node/restored-files.ts';
import { undoWorkflow } from '../../kubeadm/workflows/undo-node.ts';
import { CONFIG_DROP_IN_NAMES, ownConfigDropInPaths } from '../../kubelet/facts/own-config-drop-ins.ts';
import { decideUndo, describeEntry, entriesToUndo, type Undo } from '../history/decide-undo.ts';
import { type HistoryEntry, observedHistory } from '../history/host-history.ts';
import { type FileState, MAX_UNDO_RECORDS, parseUndoRecord, undoRecordPath } from '../history/undo-record.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { type NamedHostsRequest, namedHosts } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';
import { upgradeNodeOptions } from './upgrade-node-options.ts';

export interface UndoRequest extends HostsSettings {
  readonly hosts: NamedHostsRequest;
  /** The beginning of the id of the run after which the hosts had the state, or `oldest`; undefined: the last change is undone. */
  readonly to: string | undefined;
  readonly cluster: KubeconfigRequest;
}

/**
 * Prepares `undo`.
 * @throws AppError with exit code 2 for an unknown host
 */
export async function openUndo(
  services: NodeCommandPorts,
  request: UndoRequest,
  { reporter, opened }: CommandScope,
): Promise<HostsCommand> {
  const { run, to } = request;
  const named = await namedHosts(services, request.hosts, { changes: true });
  const fields = { settings: [], declared: [] };
  const common = await upgradeNodeOptions(services, { fields, forget: false }, { timeouts: undefined, patches: null, run });
  const admin = isKubeconfigGiven(request.cluster) ? await openCluster(services, request.cluster, { writes: reporter }) : null;
  const cluster = admin?.cluster ?? null;
  if (cluster !== null) opened(cluster);
  const trust = admin === null ? null : operatorNodeTrust(services, admin);
  return {
    targets: named.map(({ target }) => target),
    cluster,
    ...(cluster === null ? { clusterOf: (host) => nodeCluster(services, host) } : {}),
    planHost: async (context, own) => {
      const { undo, ...files } = await findUndo(context, to);
      if (undo.undone.length === 0) return nothingToUndo(context, to);
      const repeats = undoOfUndo(undo, to);
      // The warning names the change already.
      const undone = repeats.length > 0 ? [] : undo.undone;
      const options = { ...common, ...files, trust, nodeName: null, warnings: [...repeats, ...warningsOf(undo)] };
      if (own.dryRun) reportUndone(context, undone);
      const planned = await planWorkflow(undoWorkflow, context, options, own);
      if (own.exact !== undefined) return planned;
      return {
        ...planned,
        apply: async (applyContext) => {
          reportUndone(applyContext, undone);
          return planned.apply(applyContext);
        },
      };
    },
    run,
    inspectsFirst: true,
    warnings: [],
  };
}

const FACTS = combineFacts({ history: observedHistory, commit: commitRecord, dropIns: CONFIG_DROP_IN_NAMES });

/** Reads what the history keeps, and the present files of the kubelet. */
async function findUndo({ host, signal }: PhaseContext, to: string | undefined) {
  const { history, commit, dropIns } = await observe(host, FACTS, signal);
  if (commit?.state === 'armed' || commit?.state === 'reverting') {
    const hint = 'To keep the change, run kubeletadm fleet confirm; to roll it back now, run kubeletadm fleet revert';
    throw new AppError({ host: host.name, code: 'UNDO_NOT_POSSIBLE', message: describeCommit(commit), hint }, { exitCode: 3 });
  }
  const entries = entriesToUndo(host.name, history, to);
  const ids = entries.flatMap(({ id }) => id ?? []).slice(0, MAX_UNDO_RECORDS);
  const records = await readFiles(host, ids.map(undoRecordPath), signal);
  const recordOf = ({ id }: HistoryEntry) => parseUndoRecord((id === undefined ? null : records.get(undoRecordPath(id)))?.content ?? '');
  const changed = entries.flatMap((entry) => recordOf(entry)?.files.map(({ path }) => path) ?? []);
  const paths = [...new Set([...KUBELET_FILES, ...ownConfigDropInPaths(dropIns), ...changed])];
  const present = new Map([...(await readFiles(host, paths, signal))].flatMap(([path, file]) => asPresent(path, file)));
  const undo = decideUndo({ host: host.name, entries, history, to, recordOf, present });
  const stateOf = (path: string): FileState => {
    const restored = undo.restore.get(path);
    if (restored !== undefined) return restored;
    const file = present.get(path);
    return file === undefined ? null : { content: file.content, mode: file.mode, owner: file.owner };
  };
  const kubelet = [...new Set([...KUBELET_FILES, ...ownConfigDropInPaths(dropIns), ...[...undo.restore.keys()].filter(isKubeletFile)])];
  // A file that neither exists nor existed is not removed.
  const restore: RestoredFiles = new Map(
    kubelet.filter((path) => present.has(path) || undo.restore.has(path)).map((path) => [path, stateOf(path)] as const),
  );
  const others: RestoredFiles = new Map([...undo.restore].filter(([path]) => !isKubeletFile(path)));
  return { undo, restore, others };
}

/** Files of the largest size, of which one answer of a host holds no more. */
const FILES_AT_ONCE = 10;

async function readFiles(host: PhaseContext['host'], paths: readonly string[], signal: PhaseContext['signal']) {
  const found = new Map<string, FileFact | null>();
  for (let at = 0; at < paths.length; at += FILES_AT_ONCE) {
    const some = await observe(host, fileFacts(paths.slice(at, at + FILES_AT_ONCE)), signal);
    for (const [path, file] of some) found.set(path, file);
  }
  return found;
}

/** Nothing, if the path is no file. */
function asPresent(path: string, file: FileFact | null) {
  if (file?.type !== 'file') return [];
  const { content = '', mode, owner, modifiedAt } = file;
  return [[path, { content, mode, owner, modifiedAt }] as const];
}

function reportUndone({ host, reporter }: PhaseContext, undone: Undo['undone']): void {
  for (const entry of undone) reporter.report({ level: 'info', code: 'UNDO_CHANGE', host: host.name, message: undoes(entry) });
}

/** `undoes apply of alice@laptop at 2026-03-01T12:00:00Z (0a1b2c3d), reason "OPS-1"`. */
function undoes(entry: HistoryEntry): string {
  const reason = entry.reason === undefined ? '' : `, reason ${JSON.stringify(entry.reason)}`;
  return `undoes ${entry.command === 'undo' ? 'the ' : ''}${describeEntry(entry)}${reason}`;
}

/** Warns that an undo of the last change makes a change again, because the last change is an undo. */
function undoOfUndo({ undone: [last] }: Undo, to: string | undefined): readonly Warning[] {
  if (last?.command !== 'undo' || to !== undefined) return [];
  const message = `${undoes(last)}: the host returns to the state before that undo. To go further back, pass --to with an id of fleet history`;
  return [{ code: 'UNDO_OF_UNDO', message }];
}

/** Warns of what a later command sets again, and of what stays. */
function warningsOf({ undone, restore, left }: Undo): readonly Warning[] {
  const restoresSettings = restore.has(NODE_SETTINGS_PATH);
  const again = undone.flatMap((entry): readonly Warning[] => {
    const { command, fields, changes } = entry;
    const paths = changes.flatMap((what) => what.split(' write-file ')[1] ?? []);
    const names = [...new Set(fields.length > 0 ? fields.map(({ field }) => field) : paths)].join(', ');
    const source =
      command === 'apply'
        ? 'the fleet file'
        : command === 'upgrade node' && !restoresSettings
          ? 'ConfigMap kubelet-config of the cluster'
          : null;
    if (source === null || names === '') return [];
    const message = `${source} set ${names}: the next kubeletadm ${command} sets it again, unless ${source} is changed first`;
    return [{ code: 'UNDO_SET_AGAIN', message }];
  });
  const kept = left.map((what): Warning => ({ code: 'UNDO_INCOMPLETE', message: `not undone: ${what}` }));
  return [...again, ...kept];
}

/** The plan of a host that has the state already. */
function nothingToUndo({ host }: PhaseContext, to: string | undefined): PlannedWorkflow {
  const noop = to === undefined ? 'nothing to undo' : `the host has had no change since ${to}`;
  const plan = { name: host.name, phases: [{ phase: 'undo', plan: { changes: [], noop } }] };
  return { host: plan, warnings: [], refusals: [], apply: async () => plan };
}
