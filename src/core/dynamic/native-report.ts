import type { Problem } from '../errors.ts';
import type { KubeletFailure } from '../facts/kubelet-failure.ts';
import type { FileFact } from '../facts/question.ts';
import type { UnitState } from '../facts/unit.ts';
import type { HostChange } from '../plan/change.ts';
import { formatAge } from '../text/age.ts';
import { type ConfigIdentity, describeIdentity, sameIdentity } from './config-source.ts';
import { type MetaFile, nativeStorePaths, parseMetaFile, renderMetaFile } from './native-store.ts';

/** What stands in a store, as it was read. */
export interface StoreReading {
  /** `--dynamic-config-dir`. */
  readonly directory: string;
  /** Unix seconds of the host's clock. */
  readonly now: number;
  readonly unit: UnitState | null;
  readonly files: Readonly<Record<MetaName, FileFact | null>>;
  readonly payloads: Readonly<Record<MetaName, PayloadReading>>;
  readonly checkpoints: readonly CheckpointReading[];
  /** Half-written things a kubelet left when it was killed. */
  readonly leftovers: readonly string[];
  /** How often the kubelet died in the last two minutes, by its journal. A change of its configuration is none: it leaves with exit code 0. */
  readonly recentFailures: number;
  /** Why, as its journal says it; null when it did not. */
  readonly failure: KubeletFailure | null;
}

export type MetaName = 'assigned' | 'lastKnownGood';

/** Null: the payload is not there. Else what the kubelet refuses of it; warnings do not count. */
export type PayloadReading = readonly Problem[] | null;

export interface CheckpointReading {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly keys: readonly string[];
}

export interface StoreReport {
  readonly assigned: MetaFile;
  readonly lastKnownGood: MetaFile;
  /** What a kubelet that is started now runs with; `nothing`: it leaves with exit code 1. */
  readonly starts: 'local' | MetaName | 'nothing';
  /** Seconds since `meta/assigned` was written: above 600 what is assigned becomes the last known good, however it runs. */
  readonly assignedAgeSeconds: number | null;
  readonly isLooping: boolean;
  readonly findings: readonly Problem[];
}

const TRIAL_SECONDS = 600;
/** One death may be an accident. */
const MANY_FAILURES = 3;

/** Says what a store means for the kubelet that is started with it, and what is wrong. */
export function reportStore(reading: StoreReading): StoreReport {
  const [assigned, lastKnownGood] = [metaOf(reading.files.assigned), metaOf(reading.files.lastKnownGood)];
  const starts = startsWith(reading, assigned, lastKnownGood);
  const written = reading.files.assigned?.modifiedAt ?? null;
  const assignedAgeSeconds = written === null || assigned.kind !== 'source' ? null : Math.max(0, Math.floor(reading.now - written));
  const looping = isLooping(reading);
  const report = { assigned, lastKnownGood, starts, assignedAgeSeconds, isLooping: looping };
  return { ...report, findings: [...metaFindings(reading, report), ...runFindings(reading, report)] };
}

/**
 * What gets a kubelet back that does not stay up, or could not be started; nothing for others. It is stopped, told the last known good where that is whole and is not what it dies of, else the local configuration, and
 * started. Payloads are left where they are.
 */
export function planStoreRepair(reading: StoreReading, report: StoreReport): readonly HostChange[] {
  if (!report.isLooping && report.starts !== 'nothing') return [];
  const paths = nativeStorePaths(reading.directory);
  const good = storeWayBack(reading, report);
  const because =
    good === null ? 'the kubelet is to start with its local configuration' : `the kubelet is to start with ${describeIdentity(good)}`;
  const writes = (['assigned', 'lastKnownGood'] as const).flatMap((name): readonly HostChange[] => {
    const [path, file, content] = [paths[name], reading.files[name], renderMetaFile(good)];
    if (file?.type === 'file' && file.content === content) return [];
    const aside: readonly HostChange[] =
      file === null || file.type === 'file'
        ? []
        : [{ kind: 'move-file', path, to: `${path}.broken-${Math.floor(reading.now)}`, because: 'it is no file' }];
    const before = file?.type === 'file' ? { content: file.content ?? '', mode: file.mode, owner: file.owner } : null;
    const action = before === null ? 'create' : 'update';
    return [...aside, { kind: 'write-file', path, mode: 0o600, owner: 'root:root', action, content, before, because }];
  });
  return [
    { kind: 'stop-unit', unit: 'kubelet', because: 'it writes there too' },
    ...writes,
    { kind: 'restart-unit', unit: 'kubelet', because },
  ];
}

/**
 * The checkpoints of a store that no file below `meta` names; the newest is left, the kubelet may be about to name it. None where one of those files can't be
 * read: it may name any of them.
 */
export function unusedCheckpoints({ checkpoints }: StoreReading, { assigned, lastKnownGood }: StoreReport): StoreReading['checkpoints'] {
  const metas = [assigned, lastKnownGood];
  if (metas.some(({ kind }) => kind === 'corrupt')) return [];
  const newest = checkpoints.reduce((most, { resourceVersion }) => Math.max(most, Number(resourceVersion)), 0);
  const isNamed = (uid: string, version: string): boolean =>
    metas.some((meta) => meta.kind === 'source' && meta.identity.uid === uid && meta.identity.resourceVersion === version);
  return checkpoints.filter(({ uid, resourceVersion }) => !isNamed(uid, resourceVersion) && Number(resourceVersion) < newest);
}

