import { type ExitCode, unlessRefused } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import type { Reporter } from '../base/reporter.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type AssignmentRequest, reportImpact } from '../dynamic/use-cases/assign.ts';
import { type PushedFileRequest, pushFile } from '../dynamic/use-cases/push-file.ts';
import { readRollout } from '../fleet/use-cases/load-fleet.ts';
import { type FieldChange, formatFieldChange, formatImpact } from '../host/plan/impact.ts';
import type { RunSettings } from '../host/run-settings.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { LabelSelector } from '../kube/label-selector.ts';
import { withCluster } from '../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { describeSource } from '../kubelet/layers/config-source.ts';
import type { Rollout } from '../rollouts/api/rollout.ts';
import { ROLLOUT_API_VERSION } from '../rollouts/api/schema.ts';
import { type CreateRolloutRequest, createRollout, nodeSelectorOf } from '../rollouts/use-cases/create-rollout.ts';
import {
  controllerNamespace,
  controllerNotRunning,
  type FoundRollout,
  findRollout,
  isControllerAlive,
  listRollouts,
} from '../rollouts/use-cases/find-rollouts.ts';
import {
  listRevisions,
  payloadChanges,
  type RolloutRevision,
  readRevisions,
  revisionChanges,
  revisionState,
  runningChanges,
  setPaused,
  undoRollout,
} from '../rollouts/use-cases/rollout-revisions.ts';
import { strategyOfGates } from '../rollouts/use-cases/strategy-of-gates.ts';
import { rolloutEnd, rolloutState, waitForRollout } from '../rollouts/use-cases/wait-for-rollout.ts';
import { dryRunMark } from './dry-run.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, type ReadFormat, renderDocument } from './output/show-document.ts';
import { showTable, type TableRequest } from './show-table.ts';

export interface RolloutRequest {
  readonly name: string;
  readonly cluster: KubeconfigRequest;
  readonly verbosity: number;
}

export interface CreateRequest extends RolloutRequest, Omit<CreateRolloutRequest, 'cluster' | 'name'> {
  /** Null: all nodes. */
  readonly selector: LabelSelector | null;
  /** `--gates`. */
  readonly gates: string | undefined;
  readonly format: DocumentFormat;
}

/** `dynamic assign --rollout NAME`. */
export interface AssignRolloutRequest extends RolloutRequest, Pick<CreateRolloutRequest, 'spec' | 'canaries' | 'namespace'> {
  readonly assigned: Extract<AssignmentRequest['assigned'], { readonly kind: 'config-map' | 'file' }>;
  readonly selector: LabelSelector;
  readonly gates: string | undefined;
  readonly run: RunSettings;
  readonly waits: boolean;
  readonly format: DocumentFormat;
}

export interface StatusRequest extends RolloutRequest {
  readonly waits: boolean;
  /** 0: no limit. */
  readonly timeoutMs: number;
  readonly format: ReadFormat;
}

export interface UndoRequest extends RolloutRequest {
  readonly toRevision: number | undefined;
  readonly run: RunSettings;
}

export interface DiffRequest extends RolloutRequest {
  /** Undefined: the running configuration. */
  readonly revision: number | undefined;
  /** Undefined: the payload of the object. */
  readonly toRevision: number | undefined;
  readonly failsIfChanged: boolean;
  readonly format: ReadFormat;
}

/** `rollout create NAME`. */
export async function runRolloutCreate(services: Services, request: CreateRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  await createAndPrint(services, { ...request, spec: await specOf(services, request) }, reporter);
  return 0;
}

async function specOf(
  services: Services,
  { selector, gates, spec }: Pick<CreateRequest, 'selector' | 'gates' | 'spec'>,
): Promise<JsonObject> {
  const nodeSelector = selector === null ? {} : nodeSelectorOf(selector, '--selector');
  if (gates === undefined) return { nodeSelector, ...spec };
  const strategy = { ...(spec.strategy as JsonObject | undefined), ...strategyOfGates(await readRollout(services, gates)) };
  return { nodeSelector, ...spec, strategy };
}

async function createAndPrint(
  services: Services,
  request: CreateRolloutRequest & Pick<CreateRequest, 'format'>,
  reporter: Reporter,
): Promise<void> {
  const { run, format } = request;
  const object = await createRollout(services, request, reporter, async (planned, create) => (run.dryRun ? planned : create()));
  services.output.stdout(format === 'text' ? done(request.name, `created${dryRunMark(run)}`) : renderDocument(object, format));
}

