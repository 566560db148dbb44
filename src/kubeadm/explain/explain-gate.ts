import { formatMinor, type GateEntry, NEWEST_MINOR } from '../../kubelet/catalogue.ts';
import type { ExplainOptions, GateExplanation } from './explanation.ts';
import { fieldsOfGate } from './field-gates.ts';
import { periods } from './periods.ts';
/** Explains a feature gate. */
export function explainGate(entry: GateEntry, { catalogue, minor }: ExplainOptions): GateExplanation {
  const gate = catalogue.gate(entry.name, minor);
  const last = entry.removedIn === null ? NEWEST_MINOR : entry.removedIn - 1;
  return {
    kind: 'FeatureGate',
    name: entry.name,
    kubernetesVersion: formatMinor(minor),
    known: gate !== null,
    stage: gate?.stage ?? null,
    default: gate?.default ?? null,
    locked: gate?.locked ?? null,
    dependencies: gate?.dependencies ?? [],
    versions: periods(entry.versions, last, ({ stage, default: value, lockToDefault }) => ({ stage, default: value, lockToDefault })),
    removedIn: entry.removedIn === null ? null : formatMinor(entry.removedIn),
    fields: fieldsOfGate(entry.name),
  };
}
