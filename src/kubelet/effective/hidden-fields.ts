import { type Json, jsonEqual } from '../../base/json.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { type LayeredConfig, leavesOf, type Origin } from '../layers/layers.ts';

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