/** `dynamic assign --selector L --rollout NAME`: creates the object, and waits until it is complete or stalled. */
export async function runAssignRollout(services: Services, request: AssignRolloutRequest): Promise<ExitCode> {
  const { name, assigned, cluster, run, waits, format, verbosity } = request;
  const reporter = services.reporter({ verbosity, format: 'text' });
  const plan = (pushed: PushedFileRequest) =>
    pushFile(services, { pushed, cluster, run }, reporter, async ({ push }) => ({ push, payload: push.source }));
  const source = assigned.kind === 'file' ? await plan(assigned.pushed) : { payload: assigned.source };
  const created = { ...request, ...source, spec: await specOf(services, request), requiresController: true };
  if (run.dryRun || !waits) {
    await createAndPrint(services, created, reporter);
    return 0;
  }
  await createRollout(services, created, reporter, (_, create) => create());
  reporter.report({
    level: 'info',
    code: 'ROLLOUT_NODES',
    message: `created KubeletConfigRollout ${name}; interrupting this command does not stop the rollout`,
  });
  return runRolloutStatus(services, { name, cluster, verbosity, waits, timeoutMs: 0, format });
}

/** As kubectl prints it. */
function done(name: string, what: string): string {
  return `kubeletconfigrollout.kubeletadm.dev/${name} ${what}\n`;
}

/** `rollout status NAME`. With `--wait`, the exit code is that of the end. */
export async function runRolloutStatus(services: Services, request: StatusRequest): Promise<ExitCode> {
  const { name, waits, timeoutMs, format, verbosity } = request;
  return withCluster<ExitCode>(services, request.cluster, async (cluster) => {
    const reporter = services.reporter({ verbosity, format: 'text' });
    const before = await findRollout(cluster, name);
    const isOver = rolloutEnd(before.rollout) !== null;
    if (!isOver) await warnWithoutController(services, cluster, before.rollout, reporter);
    const found = waits && !isOver ? await waitForRollout(cluster, name, { ...services, reporter, timeoutMs }) : before;
    services.output.stdout(format === 'text' ? statusText(found.rollout, services.clock.now()) : renderDocument(found.object, format));
    const end = waits ? rolloutEnd(found.rollout) : null;
    if (end?.problem != null) throw end.problem;
    return 0;
  });
}

async function warnWithoutController(services: Services, cluster: Cluster, rollout: Rollout, reporter: Reporter): Promise<void> {
  const revisions = await unlessRefused(listRevisions(cluster, rollout.name));
  if (revisions === null) return;
  const namespace = controllerNamespace(revisions);
  if ((await isControllerAlive(cluster, { namespace, now: services.clock.now() })) === false)
    reporter.report({ level: 'warning', ...controllerNotRunning(namespace) });
}

function statusText(rollout: Rollout, now: Date): string {
  const { name, status } = rollout;
  const { nodes = [], omittedNodes = 0 } = status;
  const rows = nodes.map(({ name: node, state, since, message = '' }) => [
    node,
    state,
    since === undefined ? '-' : ageOf(since, now),
    message,
  ]);
  const omitted = omittedNodes === 0 ? [] : [`and ${omittedNodes} more nodes`];
  return joinLines([
    `${name}: ${rolloutState(rollout)}`,
    ...(rows.length === 0 ? [] : renderTable([['NODE', 'STATE', 'SINCE', 'MESSAGE'], ...rows])),
    ...omitted,
  ]);
}

function ageOf(time: string, now: Date): string {
  return formatAge(now.getTime() - Date.parse(time));
}

/** `rollout list`. */
export async function runRolloutList(
  services: Services,
  { cluster: named, output }: { readonly cluster: KubeconfigRequest; readonly output: TableRequest },
): Promise<ExitCode> {
  const found = await withCluster(services, named, listRollouts);
  const now = services.clock.now();
  showTable(
    services.output,
    {
      columns: ['NAME', 'PHASE', 'NODES', 'UPDATED', 'IN PROGRESS', 'FAILED', 'AGE'],
      wide: ['REVISION', 'MESSAGE'],
      rows: found.map(({ rollout }) => listRow(rollout, now)),
      empty: 'No rollouts found.',
      document: () => ({
        apiVersion: ROLLOUT_API_VERSION,
        kind: 'KubeletConfigRolloutList',
        items: found.map(({ object }: FoundRollout) => object),
      }),
    },
    output,
  );
  return 0;
}

function listRow(rollout: Rollout, now: Date) {
  const { name, status, createdAt } = rollout;
  const { selected, updated, inProgress, failed } = status.counts ?? {};
  const counts = [selected, updated, inProgress, failed].map((count) => String(count ?? '-'));
  return {
    name: `kcr/${name}`,
    cells: [name, status.phase ?? '-', ...counts, ageOf(createdAt, now)],
    wide: [status.updateRevision ?? '-', rolloutState(rollout)],
  };
}

/** `rollout pause NAME`, `rollout resume NAME`. */
export async function runRolloutPause(services: Services, { name, cluster: given }: RolloutRequest, pauses: boolean): Promise<ExitCode> {
  const isChanged = await withCluster(services, given, (cluster) => setPaused(cluster, name, pauses));
  const state = pauses ? 'paused' : 'resumed';
  services.output.stdout(done(name, isChanged ? state : `unchanged: ${pauses ? 'already paused' : 'not paused'}`));
  return 0;
}

