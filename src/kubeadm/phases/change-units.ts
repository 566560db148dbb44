import { observe } from '../../host/access/observe.ts';
import { describeCommit } from '../../host/commit/commit-problems.ts';
import { type CommitRecord, commitRecord } from '../../host/commit/record.ts';
import { combineFacts, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import { definePhase } from '../../host/phase.ts';
import type { HostChange, PhasePlan } from '../../host/plan/change.ts';
import { type DesiredFile, diffFile } from '../../host/plan/diff-file.ts';
import { revertChanges } from '../../host/plan/revert.ts';
import { waitForUnit } from '../../host/unit-ready.ts';
import { isHealthy, kubeletHealth } from '../../kubelet/health/observe.ts';
import type { KubeletVerification } from '../../kubelet/health/observe-change.ts';
import { prepareVerification } from '../../kubelet/health/verify-change.ts';
import { type HealthTarget, waitForHealthyKubelet, waitForStartedKubelet } from '../../kubelet/health/wait-healthy.ts';

/** Systemd files other than the kubelet's own, and the units to start or stop with them. */
export interface ChangeUnitsInput {
  readonly files: readonly DesiredFile[];
  readonly removed: readonly string[];
  /** A unit to enable and start with these files; null: none. */
  readonly running: string | null;
  /** A unit to stop with its files; null: none. */
  readonly stopped: string | null;
  /** URL on the host that returns 200 when the unit works; null: no health check. */
  readonly readyUrl: string | null;
  /** When and why the kubelet is restarted; null: not restarted. */
  readonly kubelet: { readonly when: 'changed' | 'always'; readonly reason: string } | null;
  readonly health: HealthTarget;
  /**
   * Verifies at the API server that the node is as healthy as before, and that the kubelet runs its
   * configuration.
   */
  readonly verification: (KubeletVerification & { readonly before: string | null; readonly after: string }) | null;
}

interface Facts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly running: UnitState | null;
  readonly stopped: UnitState | null;
  readonly kubelet: Parameters<typeof isHealthy>[0];
  readonly commit: CommitRecord | null;
}

const KUBELET = 'kubelet';

/**
 * Creates a phase that writes or removes systemd files and starts or stops their units. The kubelet is
 * restarted only if required; if it was healthy before and is not afterwards, the previous files are
 * restored.
 * @param links created by enabling a unit; restored with the files
 */
export function changeUnits(name: string, short: string, links: readonly string[] = []) {
  return definePhase<ChangeUnitsInput | null, Facts | null>({
    name,
    short,
    observe: async ({ host, signal }, input) => (input === null ? null : observe(host, factsOf(input), signal)),
    plan: (facts, input) => (facts === null || input === null ? { changes: [] } : planUnits(facts, input)),
    verify: async (context, input) => {
      if (input === null) return undefined;
      const { kubelet, health, verification, running, readyUrl } = input;
      const lasts = kubelet === null ? undefined : await waitForStartedKubelet(context, name, health, verification?.nodeName);
      if (running !== null) await waitForUnit(context, name, { unit: running, readyUrl });
      return lasts;
    },
    undo: (facts, applied) => (facts !== null && isHealthy(facts.kubelet) ? undoUnits(facts, applied, links) : null),
    verifyUndone: async (context, input) => {
      if (input !== null) await waitForHealthyKubelet(context, name, input.health);
    },
    commit: {
      paths: links,
      prepare: async (context, input, _facts, changes) => {
        if (input?.verification == null) return async () => undefined;
        const restarts = changes.some((change) => change.kind === 'restart-unit' && change.unit === KUBELET);
        const { before, after, ...verification } = input.verification;
        return prepareVerification(context, verification, { phase: name, before, after, restarts });
      },
    },
  });
}

function factsOf({ files, removed, running, stopped, health }: ChangeUnitsInput): Fact<Facts> {
  return combineFacts({
    files: fileFacts([...files.map(({ path }) => path), ...removed]),
    running: unitState(running ?? KUBELET),
    stopped: unitState(stopped ?? KUBELET),
    kubelet: kubeletHealth(health.url),
    commit: commitRecord,
  });
}

