import { type Json, jsonEqual } from '../../base/json.ts';
import { maskSecrets } from '../../base/text/mask.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { isAtOrBelow, type LayeredConfig, leavesOf, type Origin } from './layers.ts';

export interface Overrides {
  /**
   * Fields of the local configuration for which a kubelet uses the value of a ConfigMap; undefined: unset. `isChanged`: the value
   * of the local configuration changes; otherwise it was overridden before.
   */
  readonly fields: readonly (Pick<HiddenField, 'path' | 'running'> & { readonly desired: Json | undefined; readonly isChanged: boolean })[];
  /** Changed fields for which the host does not show whether the ConfigMap sets them. */
  readonly unknown: readonly string[];
}

/**
 * Finds the fields that config.yaml sets, or that its change affects, without effect because the kubelet runs a
 * ConfigMap with other values. Flags and drop-ins are part of all inputs, so that a field that they override is not
 * found.
 * @param options effective configurations: `before` of the present config.yaml, `after` of the new one, `running` with the
 *   ConfigMap. `sets`: the leaves that the ConfigMap sets: the agent merges the others from the new config.yaml. Null: it is complete.
 *   Undefined: unknown
 */
export function findOverrides({
  before,
  after,
  running,
  sets,
}: Readonly<Record<'before' | 'after' | 'running', LayeredConfig>> & {
  readonly sets: readonly string[] | null | undefined;
}): Overrides {
  const [old, desired, current] = [leavesOf(before.config), leavesOf(after.config), leavesOf(running.config)];
  const fields: Overrides['fields'][number][] = [];
  const unknown: string[] = [];
  for (const path of [...new Set([...old.keys(), ...desired.keys(), ...current.keys()])].sort()) {
    if (jsonEqual(desired.get(path), current.get(path))) continue;
    const isChanged = !jsonEqual(old.get(path), desired.get(path));
    const isSet = after.history.get(path)?.at(-1)?.origin.layer === 'config file';
    if ((!isChanged && !isSet) || (sets != null && !isSetBy(sets, path))) continue;
    if (sets === undefined && jsonEqual(old.get(path), current.get(path))) unknown.push(path);
    else fields.push({ path, desired: desired.get(path), running: current.get(path), isChanged });
  }
  return { fields, unknown };
}

/** Whether an overlay with these leaves sets a field: one of them, below one (a removed map), or above one. */
export function isSetBy(leaves: readonly string[], path: string): boolean {
  return leaves.some((leaf) => isAtOrBelow(path, leaf) || isAtOrBelow(leaf, path));
}

/** `maxPods (desired 20, running 33)`. Confidential values are omitted. */
export function describeOverridden({ path, desired, running }: Overrides['fields'][number]): string {
  if (isAtOrBelow(path, CONFIDENTIAL)) return path;
  return maskSecrets(`${path} (desired ${inlineValue(desired)}, running ${inlineValue(running)})`);
}

/** Its headers can contain credentials. */
const CONFIDENTIAL = 'staticPodURLHeader';

/** A field of the files that kubeletadm writes, of which the kubelet uses another value. */
export interface HiddenField {
  readonly path: string;
  readonly desired: Json;
  /** Undefined: unset. */
  readonly running: Json | undefined;
  /** The flag or drop-in file that wins. */
  readonly by: Origin;
}

/**
 * Finds the fields that a flag or another drop-in file overrides.
 * @param written effective configuration of the written files alone, without flags
 * @param actual effective configuration of all files and flags
 */
export function findHiddenFields(written: LayeredConfig, actual: LayeredConfig): readonly HiddenField[] {
  const running = leavesOf(actual.config);
  return [...leavesOf(written.config)].flatMap(([path, desired]): readonly HiddenField[] => {
    if (written.history.get(path)?.at(-1)?.origin.layer === 'kubelet default' || jsonEqual(desired, running.get(path))) return [];
    const by = originOf(actual, path);
    return by === undefined || (by.layer !== 'flag' && by.layer !== 'drop-in') ? [] : [{ path, desired, running: running.get(path), by }];
  });
}

/** A flag for a map or list replaces all its members. */
function originOf({ history }: LayeredConfig, path: string): Origin | undefined {
  const own = history.get(path)?.at(-1)?.origin;
  return own ?? [...history].find(([other]) => other.startsWith(`${path}.`) || path.startsWith(`${other}.`))?.[1].at(-1)?.origin;
}

/** `maxPods: 81 is overridden by --max-pods, KUBELET_EXTRA_ARGS in /etc/default/kubelet, with 50`. */
export function describeHidden({ path, desired, running, by }: HiddenField): string {
  if (path.startsWith('staticPodURLHeader')) return `${path} is overridden by ${by.source}`;
  return `${path}: ${inlineValue(desired)} is overridden by ${by.source}, ${running === undefined ? 'which removes it' : `with ${inlineValue(running)}`}`;
}
