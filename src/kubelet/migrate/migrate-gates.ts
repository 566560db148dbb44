import { type Catalogue, formatMinor, type GateEntry, type Minor } from '../catalogue/catalogue.ts';
import { GROUP_GATES } from '../catalogue/feature-gates.ts';
import type { MigrationStep } from './migration-step.ts';

interface MigratedGates {
  /** The remaining gates. */
  readonly gates: Readonly<Record<string, boolean>>;
  readonly steps: readonly MigrationStep[];
}

/**
 * Removes gates that the new minor does not know or that only set their default. A removed gate whose
 * behaviour cannot be kept is lossy.
 * @param gates effective gates of the old kubelet, from file and flags
 */
export function migrateGates(
  gates: Readonly<Record<string, boolean>>,
  { to, catalogue }: { readonly to: Minor; readonly catalogue: Catalogue },
): MigratedGates {
  const steps: MigrationStep[] = [];
  const kept = Object.entries(gates).filter(([name, value]) => {
    const verdict = validateGate(name, value, to, catalogue);
    if (verdict === null) return true;
    steps.push({ what: `featureGates.${name}`, ...verdict });
    return verdict.did === 'kept';
  });
  return { gates: Object.fromEntries(kept), steps };
}

/** Null: no change. */
function validateGate(name: string, value: boolean, to: Minor, catalogue: Catalogue): Omit<MigrationStep, 'what'> | null {
  if (Object.hasOwn(GROUP_GATES, name)) return null;
  const entry = catalogue.gates.get(name);
  if (entry === undefined) return { did: 'removed', message: 'no kubelet has this gate', lossy: true };
  const gate = catalogue.gate(name, to);
  if (gate === null) return goneGate(entry, value, to);
  const since = formatMinor(sinceOf(entry, to));
  if (gate.locked) {
    if (value === gate.default) return { did: 'removed', message: `locked to ${value} since ${since}`, lossy: false };
    return { did: 'removed', message: `locked to ${gate.default} since ${since}: the kubelet rejects ${value}`, lossy: true };
  }
  if (gate.stage === 'GA' && value === gate.default)
    return { did: 'removed', message: `GA since ${since} and ${onOff(value)} by default`, lossy: false };
  if (gate.stage === 'GA') return { did: 'kept', message: `GA since ${since}: will be locked ${onOff(gate.default)}`, lossy: false };
  if (gate.stage === 'DEPRECATED') return { did: 'kept', message: `deprecated since ${since}: will be removed`, lossy: false };
  return null;
}

function goneGate(entry: GateEntry, value: boolean, to: Minor): Omit<MigrationStep, 'what'> {
  const first = entry.versions[0];
  if (first !== undefined && to < first.from) {
    const message = `unknown to a ${formatMinor(to)} kubelet: added in ${formatMinor(first.from)}`;
    return { did: 'removed', message, lossy: value };
  }
  const last = entry.versions.at(-1);
  const gone = `the gate was removed in ${formatMinor(entry.removedIn ?? to)}`;
  const always = last?.default ?? false;
  if (value === always) return { did: 'removed', message: `${gone}; the feature is always ${onOff(always)}`, lossy: false };
  const kept = last?.stage === 'GA' ? `is always ${onOff(always)}` : 'was removed too';
  return { did: 'removed', message: `${gone}; the feature ${kept}: ${value} cannot be kept`, lossy: true };
}

/** The first minor of the current state. */
function sinceOf(entry: GateEntry, minor: Minor): Minor {
  return entry.versions.findLast(({ from }) => from <= minor)?.from ?? minor;
}

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}
