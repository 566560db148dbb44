import { combineFacts } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { initSystem } from '../core/facts/init-system.ts';
import type { FileFact, HttpFact } from '../core/facts/question.ts';
import type { UnitState } from '../core/facts/unit.ts';
import type { Change, HostChange, PhasePlan } from '../core/plan/change.ts';
import { diffDirectory, diffFile, type WantedFile } from '../core/plan/diff-file.ts';
import { revertChanges } from '../core/plan/revert.ts';
import { UNIT_FILE_PATHS } from '../core/systemd/kubelet-unit-paths.ts';
import { type HealthTarget, isHealthy, kubeletHealth, waitForHealthyKubelet } from '../engine/kubelet-health.ts';
import { observe } from '../engine/observe.ts';
import { definePhase } from '../engine/phase.ts';

export interface KubeletStartInput {
  /** In the order they are written. */
  readonly files: readonly WantedFile[];
  /** Of those, the ones systemd reads itself: a change needs a daemon-reload. */
  readonly unitFiles: readonly WantedFile[];
  /** Made before anything is written, when missing. */
  readonly directories: readonly { readonly path: string; readonly mode: number }[];
  readonly health: HealthTarget;
  /** False for a user who may not chown (an unprivileged `--rootfs`). */
  readonly mayChown: boolean;
}

interface KubeletStartFacts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly init: 'systemd' | 'openrc' | null;
  readonly health: { readonly unit: UnitState | null; readonly healthz: HttpFact | null };
}

const UNIT = 'kubelet';

/** Writes the kubelet's files and (re)starts it, only when something changed or it does not run. kubeadm 1.36: phase kubelet-start of init and join. */
export const kubeletStart = definePhase<KubeletStartInput, KubeletStartFacts>({
  name: 'kubelet-start',
  short: 'Write the kubelet configuration and (re)start the kubelet',
  observe: (context, input) => {
    const own = [...input.unitFiles, ...input.files, ...input.directories].map(({ path }) => path);
    const paths = [...new Set([...own, ...UNIT_FILE_PATHS])];
    return observe(
      context.host,
      combineFacts({ files: fileFacts(paths), init: initSystem, health: kubeletHealth(input.health.url) }),
      context.signal,
    );
  },
  plan: planKubeletStart,
  verify: async (context, input, facts) => {
    if (facts.init === 'systemd') await waitForHealthyKubelet(context, 'kubelet-start', input.health);
  },
  undo: (facts, applied) => (isHealthy(facts.health) ? undoKubeletStart(facts, applied) : null),
  verifyUndone: (context, input) => waitForHealthyKubelet(context, 'kubelet-start', input.health),
});

function planKubeletStart(facts: KubeletStartFacts, input: KubeletStartInput): PhasePlan {
  const found = (path: string): FileFact | null => facts.files.get(path) ?? null;
  const directories = input.directories.map(({ path, mode }) => diffDirectory(found(path), path, mode)).filter((change) => change !== null);
  const diff = (file: WantedFile): HostChange | null => diffFile(found(file.path), file, { mayChown: input.mayChown });
  const unitFiles = input.unitFiles.map(diff).filter((change) => change !== null);
  const files = input.files.map(diff).filter((change) => change !== null);
  const writes = [...directories, ...unitFiles, ...files];
  if (facts.init !== 'systemd') return planWithoutSystemd(facts.init, writes);
  const changes = [...writes, ...planUnit(facts, unitFiles.length > 0, [...unitFiles, ...files])];
  return changes.length === 0 ? { changes, noop: 'the files are as wanted and the kubelet is healthy' } : { changes };
}

function planWithoutSystemd(init: KubeletStartFacts['init'], changes: readonly Change[]): PhasePlan {
  const where =
    init === 'openrc'
      ? 'the host uses OpenRC: restart the kubelet there'
      : 'systemd does not run there: the kubelet is started when the host boots with these files';
  return { changes, deferred: where, ...(changes.length === 0 ? { noop: 'the files are as wanted' } : {}) };
}

function planUnit(facts: KubeletStartFacts, unitFilesChange: boolean, writes: readonly HostChange[]): readonly HostChange[] {
  const { unit } = facts.health;
  const changes: HostChange[] = [];
  if (unitFilesChange || unit?.needsReload === true) {
    changes.push({
      kind: 'daemon-reload',
      because: unitFilesChange ? 'its unit files changed' : 'its unit files changed since systemd read them',
    });
  }
  if (unit === null || unit.unitFileState === 'disabled' || unit.loadState === 'not-found') {
    changes.push({ kind: 'enable-unit', unit: UNIT, because: 'it would not start at boot' });
  }
  const because = whyRestart(facts, writes);
  if (because !== null) changes.push({ kind: 'restart-unit', unit: UNIT, because });
  return changes;
}

function whyRestart({ health, files }: KubeletStartFacts, writes: readonly HostChange[]): string | null {
  const changed = writes.flatMap((change) => (change.kind === 'write-file' ? [change.path] : []));
  if (changed.length > 0) return `${changed.join(', ')} changed`;
  if (health.unit?.activeState !== 'active') return `it is ${health.unit?.activeState ?? 'not running'}`;
  if (!isHealthy(health)) return 'it does not answer healthz';
  if (health.unit.needsReload) return 'its unit files changed since it started';
  // A run that was killed between writing and restarting, or somebody's edit: the kubelet that runs has not read these files.
  const { startedAt } = health.unit;
  const newer = startedAt === null ? [] : [...files].filter(([, file]) => (file?.modifiedAt ?? 0) > startedAt).map(([path]) => path);
  return newer.length === 0 ? null : `${newer.join(', ')} changed since it started`;
}

/** The files from before, and the restart that makes the kubelet read them. */
function undoKubeletStart(facts: KubeletStartFacts, applied: readonly HostChange[]): readonly HostChange[] | null {
  const files = revertChanges(applied);
  if (files.length === 0) return null;
  const because = 'going back to what was there before';
  const reload: readonly HostChange[] = applied.some((change) => change.kind === 'daemon-reload')
    ? [{ kind: 'daemon-reload', because }]
    : [];
  return facts.init === 'systemd' ? [...files, ...reload, { kind: 'restart-unit', unit: UNIT, because }] : files;
}
