import type { JsonObject } from '../../base/json.ts';
import { type Catalogue, formatMinor, type Gate, type Minor } from '../catalogue/catalogue.ts';
import { entriesAt, valueAt } from '../documents/values.ts';
import { beyondBounds } from './classify-changes.ts';
import type { Finding, Rule } from './rule.ts';

/** Deprecated fields that are still read. */
const DEPRECATED: readonly { readonly path: string; readonly since: Minor; readonly message: string; readonly hint: string }[] = [
  ...[
    { path: 'iptablesMasqueradeBit', since: 28 },
    { path: 'iptablesDropBit', since: 28 },
    { path: 'streamingConnectionIdleTimeout', since: 35 },
  ].map((one) => ({ ...one, message: `is deprecated and has no effect since ${formatMinor(one.since)}`, hint: 'Remove the field' })),
  { path: 'logging.sanitization', since: 20, message: 'is removed in 1.24', hint: 'Remove the field before the upgrade' },
];

/** The paths of deprecated fields in a configuration, by the minor of its kubelet. */
export function deprecatedFields(config: JsonObject, minor: Minor): readonly string[] {
  return DEPRECATED.filter(({ path, since }) => minor >= since && valueAt(config, path) !== undefined).map(({ path }) => path);
}

/** Settings that work with this kubelet but will be removed. */
export const DEPRECATION_RULES: readonly Rule[] = [
  ...DEPRECATED.map(
    ({ since, ...finding }): Rule => ({
      id: 'KUBELET_DEPRECATED_FIELD',
      since,
      check: ({ given }) => (valueAt(given, finding.path) === undefined ? [] : [finding]),
    }),
  ),
  {
    id: 'KUBELET_DEPRECATED_FIELD',
    since: 24,
    until: 31,
    check: ({ given }) =>
      valueAt(given, 'runOnce') === true
        ? [{ path: 'runOnce', message: 'is rejected from 1.32 on', hint: 'Remove the field before the upgrade' }]
        : [],
  },
  {
    id: 'KUBELET_DEPRECATED_CGROUP_V1',
    since: 35,
    check: ({ given }) => {
      if (valueAt(given, 'failCgroupV1') !== false) return [];
      const message = 'false keeps the kubelet on cgroup v1, which Kubernetes no longer supports';
      return [{ path: 'failCgroupV1', message, hint: 'Move the hosts to cgroup v2' }];
    },
  },
  {
    id: 'KUBELET_DEPRECATED_GATE',
    check: ({ given, minor, catalogue }) =>
      entriesAt(given, 'featureGates').flatMap(([name]): Finding[] => {
        const gate = catalogue.gate(name, minor);
        const message = gate === null ? null : deprecationMessage(gate, minor, catalogue);
        return message === null
          ? []
          : [{ path: `featureGates[${name}]`, message, hint: 'Remove the gate: a kubelet that does not know the gate does not start' }];
      }),
  },
];

/** Stable and deprecated gates will be removed. */
function deprecationMessage(gate: Gate, minor: Minor, catalogue: Catalogue): string | null {
  const removedIn = catalogue.gates.get(gate.name)?.removedIn ?? null;
  const when = removedIn !== null && removedIn > minor ? `is removed in ${formatMinor(removedIn)}` : 'is removed in a later version';
  if (gate.stage === 'DEPRECATED') return `the gate is deprecated and ${when}`;
  return gate.stage === 'GA' ? `the gate is GA (${gate.default ? 'on' : 'off'}) and ${when}` : null;
}

/** Values that the kubelet accepts, but that are rarely intended: a change to them has the impact `unsafe`. */
export const BOUND_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_UNUSUAL_VALUE',
    check: ({ given, catalogue }) =>
      [...catalogue.fields.values()].flatMap(({ path, bounds }) => {
        const message = bounds === undefined ? null : beyondBounds(bounds, valueAt(given, path));
        return message === null ? [] : [{ path, message }];
      }),
  },
];
