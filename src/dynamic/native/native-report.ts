import type { Problem } from '../../base/errors.ts';
import { formatAge } from '../../base/text/age.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { HostChange } from '../../host/plan/change.ts';
import type { KubeletFailure } from '../../kubelet/facts/kubelet-failure.ts';
import { type ConfigIdentity, describeIdentity, sameIdentity } from '../../kubelet/layers/config-source.ts';
import { type MetaFile, nativeCheckpointDirectory, nativeStorePaths, parseMetaFile, renderMetaFile } from './native-store.ts';

/** Content of a store of a kubelet up to 1.23. */
export interface ObservedStore {
  /** `--dynamic-config-dir`. */
  readonly directory: string;
  /** Unix seconds, by the clock of the host. */
  readonly now: number;
  readonly unit: UnitState | null;
  readonly files: Readonly<Record<MetaName, FileFact | null>>;
  readonly payloads: Readonly<Record<MetaName, PayloadReading>>;
  readonly comparisons: Readonly<Record<MetaName, CheckpointComparison>>;
  readonly checkpoints: readonly NativeCheckpoint[];
  /** Incomplete files of a kubelet that was killed while writing. */
  readonly leftovers: readonly string[];
  /**
   * Kubelet failures in the last two minutes, from its journal. A configuration change is not a failure: the
   * exit code is 0.
   */
  readonly recentFailures: number;
  /** The reason from its journal; null when the journal has none. */
  readonly failure: KubeletFailure | null;
}

export type MetaName = 'assigned' | 'lastKnownGood';

/** Null: the payload does not exist. Otherwise the errors for which the kubelet refuses it, without warnings. */
export type PayloadReading = readonly Problem[] | null;

