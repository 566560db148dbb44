import { type JsonObject, jsonEqual } from '../../base/json.ts';
import type { Catalogue, LiveChange, Minor } from '../../kubelet/catalogue.ts';
import {
  type HostText,
  layerRunningConfig,
  type ParsedHostFile,
  type PlacedFlag,
  parseHostFile,
  type RunningConfig,
} from '../../kubelet/effective/running-config.ts';
import type { LayeredConfig, Origin } from '../../kubelet/layers.ts';
import { describeOverridden, isSetBy } from '../../kubelet/overridden-fields.ts';
import { type ClassifiedChange, classifyChanges, worstLiveChange } from '../../kubelet/validate/classify-changes.ts';
import { OVERRIDDEN } from './status.ts';

/**
 * The highest class of change applied to a running node; higher classes are rejected. A change of class
 * `drain` is also applied to a cordoned node.
 */
export interface ChangePolicy {
  readonly allow: LiveChange;
  /** The Node is unschedulable, which shows that an administrator has drained it. */
  readonly isCordoned: boolean;
}

/** A kubelet, with the settings that override its configuration file. */
export interface StartedKubelet {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  readonly flags: readonly PlacedFlag[];
  /** Drop-in files of `--config-dir`, which override the file. */
  readonly dropIns: readonly HostText[];
}

/** The current state of the node that receives a payload. */
export interface PayloadNode extends StartedKubelet {
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

export interface FoundChanges {
  /** Relative to the effective configuration: the changes to apply. */
  readonly ofRunning: readonly ClassifiedChange[];
  /** Relative to the local configuration: the changes to report. */
  readonly ofLocal: readonly ClassifiedChange[];
  /** The effective configuration with the payload. */
  readonly desired: JsonObject;
  /** The effective configuration with its sources. */
  readonly layered: LayeredConfig;
}

export function changesOf(configFile: ParsedHostFile, local: ParsedHostFile, node: PayloadNode): FoundChanges {
  const { minor, catalogue, flags } = node;
  const input = { catalogue, minor, flags, dropIns: node.dropIns.map(parseHostFile), dynamicConfig: null };
  const running = layerRunningConfig({ ...input, configFile });
  const desired = running.layered.config;
  const before = layerRunningConfig({ ...input, configFile: local }).layered.config;
  return {
    ofRunning: classifyChanges(node.running ?? before, desired, node),
    ofLocal: classifyChanges(before, desired, node),
    desired,
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
export function shadowsOf({ layered }: RunningConfig): (path: string) => string | null {
  return (path) => {
    const origin = layered.history.get(path)?.at(-1)?.origin;
    return origin !== undefined && isShadow(origin) ? origin.source : null;
  };
}

function isShadow({ layer }: Origin): boolean {
  return layer === 'flag' || layer === 'drop-in';
}

export function isAllowed(change: ClassifiedChange, { allow, isCordoned }: ChangePolicy): boolean {
  return isAtMost(change.class, allow) || (isCordoned && isAtMost(change.class, 'drain'));
}

function isAtMost(name: LiveChange, most: LiveChange): boolean {
  return worstLiveChange([{ class: name }, { class: most }]) === most;
}

export function describeForbidden(changes: readonly ClassifiedChange[], { allow }: ChangePolicy): string {
  const [only, ...more] = changes;
  const reported = more.length === 0 && only !== undefined ? [`${only.path} (${only.class}: ${only.reason})`] : classedFields(changes);
  const worst = worstLiveChange(changes);
  const need = `need ${worst === 'drain' ? 'a drained node or ' : ''}--allow ${worst}`;
  return `the changes of ${reported.join(', ')} ${need}, but the agent of this node runs with --allow ${allow} (see dynamic enable --allow)`;
}

/** The first fields with their classes: `cgroupDriver (unsafe)`. */
function classedFields(changes: readonly ClassifiedChange[]): readonly string[] {
  const shown = changes.slice(0, 5).map(({ path, class: name }) => `${path} (${name})`);
  return changes.length > shown.length ? [...shown, `${changes.length - shown.length} more`] : shown;
}

export function describeChange({ path, before, after }: ClassifiedChange): string {
  const text = (value: unknown): string => (value === undefined ? 'unset' : JSON.stringify(value));
  return `${path} from ${text(before)} to ${text(after)}`;
}
