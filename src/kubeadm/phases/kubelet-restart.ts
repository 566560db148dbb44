import type { FileFact } from '../../host/facts/query.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { highestImpact } from '../../host/plan/impact.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import {
  type KubeletReading,
  kubeletFieldChanges,
  type PlacedFieldChange,
  type SetupChange,
} from '../../kubelet/effective/field-changes.ts';
import type { KubeletSetup } from '../../kubelet/effective/kubelet-setup.ts';
import { CONFIG_DROP_INS_README, isOwnConfigDropIn } from '../../kubelet/facts/own-config-drop-ins.ts';
import { type HealthState, isHealthy } from '../../kubelet/health/observe.ts';

export const UNIT = 'kubelet';

const NO_FIELDS: NonNullable<ReturnType<typeof kubeletFieldChanges>> = { ofConfig: [], ofFlags: [] };

/**
 * Adds the impact to the changes of a running kubelet: of its configuration, unit and kubeadm-flags.env by the fields and
 * flags that change, of all others that of a restart. A host whose kubelet does not run or is unhealthy has no running
 * configuration that a change could disturb.
 * @param wasHealthy the kubelet was healthy before the changes
 * @param input the written files, and what the kubelet reads before and after; without it all fields are unknown
 */
export function withImpact(
  wasHealthy: boolean,
  input: {
    readonly files: readonly { readonly path: string }[];
    readonly unitFiles: readonly { readonly path: string }[];
    readonly setups?: SetupChange;
    readonly reading?: KubeletReading;
  },
  changes: readonly HostChange[],
): readonly HostChange[] {
  const { setups, reading } = input;
  if (!wasHealthy || setups?.before === null) return changes;
  const found = setups === undefined || reading === undefined ? NO_FIELDS : kubeletFieldChanges(setups.before, setups.after, reading);
  const written = [...input.files, ...input.unitFiles].map(({ path }) => path);
  const isOfKubelet = (change: HostChange): change is Extract<HostChange, { kind: 'write-file' | 'remove-file' }> =>
    (change.kind === 'write-file' && written.includes(change.path)) || (change.kind === 'remove-file' && isOwnConfigDropIn(change.path));
  const units = input.unitFiles.map(({ path }) => path);
  const decides = ({ path }: { readonly path: string }): boolean =>
    path === KUBELET_CONFIG_FILE ||
    path === FLAGS_ENV ||
    units.includes(path) ||
    (isOwnConfigDropIn(path) && path !== CONFIG_DROP_INS_README);
  const deciding = changes.filter(isOfKubelet).filter(decides);
  // A field of a file that is not changed itself changes because another one is, or because of an earlier edit.
  const carrierOf = ({ files }: PlacedFieldChange, usual: readonly string[]): HostChange | undefined =>
    [...files, ...usual].flatMap((path) => deciding.find((change) => change.path === path) ?? [])[0] ??
    deciding[0] ??
    changes.find(({ kind }) => kind === 'restart-unit');
  const carried = [
    ...(found?.ofConfig ?? []).map((field) => ({ field, carrier: carrierOf(field, [KUBELET_CONFIG_FILE]) })),
    ...(found?.ofFlags ?? []).map((field) => ({ field, carrier: carrierOf(field, [FLAGS_ENV, ...units]) })),
  ];
  return changes.map((change): HostChange => {
    const fields = carried.filter(({ carrier }) => carrier === change).map(({ field: { files: _, ...field } }) => field);
    const impact = highestImpact(['safe', ...fields.map((field) => field.impact)]) ?? 'safe';
    if (change.kind === 'restart-unit') return { ...change, impact, ...(fields.length === 0 ? {} : { fields }) };
    if (!isOfKubelet(change)) return change;
    if (!decides(change)) return { ...change, impact: 'safe' };
    // The effect of unknown fields is unknown.
    if (found === null) return { ...change, impact: 'unsafe' };
    return { ...change, impact, ...(fields.length === 0 && units.includes(change.path) ? {} : { fields }) };
  });
}

interface Found {
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly health: HealthState;
}

interface Planned {
  readonly writes: readonly HostChange[];
  readonly setups: SetupChange | undefined;
}

/**
 * Reloads systemd, enables and restarts the kubelet where the host needs it.
 * @param unitFilesChange the run writes unit files
 */
export function planRestart(facts: Found, unitFilesChange: boolean, planned: Planned): readonly HostChange[] {
  const { unit } = facts.health;
  const changes: HostChange[] = [];
  if (unitFilesChange || unit?.needsReload === true) {
    changes.push({
      kind: 'daemon-reload',
      reason: unitFilesChange ? 'the unit files of the kubelet change' : 'the unit files of the kubelet changed since systemd read them',
    });
  }
  if (unit === null || unit.unitFileState === 'disabled' || unit.loadState === 'not-found') {
    changes.push({ kind: 'enable-unit', unit: UNIT, reason: 'the unit is not enabled at boot' });
  }
  const reason = whyRestart(facts, planned);
  if (reason !== null) changes.push({ kind: 'restart-unit', unit: UNIT, reason });
  return changes;
}

function whyRestart({ health, files }: Found, { writes, setups }: Planned): string | null {
  const changed = writes.flatMap((change) => (change.kind === 'write-file' || change.kind === 'remove-file' ? [change.path] : []));
  if (changed.length > 0) return `${changed.join(', ')} ${changed.length === 1 ? 'changes' : 'change'}`;
  if (health.unit?.activeState !== 'active') return `the kubelet is ${health.unit?.activeState ?? 'not running'}`;
  if (!isHealthy(health)) return 'healthz is not ok';
  if (health.unit.needsReload) return 'its unit files changed since it started';
  // The running kubelet has not read these files: a run was killed before the restart, or a file was edited.
  const { startedAt } = health.unit;
  const newer = startedAt === null ? [] : [...files].filter(([, file]) => (file?.modifiedAt ?? 0) > startedAt).map(([path]) => path);
  if (newer.length > 0) return `${newer.join(', ')} changed since the kubelet started`;
  const places = pendingPlaces(setups);
  return places === null ? null : `the command line of the kubelet changed since it started${places === '' ? '' : `: ${places}`}`;
}

/** Where flags are set that the running kubelet does not have; empty: it has flags that are no longer set. Null: neither. */
function pendingPlaces(setups: SetupChange | undefined): string | null {
  if (setups === undefined || setups.before === null) return null;
  const { before, after } = setups;
  const textOf = ({ flags }: KubeletSetup): string => flags.map(({ name, value }) => `--${name}=${value}`).join('\0');
  if (textOf(before) === textOf(after)) return null;
  const added = after.flags.filter(({ name, value }) => !before.flags.some((flag) => flag.name === name && flag.value === value));
  return [...new Set(added.map(({ name, value, source }) => `--${name}=${value} (${source})`))].join(', ');
}
