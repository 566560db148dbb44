import { type Catalogue, formatMinor, type GateEntry, type Minor } from '../catalogue.ts';
import { GROUP_GATES } from '../feature-gates.ts';
import type { MigrationStep } from './migration-step.ts';

export interface MigratedGates {
  /** The gates to go on with. */
  readonly gates: Readonly<Record<string, boolean>>;
  readonly steps: readonly MigrationStep[];
}

/**
 * Takes out the gates another minor does not know, or that only say what it does anyway. A gate that asks for something it can't do any more is lossy.
 * @param gates as in force in the old kubelet, from file and flags
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

/** Null: nothing to say of it. */
function validateGate(name: string, value: boolean, to: Minor, catalogue: Catalogue): Omit<MigrationStep, 'what'> | null {
  if (Object.hasOwn(GROUP_GATES, name)) return null;
  const entry = catalogue.gates.get(name);
  if (entry === undefined) return { did: 'removed', message: 'no kubelet has this gate', lossy: true };
  const gate = catalogue.gate(name, to);
  if (gate === null) return goneGate(entry, value, to);
  const since = formatMinor(sinceOf(entry, to));
  if (gate.locked) {
    if (value === gate.default) return { did: 'removed', message: `always ${onOff(value)}, locked since ${since}`, lossy: false };
    return { did: 'removed', message: `always ${onOff(gate.default)}, locked since ${since}: ${value} is refused`, lossy: true };
  }
  if (gate.stage === 'GA' && value === gate.default)
    return { did: 'removed', message: `GA since ${since} and ${onOff(value)} by default`, lossy: false };
  if (gate.stage === 'GA') return { did: 'kept', message: `GA since ${since}: it will be locked ${onOff(gate.default)}`, lossy: false };
  if (gate.stage === 'DEPRECATED') return { did: 'kept', message: `deprecated since ${since}: it will go`, lossy: false };
  return null;
}

function goneGate(entry: GateEntry, value: boolean, to: Minor): Omit<MigrationStep, 'what'> {
  const first = entry.versions[0];
  if (first !== undefined && to < first.from) {
    const message = `a ${formatMinor(to)} kubelet does not have it: it came with ${formatMinor(first.from)}`;
    return { did: 'removed', message, lossy: value };
  }
  const last = entry.versions.at(-1);
  const gone = `the gate went with ${formatMinor(entry.removedIn ?? to)}`;
  const always = last?.default ?? false;
  if (value === always) return { did: 'removed', message: `always ${onOff(always)}, ${gone}`, lossy: false };
  const what = last?.stage === 'GA' ? `always ${onOff(always)}` : 'the feature is gone';
  return { did: 'removed', message: `${what}, ${gone}: ${value} can't be kept`, lossy: true };
}

/** When what holds at a minor began. */
function sinceOf(entry: GateEntry, minor: Minor): Minor {
  return entry.versions.findLast(({ from }) => from <= minor)?.from ?? minor;
}

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}