function planUnits(facts: Facts, input: ChangeUnitsInput): PhasePlan {
  const writes = input.files.map((file) => diffFile(facts.files.get(file.path) ?? null, file)).filter((change) => change !== null);
  const removals = input.removed.flatMap((path): readonly HostChange[] => {
    const found = facts.files.get(path) ?? null;
    return found === null ? [] : [{ kind: 'remove-file', path, before: beforeOf(found), reason: 'no longer needed' }];
  });
  const isChanged = writes.length + removals.length > 0;
  const stops = input.stopped !== null && isUpNow(facts.stopped);
  const restarts = input.kubelet !== null && (isChanged || input.kubelet.when === 'always');
  const needsReload =
    isChanged || facts.kubelet.unit?.needsReload === true || (input.running !== null && facts.running?.needsReload === true);
  const changes: readonly HostChange[] = [
    ...(stops ? [{ kind: 'stop-unit', unit: input.stopped as string, reason: 'no longer needed' } as const] : []),
    ...writes,
    ...removals,
    ...(needsReload ? [{ kind: 'daemon-reload', reason: 'the unit files change' } as const] : []),
    ...planRunning(facts, input, writes),
    ...(restarts ? [{ kind: 'restart-unit', unit: KUBELET, reason: input.kubelet.reason } as const] : []),
    ...planConfirmation(facts),
  ];
  return changes.length === 0 ? { changes, noop: 'the units are unchanged' } : { changes };
}

function planRunning({ running }: Facts, input: ChangeUnitsInput, writes: readonly HostChange[]): readonly HostChange[] {
  const { running: unit } = input;
  if (unit === null) return [];
  const enable =
    running?.unitFileState === 'enabled' ? [] : [{ kind: 'enable-unit', unit, reason: 'the unit is not enabled at boot' } as const];
  const reason =
    running?.activeState !== 'active'
      ? 'not running'
      : writes.length > 0
        ? 'its files changed'
        : running.needsReload
          ? 'its unit changed'
          : null;
  return [...enable, ...(reason === null ? [] : [{ kind: 'restart-unit', unit, reason } as const])];
}

/** Confirms a change of a run that was killed before it confirmed it. */
function planConfirmation({ commit }: Facts): readonly HostChange[] {
  return commit?.state === 'armed' ? [{ kind: 'confirm-commit', id: commit.id, reason: describeCommit(commit) }] : [];
}

/**
 * The changes that roll back those of units and their files.
 * @returns null: no file was changed
 */
export function undoUnits(
  { running, stopped }: Pick<Facts, 'running' | 'stopped'>,
  applied: readonly HostChange[],
  links: readonly string[],
): readonly HostChange[] | null {
  const reason = 'rolling back to the previous configuration';
  const files = revertChanges(applied);
  if (files.length === 0) return null;
  const wasEnabled = applied.some(({ kind }) => kind === 'enable-unit') && running?.unitFileState !== 'enabled';
  const isNew = (unit: string): boolean => unit !== KUBELET && !isUpNow(running);
  // A new unit is stopped before its file is removed.
  const ends = applied.flatMap((change): readonly HostChange[] =>
    change.kind === 'restart-unit' && isNew(change.unit) ? [{ ...change, kind: 'stop-unit', reason }] : [],
  );
  const starts = applied.flatMap((change): readonly HostChange[] => {
    if (change.kind === 'restart-unit') return isNew(change.unit) ? [] : [{ ...change, reason }];
    if (change.kind !== 'stop-unit') return [];
    const enable = stopped?.unitFileState === 'enabled' ? [{ ...change, kind: 'enable-unit', reason } as const] : [];
    return [...enable, { ...change, kind: 'restart-unit', reason }];
  });
  return [
    ...ends,
    ...files,
    ...(wasEnabled ? links.map((path) => ({ kind: 'remove-file', path, before: null, reason }) as const) : []),
    ...(applied.some(({ kind }) => kind === 'daemon-reload') ? [{ kind: 'daemon-reload', reason } as const] : []),
    ...starts,
  ];
}

function beforeOf(found: FileFact) {
  return found.content === undefined || found.target !== undefined
    ? null
    : { content: found.content, mode: found.mode, owner: found.owner };
}

function isUpNow(unit: UnitState | null): boolean {
  return unit !== null && unit.loadState !== 'not-found' && unit.activeState !== 'inactive' && unit.activeState !== 'failed';
}