/** Comparison of a checkpoint with the data of its ConfigMap. */
export type CheckpointComparison =
  | { readonly kind: 'equal' }
  /** A file of the checkpoint is missing or differs although the version of the ConfigMap is the same. */
  | { readonly kind: 'torn'; readonly path: string; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

export interface NativeCheckpoint {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly keys: readonly string[];
}

export interface StoreReport {
  readonly assigned: MetaFile;
  readonly lastKnownGood: MetaFile;
  /** Configuration of the next kubelet start; `nothing`: the kubelet exits with code 1. */
  readonly starts: 'local' | MetaName | 'nothing';
  /**
   * Age of `meta/assigned` in seconds: above 600 the assigned configuration becomes the last known good,
   * regardless of the kubelet's health.
   */
  readonly assignedAgeSeconds: number | null;
  readonly isLooping: boolean;
  readonly findings: readonly Problem[];
}

const TRIAL_SECONDS = 600;
/** A single failure can be accidental. */
const MANY_FAILURES = 3;

/** Reports the effect of a store on the next kubelet start, and its errors. */
export function reportStore(reading: ObservedStore): StoreReport {
  const [assigned, lastKnownGood] = [metaOf(reading.files.assigned), metaOf(reading.files.lastKnownGood)];
  const starts = startsWith(reading, assigned, lastKnownGood);
  const written = reading.files.assigned?.modifiedAt ?? null;
  const assignedAgeSeconds = written === null || assigned.kind !== 'source' ? null : Math.max(0, Math.floor(reading.now - written));
  const looping = isLooping(reading);
  const report = { assigned, lastKnownGood, starts, assignedAgeSeconds, isLooping: looping };
  return { ...report, findings: [...metaFindings(reading, report), ...runFindings(reading, report)] };
}

/**
 * Plans the repair of a store; empty for an intact store whose kubelet is healthy. The kubelet is stopped and
 * started with the last known good configuration if that is intact and not the cause of the crashes,
 * otherwise with the local configuration. A checkpoint that differs from its ConfigMap is removed: the
 * kubelet downloads it again with its first sync and restarts to use it. Other payloads are kept.
 */
export function planStoreRepair(reading: ObservedStore, report: StoreReport): readonly HostChange[] {
  const damaged = damagedCheckpoints(reading, report);
  if (!isStartImpossible(report) && damaged.length === 0) return [];
  const paths = nativeStorePaths(reading.directory);
  const desired = repairedMeta(reading, report);
  const good = desired.assigned;
  const reason = good === null ? 'start the kubelet with its local configuration' : `start the kubelet with ${describeIdentity(good)}`;
  const writes = (['assigned', 'lastKnownGood'] as const).flatMap((name): readonly HostChange[] => {
    const [path, file, content] = [paths[name], reading.files[name], renderMetaFile(desired[name])];
    if (file?.type === 'file' && file.content === content) return [];
    const aside: readonly HostChange[] =
      file === null || file.type === 'file'
        ? []
        : [{ kind: 'move-file', path, to: `${path}.broken-${Math.floor(reading.now)}`, reason: 'not a regular file' }];
    const before = file?.type === 'file' ? { content: file.content ?? '', mode: file.mode, owner: file.owner } : null;
    const action = before === null ? 'create' : 'update';
    return [...aside, { kind: 'write-file', path, mode: 0o600, owner: 'root:root', action, content, before, reason }];
  });
  return [
    { kind: 'stop-unit', unit: 'kubelet', reason: 'the kubelet writes to the same directory' },
    ...writes,
    ...incompleteCheckpointDirectories(reading, report).map(
      (path): HostChange => ({
        kind: 'remove-directory',
        path,
        reason: 'differs from its ConfigMap, which the kubelet then downloads again',
      }),
    ),
    { kind: 'restart-unit', unit: 'kubelet', reason },
  ];
}

/**
 * The checkpoints that no file below `meta` names, except the newest, which the kubelet may be about to use.
 * Empty if one of these files cannot be read, because it may name any checkpoint.
 */
export function unusedCheckpoints({ checkpoints }: ObservedStore, { assigned, lastKnownGood }: StoreReport): ObservedStore['checkpoints'] {
  const metas = [assigned, lastKnownGood];
  if (metas.some(({ kind }) => kind === 'corrupt')) return [];
  const newest = checkpoints.reduce((most, { resourceVersion }) => Math.max(most, Number(resourceVersion)), 0);
  const isNamed = (uid: string, version: string): boolean =>
    metas.some((meta) => meta.kind === 'source' && meta.identity.uid === uid && meta.identity.resourceVersion === version);
  return checkpoints.filter(({ uid, resourceVersion }) => !isNamed(uid, resourceVersion) && Number(resourceVersion) < newest);
}

/** Configuration of the kubelet after a repair; null: the local configuration. */
export function storeRollback(reading: ObservedStore, report: StoreReport): ConfigIdentity | null {
  return repairedMeta(reading, report).assigned;
}

/** Checkpoints that the kubelet must download again before using them: torn, or not in the store. */
export function damagedCheckpoints({ payloads, comparisons }: ObservedStore, report: Pick<StoreReport, MetaName>): readonly MetaName[] {
  return META_NAMES.filter((name) => report[name].kind === 'source' && (payloads[name] === null || comparisons[name].kind === 'torn'));
}

const META_NAMES = ['assigned', 'lastKnownGood'] as const;

function isStartImpossible({ isLooping: looping, starts }: StoreReport): boolean {
  return looping || starts === 'nothing';
}

/**
 * The new content of the meta files. A last known good configuration with a damaged checkpoint is dropped: a
 * kubelet that rolls back to it exits and never uses the local configuration.
 */
function repairedMeta(reading: ObservedStore, report: StoreReport): Readonly<Record<MetaName, ConfigIdentity | null>> {
  const damaged = damagedCheckpoints(reading, report);
  const { assigned, lastKnownGood } = report;
  const payload = reading.payloads.lastKnownGood;
  const isGood = lastKnownGood.kind === 'source' && !damaged.includes('lastKnownGood') && payload !== null && payload.length === 0;
  const same = assigned.kind === 'source' && lastKnownGood.kind === 'source' && sameIdentity(assigned.identity, lastKnownGood.identity);
  const good = isGood && !same ? lastKnownGood.identity : null;
  if (isStartImpossible(report)) return { assigned: good, lastKnownGood: good };
  return {
    assigned: damaged.includes('assigned') ? good : identityOf(assigned),
    lastKnownGood: damaged.includes('lastKnownGood') ? null : identityOf(lastKnownGood),
  };
}

function identityOf(meta: MetaFile): ConfigIdentity | null {
  return meta.kind === 'source' ? meta.identity : null;
}

function incompleteCheckpointDirectories({ directory, comparisons }: ObservedStore, report: StoreReport): readonly string[] {
  const paths = META_NAMES.flatMap((name) => {
    const identity = identityOf(report[name]);
    return identity !== null && comparisons[name].kind === 'torn' ? [nativeCheckpointDirectory(directory, identity)] : [];
  });
  return [...new Set(paths)];
}

function metaOf(file: FileFact | null): MetaFile {
  if (file === null) return { kind: 'local' };
  if (file.type !== 'file') return { kind: 'corrupt', why: `the path is a ${file.type}, not a file` };
  return parseMetaFile(file.content ?? '');
}

function startsWith({ payloads }: ObservedStore, assigned: MetaFile, lastKnownGood: MetaFile): StoreReport['starts'] {
  if (assigned.kind === 'corrupt' || lastKnownGood.kind === 'corrupt') return 'nothing';
  if (assigned.kind === 'local') return 'local';
  if (isWhole(payloads.assigned)) return 'assigned';
  if (lastKnownGood.kind === 'local') return 'local';
  return isWhole(payloads.lastKnownGood) ? 'lastKnownGood' : 'nothing';
}

function isWhole(payload: PayloadReading): boolean {
  return payload !== null && payload.length === 0;
}

/**
 * The restart counter of systemd has no time. Systemd restarts counting at each manual start, and failures
 * before that, for example before a repair, do not concern the current process.
 */
function isLooping(reading: ObservedStore): boolean {
  const { unit } = reading;
  if (unit === null) return false;
  const failures = failuresOf(reading);
  if (unit.activeState === 'failed' || failures >= MANY_FAILURES) return true;
  return unit.subState === 'auto-restart' && failures > 0;
}

function failuresOf({ unit, recentFailures }: Pick<ObservedStore, 'unit' | 'recentFailures'>): number {
  return unit === null ? recentFailures : Math.min(recentFailures, unit.restarts + 1);
}

const ASSIGN = 'kubeletadm dynamic assign NODE --file FILE';

type Validated = Omit<StoreReport, 'findings'>;

function metaFindings(reading: ObservedStore, report: Validated): readonly Problem[] {
  const paths = nativeStorePaths(reading.directory);
  return (['assigned', 'lastKnownGood'] as const).flatMap((name): readonly Problem[] => {
    const meta = report[name];
    if (meta.kind === 'corrupt')
      return [
        {
          code: 'DYNAMIC_META_CORRUPT',
          message: `the kubelet exits with code 1 at every start, because it cannot use ${paths[name]}: ${meta.why}`,
          hint: REPAIR,
        },
      ];
    if (meta.kind === 'local') return [];
    const payload = reading.payloads[name];
    const named = `the ${name === 'assigned' ? 'assigned' : 'last known good'} configuration, ${describeIdentity(meta.identity)}`;
    if (payload === null)
      return [
        {
          code: 'DYNAMIC_CHECKPOINT_MISSING',
          message: `the checkpoint (local copy) of ${named}, does not exist`,
          hint:
            name === 'assigned'
              ? 'Run kubeletadm dynamic inspect --repair HOST. The kubelet then downloads the ConfigMap again and restarts with it'
              : 'Run kubeletadm dynamic inspect --repair HOST. The kubelet then restarts without this last known good configuration',
        },
      ];
    const compared = reading.comparisons[name];
    if (compared.kind === 'torn')
      return [
        {
          code: 'DYNAMIC_CHECKPOINT_TORN',
          message: `${compared.path} ${compared.why}. The kubelet never downloads an existing checkpoint again`,
          hint: 'Run kubeletadm dynamic inspect --repair HOST --kubeconfig FILE. The command removes the checkpoint, so that the kubelet downloads the ConfigMap again',
        },
      ];
    const [first, ...more] = payload;
    if (first === undefined) return [];
    const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
    return [
      {
        code: 'DYNAMIC_PAYLOAD_REFUSED',
        message: `the kubelet refuses ${named}: ${first.path === undefined ? '' : `${first.path} `}${first.message}${others}. ${
          compared.kind === 'equal'
            ? 'The checkpoint is equal to its ConfigMap'
            : `The checkpoint was not compared with its ConfigMap: ${compared.why}`
        }`,
        hint:
          compared.kind === 'equal'
            ? `Assign a valid configuration: ${ASSIGN}`
            : `Compare the checkpoint with its ConfigMap: kubeletadm dynamic inspect HOST --kubeconfig FILE. If the checkpoint differs, add --repair to download the ConfigMap again. If both are equal, assign a valid configuration: ${ASSIGN}`,
      },
    ];
  });
}

function runFindings(
  { unit, failure, recentFailures }: ObservedStore,
  { starts, isLooping: looping, assigned, lastKnownGood, assignedAgeSeconds }: Validated,
): readonly Problem[] {
  const findings: Problem[] = [];
  const failures = failuresOf({ unit, recentFailures });
  if (starts === 'nothing' && assigned.kind !== 'corrupt' && lastKnownGood.kind !== 'corrupt')
    findings.push({
      code: 'DYNAMIC_NOTHING_LEFT',
      message:
        'the kubelet can use neither the assigned nor the last known good configuration. The kubelet exits with code 1 and never uses its local configuration',
      hint: REPAIR,
    });
  if (looping) {
    const deaths = failures === 0 ? '' : `: ${failures} failures in two minutes`;
    // The findings about the store are the cause then; the journal may be about an earlier failure.
    const cause = failure === null || starts === 'nothing' ? '' : `: ${failure.cause}`;
    findings.push({
      code: 'DYNAMIC_CRASH_LOOP',
      message: `the kubelet is in a crash loop${deaths}${cause}`,
      hint: starts === 'local' ? (failure?.hint ?? REPAIR) : REPAIR,
    });
  }
  const same = assigned.kind === 'source' && lastKnownGood.kind === 'source' && sameIdentity(assigned.identity, lastKnownGood.identity);
  if (looping && same && starts === 'assigned')
    findings.push({
      code: 'DYNAMIC_LOOP_PROMOTED',
      message:
        'the configuration that crashes the kubelet is already the last known good one. A kubelet up to 1.23 marks a configuration as good after ten minutes, even if the kubelet crashes',
      hint: REPAIR,
    });
  else if (looping && assignedAgeSeconds !== null && starts === 'assigned') {
    const left = TRIAL_SECONDS - assignedAgeSeconds;
    const when = left > 0 ? `in ${formatAge(left * 1000)}` : 'at the next start of the kubelet';
    findings.push({
      code: 'DYNAMIC_LOOP_PROMOTED',
      severity: 'warning',
      message: `the configuration that crashes the kubelet becomes the last known good one ${when}`,
      hint: REPAIR,
    });
  }
  if (unit !== null && unit.restartPolicy !== 'always')
    findings.push({
      code: 'DYNAMIC_UNIT_STAYS_DOWN',
      severity: 'warning',
      message: `kubelet.service has Restart=${unit.restartPolicy || 'no'}. To change its configuration, the kubelet exits with code 0, and systemd would not start the kubelet again`,
      hint: 'Set Restart=always in kubelet.service',
    });
  return findings;
}

const REPAIR =
  'Assign a valid configuration, or remove the assignment (kubeletadm dynamic reset NODE). Then run kubeletadm dynamic inspect --repair HOST';
