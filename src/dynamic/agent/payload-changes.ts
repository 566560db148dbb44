import { type JsonObject, jsonEqual } from '../../base/json.ts';
import type { Catalogue, LiveChange, Minor } from '../../kubelet/catalogue/catalogue.ts';
import {
  type HostText,
  layerRunningConfig,
  type ParsedHostFile,
  type PlacedFlag,
  parseHostFile,
  type RunningConfig,
} from '../../kubelet/effective/running-config.ts';
import { isAtOrBelow, type Origin } from '../../kubelet/layers/layers.ts';
import { describeOverridden, isSetBy } from '../../kubelet/layers/overridden-fields.ts';
import { type ClassifiedChange, classifyChanges, worstLiveChange } from '../../kubelet/validate/classify-changes.ts';
import type { SignerLimits } from '../signing/signers.ts';
import { OVERRIDDEN } from './status.ts';

/**
 * The highest class of change applied to a running node; higher classes are rejected. A change of class
 * `drain` is also applied to a drained node.
 */
export interface ChangePolicy {
  readonly allow: LiveChange;
  /** The node is cordoned and has no pods that a drain would evict. */
  readonly isDrained: boolean;
  /** Hashes of payloads that this node already runs or ran: only their dangerous fields are checked. Default: none. */
  readonly proven?: readonly string[];
  /** The signer of the ConfigMap (`the signer alice@example.com`) and its limits; absent: not signed, or not limited. */
  readonly signer?: (SignerLimits & { readonly name: string }) | undefined;
}

export interface PayloadNode {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  readonly flags: readonly PlacedFlag[];
  /** Drop-in files of `--config-dir`, which override the file. */
  readonly dropIns: readonly HostText[];
  readonly name: string;
  readonly group: string | null;
  /** Directory of the agent's checkpoints, against which relative paths of a payload are resolved. */
  readonly directory: string;
  /** The kubelet configuration without an assignment. */
  readonly local: HostText;
  /** The effective configuration without apiVersion and kind; null: unknown. */
  readonly running: JsonObject | null;
  readonly cgroupVersion: 1 | 2 | null;
  /** The minor of the kubelet if the catalogue does not contain it; `minor` is then the nearest one. */
  readonly kubeletMinor?: Minor | undefined;
}

type FoundChanges = ReturnType<typeof changesOf>;

/** Compares a payload with the local configuration and with the running one. */
export function changesOf(configFile: ParsedHostFile, local: ParsedHostFile, node: PayloadNode) {
  const { minor, catalogue, flags } = node;
  const input = { catalogue, minor, flags, dropIns: node.dropIns.map(parseHostFile), dynamicConfig: null };
  const running = layerRunningConfig({ ...input, configFile });
  const desired = running.layered.config;
  const before = layerRunningConfig({ ...input, configFile: local }).layered.config;
  const [payloadAlone, localAlone] = [configFile, local].map(
    (file) => layerRunningConfig({ ...input, flags: [], dropIns: [], configFile: file }).layered.config,
  ) as [JsonObject, JsonObject];
  const pathsFrom = (other: JsonObject): ReadonlySet<string> => new Set(classifyChanges(other, payloadAlone, node).map(({ path }) => path));
  return {
    /** Relative to the effective configuration: the changes to apply. */
    ofRunning: classifyChanges(node.running ?? before, desired, node),
    /** Relative to the local configuration: the changes to report. */
    ofLocal: classifyChanges(before, desired, node),
    /**
     * The fields that the payload sets to other values than the local configuration, both without flags and drop-ins: a
     * flag may override a field today and be removed tomorrow.
     */
    ofPayload: classifyChanges(localAlone, payloadAlone, node),
    /** Paths of `ofPayload` with other values than the flags, drop-ins and the local configuration give together. */
    deviating: pathsFrom(before),
    /** Paths of `ofPayload` with other values than the kubelet runs with. */
    notRunning: pathsFrom(node.running ?? before),
    /** The effective configuration with the payload. */
    desired,
    /** The effective configuration with its sources. */
    layered: running.layered,
  };
}

/**
 * The fields of the ConfigMap without effect, because a flag or a drop-in file of the node sets another value:
 * `maxPods (desired 50, running 33) is overridden by /etc/kubernetes/kubelet.conf.d/50-pods.conf:3`.
 * @param sets leaves that the ConfigMap sets; null: all of the file
 */
export function overriddenBy({ layered }: FoundChanges, sets: readonly string[] | null): readonly string[] {
  return [...layered.history].flatMap(([path, steps]) => {
    const last = steps.at(-1);
    const own = steps.findLast(({ origin }) => origin.layer === 'config file');
    if (last === undefined || own === undefined || !isShadow(last.origin) || jsonEqual(own.value, last.value)) return [];
    if (sets !== null && !isSetBy(sets, path)) return [];
    const field = describeOverridden({ path, desired: own.value, running: last.value, isChanged: true });
    return [`${field} ${OVERRIDDEN} ${last.origin.source}`];
  });
}

