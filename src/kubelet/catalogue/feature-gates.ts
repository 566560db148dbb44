import { type Catalogue, formatMinor, type Gate, type GateStage, type Minor } from './catalogue.ts';

/** Gates that set all gates of a stage. */
export const GROUP_GATES = { AllAlpha: 'ALPHA', AllBeta: 'BETA' } as const satisfies { readonly [name: string]: GateStage };

/** State of each gate in a kubelet, including the gates of its configuration. */
export interface FeatureGates {
  /** False for a gate unknown to the minor. */
  isEnabled(name: string): boolean;
}

/** The reason why a kubelet rejects the gates of its configuration. */
export type GateFault =
  | { readonly kind: 'unknown'; readonly gate: string; readonly history: string | null }
  | { readonly kind: 'locked'; readonly gate: string; readonly locked: boolean }
  /** `set`: the one of both gates that the configuration sets. */
  | { readonly kind: 'dependency'; readonly gate: string; readonly needs: string; readonly set: string | null };

/** The first minor whose kubelet rejects an enabled gate with a disabled dependency. */
const DEPENDENCIES_SINCE: Minor = 35;

/**
 * Merges the gates of a configuration over the defaults of a minor. `AllAlpha` and `AllBeta` set every gate
 * of their stage that is not named. Gates with a fault keep their default.
 * @see k8s.io/component-base featuregate (1.20 to 1.36)
 */
export function resolveFeatureGates(
  given: Readonly<Record<string, boolean>>,
  minor: Minor,
  catalogue: Catalogue,
): FeatureGates & { readonly faults: readonly GateFault[] } {
  const set = new Map<string, boolean>();
  const faults: GateFault[] = [];
  for (const [name, value] of Object.entries(given)) {
    const gate = catalogue.gate(name, minor);
    if (gate === null) {
      faults.push({ kind: 'unknown', gate: name, history: historyOf(name, minor, catalogue) });
      continue;
    }
    if (gate.locked && gate.default !== value) {
      faults.push({ kind: 'locked', gate: name, locked: gate.default });
      continue;
    }
    set.set(name, value);
  }
  const isEnabled = (name: string): boolean => {
    const gate = catalogue.gate(name, minor);
    return gate !== null && (set.get(name) ?? groupValue(gate, set) ?? gate.default);
  };
  if (minor >= DEPENDENCIES_SINCE && set.size > 0) faults.push(...brokenDependencies(minor, catalogue, set, isEnabled));
  return { isEnabled, faults };
}

function groupValue(gate: Gate, set: ReadonlyMap<string, boolean>): boolean | undefined {
  if (gate.locked) return undefined;
  if (gate.stage === 'ALPHA') return set.get('AllAlpha');
  return gate.stage === 'BETA' ? set.get('AllBeta') : undefined;
}

function historyOf(name: string, minor: Minor, catalogue: Catalogue): string | null {
  const entry = catalogue.gates.get(name);
  if (entry === undefined) return null;
  const first = entry.versions[0]?.from ?? 0;
  if (minor < first) return `added in ${formatMinor(first)}`;
  return entry.removedIn === null ? null : `removed in ${formatMinor(entry.removedIn)}`;
}

function brokenDependencies(
  minor: Minor,
  catalogue: Catalogue,
  set: ReadonlyMap<string, boolean>,
  isEnabled: (name: string) => boolean,
): readonly GateFault[] {
  const faults: GateFault[] = [];
  const setsGroups = Object.keys(GROUP_GATES).some((name) => set.has(name));
  for (const entry of catalogue.dependentGates) {
    // The defaults of a minor meet all dependencies.
    if (!setsGroups && !set.has(entry.name) && !entry.dependencies?.some(({ gates }) => gates.some((name) => set.has(name)))) continue;
    const gate = catalogue.gate(entry.name, minor);
    if (gate === null || !isEnabled(gate.name)) continue;
    for (const needs of gate.dependencies) {
      if (isEnabled(needs)) continue;
      const culprits = [gate.name, needs, 'AllAlpha', 'AllBeta'];
      faults.push({ kind: 'dependency', gate: gate.name, needs, set: culprits.find((name) => set.has(name)) ?? null });
    }
  }
  return faults;
}