/** `rollout undo NAME`. */
export async function runRolloutUndo(services: Services, { name, toRevision, run, ...request }: UndoRequest): Promise<ExitCode> {
  const { revision, isPresent, fields } = await withCluster(services, request.cluster, (cluster) =>
    undoRollout(cluster, name, { toRevision }),
  );
  const what = isPresent ? `unchanged: the payload is that of revision ${revision.number}` : `rolled back to revision ${revision.number}`;
  services.output.stdout(joinLines([...(isPresent ? [] : fieldLines(fields)), done(name, `${what}${dryRunMark(run)}`).trimEnd()]));
  return 0;
}

/** One line per field. Null: unknown. */
function fieldLines(fields: readonly FieldChange[] | null): readonly string[] {
  if (fields === null) return ['The changed fields are unknown, because a ConfigMap of a revision no longer exists.'];
  return fields.map((change) => `${formatFieldChange(change)} (${formatImpact(change)})`);
}

/** `rollout history NAME`: oldest first. */
export async function runRolloutHistory(
  services: Services,
  { name, output, ...request }: RolloutRequest & { readonly output: TableRequest },
): Promise<ExitCode> {
  const { rollout, revisions } = await withCluster(services, request.cluster, async (cluster) => {
    const { rollout: found } = await findRollout(cluster, name);
    const all = await readRevisions(cluster, found);
    const changes = await Promise.all(
      all.map(({ payload }, i) => payloadChanges(cluster, i === 0 ? null : (all[i - 1] as RolloutRevision).payload, payload)),
    );
    return { rollout: found, revisions: all.map((revision, i) => ({ ...revision, fields: changes[i] ?? null })) };
  });
  const now = services.clock.now();
  const items = revisions.map((revision) => ({ ...revision, state: revisionState(rollout, revision) }));
  showTable(
    services.output,
    {
      columns: ['REVISION', 'NAME', 'AGE', 'STATE', 'CHANGED FIELDS'],
      wide: ['CONFIGMAP'],
      rows: items.map(({ number, name: revision, createdAt, state, payload, fields }) => ({
        name: `controllerrevision.apps/${revision}`,
        cells: [String(number), revision, ageOf(createdAt, now), state ?? '-', fields === null ? 'unknown' : fieldsCell(fields)],
        wide: [payload.configMapRef === undefined ? 'overlay' : describeSource(payload.configMapRef)],
      })),
      empty: 'No revision is recorded: a controller records each payload before it changes nodes.',
      document: () => ({ apiVersion: ROLLOUT_API_VERSION, kind: 'RolloutHistory', rollout: name, items }),
    },
    output,
  );
  return 0;
}

function fieldsCell(fields: readonly FieldChange[]): string {
  return fields.length === 0 ? 'none' : fields.map(formatFieldChange).join(', ');
}

/** `rollout diff NAME`. Exit code 6 with `--exit-code` if fields differ. */
export async function runRolloutDiff(services: Services, request: DiffRequest): Promise<ExitCode> {
  const { lines, document, isEqual } = await withCluster(services, request.cluster, (cluster) =>
    request.revision === undefined ? runningDiff(cluster, request.name) : revisionDiff(cluster, request),
  );
  const { format, failsIfChanged } = request;
  services.output.stdout(
    format === 'text' ? joinLines(lines) : renderDocument({ apiVersion: ROLLOUT_API_VERSION, kind: 'RolloutDiff', ...document }, format),
  );
  return failsIfChanged && !isEqual ? 6 : 0;
}

interface Diff {
  readonly lines: readonly string[];
  readonly document: JsonObject;
  readonly isEqual: boolean;
}

async function runningDiff(cluster: Cluster, name: string): Promise<Diff> {
  const { selected, fields } = await runningChanges(cluster, name);
  const lines: string[] = [];
  reportImpact(fields, { report: ({ message }) => lines.push(message) });
  const isEqual = [...fields.values()].every((changes) => changes !== null && changes.length === 0);
  const nodes = [...fields].map(([node, changes]) => ({ name: node, fields: changes as unknown as JsonObject[] | null }));
  const none =
    selected === 0 ? 'The rollout has no nodes.' : `No field differs: ${selected - fields.size} of ${selected} nodes run the payload.`;
  return { lines: isEqual ? [none] : lines, document: { rollout: name, nodes }, isEqual };
}

async function revisionDiff(cluster: Cluster, { name, revision, toRevision }: DiffRequest): Promise<Diff> {
  const { from, fields } = await revisionChanges(cluster, name, { revision, toRevision });
  const isEqual = fields !== null && fields.length === 0;
  const document = {
    rollout: name,
    revision: from.number,
    toRevision: toRevision ?? null,
    fields: fields as unknown as JsonObject[] | null,
  };
  return { lines: isEqual ? ['No field differs.'] : fieldLines(fields), document, isEqual };
}