/** The flag or drop-in file that overrides a field of the file; null: none. */
export function shadowsOf({ layered }: Pick<RunningConfig, 'layered'>): (path: string) => string | null {
  return (path) => {
    const origin = layered.history.get(path)?.at(-1)?.origin;
    return origin !== undefined && isShadow(origin) ? origin.source : null;
  };
}

function isShadow({ layer }: Origin): boolean {
  return layer === 'flag' || layer === 'drop-in';
}

/**
 * The changes that the policy excludes: those of the running configuration, and the unsafe fields that the payload sets,
 * also where a flag or a drop-in file overrides them. A drained node and an earlier trial permit no dangerous field.
 * @param isProven the node already runs or ran the payload: its changes are in force
 * @param sets leaves that the ConfigMap sets; null: all of the file
 */
export function forbiddenChanges(
  found: FoundChanges,
  policy: ChangePolicy,
  { isProven, sets }: { readonly isProven: boolean; readonly sets: readonly string[] | null },
): readonly ClassifiedChange[] {
  const changing = isProven ? [] : found.ofRunning.filter((change) => !isAllowed(change, policy));
  const known = new Set(changing.map(({ path }) => path));
  const set = found.ofPayload.filter(
    ({ path, class: name, danger }) =>
      !isAtMost(name, policy.allow) &&
      name === 'unsafe' &&
      !known.has(path) &&
      found.deviating.has(path) &&
      (danger !== null || (!isProven && found.notRunning.has(path))) &&
      (sets === null || isSetBy(sets, path)),
  );
  return [...changing, ...set];
}

function isAllowed(change: ClassifiedChange, { allow, isDrained }: ChangePolicy): boolean {
  return isAtMost(change.class, allow) || (isDrained && isAtMost(change.class, 'drain'));
}

function isAtMost(name: LiveChange, most: LiveChange): boolean {
  return worstLiveChange([{ class: name }, { class: most }]) === most;
}

/**
 * The changes that exceed the limits of the signer, as a clause; null: none. Fields count if the ConfigMap sets them,
 * also where a flag or a drop-in file overrides them, or if the running configuration changes.
 */
export function excessOf({ ofRunning, ofPayload }: FoundChanges, sets: readonly string[] | null, { signer }: ChangePolicy): string | null {
  if (signer === undefined) return null;
  const { name, allow, fields } = signer;
  const changes = [...new Map([...ofPayload, ...ofRunning].map((change) => [change.path, change])).values()];
  const more = allow === undefined ? [] : changes.filter((change) => !isAtMost(change.class, allow));
  if (more.length > 0) return `${name} may make only changes up to class ${allow} on this node, not ${classedFields(more).join(', ')}`;
  const paths = [...new Set([...(sets ?? []), ...changes.map(({ path }) => path)])];
  const others = fields === undefined ? [] : paths.filter((path) => !fields.some((field) => isAtOrBelow(path, field)));
  if (others.length === 0) return null;
  return `${name} may not set ${others.slice(0, 5).join(', ')}${others.length > 5 ? ` and ${others.length - 5} more fields` : ''} on this node`;
}

export function describeForbidden(changes: readonly ClassifiedChange[], { layered }: FoundChanges, { allow }: ChangePolicy): string {
  const [only, ...more] = changes;
  const isOne = more.length === 0 && only !== undefined;
  const shadow = isOne ? (shadowsOf({ layered })(only.path) ?? null) : null;
  const hidden = shadow === null ? '' : `; ${shadow} overrides the field at present`;
  const reported = isOne ? [`${only.path} (${only.class}: ${only.reason}${hidden})`] : classedFields(changes);
  const worst = worstLiveChange(changes);
  const need = `need ${worst === 'drain' ? 'a drained node or ' : ''}--allow ${worst}`;
  return `the changes of ${reported.join(', ')} ${need}, but the agent of this node runs with --allow ${allow} (see dynamic enable --allow)`;
}

/** The first fields with their classes: `cgroupDriver (unsafe)`. */
function classedFields(changes: readonly ClassifiedChange[]): readonly string[] {
  const shown = changes.slice(0, 5).map(({ path, class: name }) => `${path} (${name})`);
  return changes.length > shown.length ? [...shown, `${changes.length - shown.length} more`] : shown;
}

/** `maxPods from 110 to 50`. */
export function describeChange({ path, before, after }: ClassifiedChange): string {
  const text = (value: unknown): string => (value === undefined ? 'unset' : JSON.stringify(value));
  return `${path} from ${text(before)} to ${text(after)}`;
}