/** What a kubelet is told by a repair; null: the local configuration. */
export function storeWayBack(reading: StoreReading, { assigned, lastKnownGood }: StoreReport): ConfigIdentity | null {
  if (lastKnownGood.kind !== 'source' || reading.payloads.lastKnownGood === null || reading.payloads.lastKnownGood.length > 0) return null;
  const same = assigned.kind === 'source' && sameIdentity(assigned.identity, lastKnownGood.identity);
  return same ? null : lastKnownGood.identity;
}

function metaOf(file: FileFact | null): MetaFile {
  if (file === null) return { kind: 'local' };
  if (file.type !== 'file') return { kind: 'corrupt', why: `it is a ${file.type}, not a file` };
  return parseMetaFile(file.content ?? '');
}

function startsWith({ payloads }: StoreReading, assigned: MetaFile, lastKnownGood: MetaFile): StoreReport['starts'] {
  if (assigned.kind === 'corrupt' || lastKnownGood.kind === 'corrupt') return 'nothing';
  if (assigned.kind === 'local') return 'local';
  if (isWhole(payloads.assigned)) return 'assigned';
  if (lastKnownGood.kind === 'local') return 'local';
  return isWhole(payloads.lastKnownGood) ? 'lastKnownGood' : 'nothing';
}

function isWhole(payload: PayloadReading): boolean {
  return payload !== null && payload.length === 0;
}

/** The count of restarts that systemd keeps says nothing about now. */
function isLooping({ unit, recentFailures }: StoreReading): boolean {
  if (unit === null) return false;
  if (unit.activeState === 'failed' || recentFailures >= MANY_FAILURES) return true;
  return unit.subState === 'auto-restart' && recentFailures > 0;
}

type Judged = Omit<StoreReport, 'findings'>;

function metaFindings(reading: StoreReading, report: Judged): readonly Problem[] {
  const paths = nativeStorePaths(reading.directory);
  return (['assigned', 'lastKnownGood'] as const).flatMap((name): readonly Problem[] => {
    const meta = report[name];
    if (meta.kind === 'corrupt')
      return [
        {
          code: 'DYNAMIC_META_CORRUPT',
          message: `${paths[name]}: ${meta.why}: the kubelet leaves with exit code 1 each time it is started, and does not use what else is there`,
          mend: REPAIR,
        },
      ];
    if (meta.kind === 'local') return [];
    const payload = reading.payloads[name];
    const what = `what is ${name === 'assigned' ? 'assigned' : 'the last known good'}, ${describeIdentity(meta.identity)},`;
    if (payload === null)
      return [
        {
          code: 'DYNAMIC_CHECKPOINT_MISSING',
          message: `${what} is not in the store`,
          mend: 'The kubelet fetches it again, and uses it after one more restart',
        },
      ];
    const [first, ...more] = payload;
    if (first === undefined) return [];
    const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
    return [
      {
        code: 'DYNAMIC_PAYLOAD_REFUSED',
        message: `${what} is refused: ${first.path ?? ''} ${first.message}${others}`,
        mend: 'Assign another',
      },
    ];
  });
}

function runFindings(
  { unit, failure, recentFailures }: StoreReading,
  { starts, isLooping: looping, assigned, lastKnownGood, assignedAgeSeconds }: Judged,
): readonly Problem[] {
  const findings: Problem[] = [];
  if (starts === 'nothing' && assigned.kind !== 'corrupt' && lastKnownGood.kind !== 'corrupt')
    findings.push({
      code: 'DYNAMIC_NOTHING_LEFT',
      message:
        'neither what is assigned nor the last known good can be used: the kubelet leaves with exit code 1, and never uses its local configuration',
      mend: REPAIR,
    });
  if (looping) {
    const deaths = recentFailures === 0 ? '' : `, it died ${recentFailures} times in two minutes`;
    // What is said of the store is the cause then; the journal may tell of an earlier one.
    const cause = failure === null || starts === 'nothing' ? '' : `: ${failure.cause}`;
    findings.push({
      code: 'DYNAMIC_CRASH_LOOP',
      message: `the kubelet does not stay up${deaths}${cause}`,
      mend: starts === 'local' ? (failure?.mend ?? REPAIR) : REPAIR,
    });
  }
  const same = assigned.kind === 'source' && lastKnownGood.kind === 'source' && sameIdentity(assigned.identity, lastKnownGood.identity);
  if (looping && same && starts === 'assigned')
    findings.push({
      code: 'DYNAMIC_LOOP_PROMOTED',
      message: 'what it dies of is its last known good by now: only the age of a file counts for that',
      mend: REPAIR,
    });
  else if (looping && assignedAgeSeconds !== null && starts === 'assigned') {
    const left = TRIAL_SECONDS - assignedAgeSeconds;
    const when = left > 0 ? `in ${formatAge(left * 1000)}` : 'with its next start';
    findings.push({
      code: 'DYNAMIC_LOOP_PROMOTED',
      severity: 'warning',
      message: `what it dies of becomes its last known good ${when}`,
      mend: REPAIR,
    });
  }
  if (unit !== null && unit.restartPolicy !== 'always')
    findings.push({
      code: 'DYNAMIC_UNIT_STAYS_DOWN',
      severity: 'warning',
      message: `the unit has Restart=${unit.restartPolicy || 'no'}: a kubelet that changes its configuration leaves with exit code 0, and stays down`,
      mend: 'Set Restart=always',
    });
  return findings;
}

const REPAIR = 'dynamic inspect --repair gets it back; assign what is right or reset the node first';
