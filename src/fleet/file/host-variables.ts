import type { HostEntry } from './entries.ts';
import { invalidVariable, reservedVariable } from './fleet-problems.ts';
import { type Layer, scalarOf } from './layer.ts';
import { ProblemCollector, type SettingLocation } from './problem-collector.ts';
import { Scope, type Variables, type VariableText } from './scope.ts';

/**
 * Built-in variables, which cannot be declared. Several ranges in the name add `index1`, `number1` and so on.
 */
const BUILT_IN = /^(?:name|inventory_hostname|inventory_hostname_short|(?:index|number)[0-9]*)$/;

/** The variables of a host: built-in ones, and those of its layers, the highest first. */
export function hostVariables({ name, indexes, place }: HostEntry, layers: readonly Layer[]): Variables {
  const own = new Map<string, VariableText>([
    ['name', scalarOf(name)],
    ['inventory_hostname', scalarOf(name)],
    ['inventory_hostname_short', scalarOf(name.split('.')[0] as string)],
    ...indexVariables(indexes),
  ]);
  return {
    find: (variable) => {
      const value = own.get(variable);
      if (value !== undefined) return { value, place: () => place };
      // Inventories may define variables with these names, which are ignored.
      if (BUILT_IN.test(variable)) return undefined;
      const layer = layers.findLast(({ variables }) => variables.has(variable));
      return (
        layer && {
          value: layer.variables.get(variable) as VariableText,
          place: (): SettingLocation => layer.place(['variables', variable]),
        }
      );
    },
    names: () => new Set([...own.keys(), ...layers.flatMap(({ variables }) => [...variables.keys()].filter((key) => !BUILT_IN.test(key)))]),
  };
}

/** The range values of the name: `index` as written, `number` without leading zeros. */
function indexVariables(indexes: readonly string[]): readonly (readonly [string, VariableText])[] {
  const all = indexes.flatMap((text, i) => indexVariable(text, String(i + 1)));
  const last = indexes.at(-1);
  return last === undefined ? [] : [...indexVariable(last, ''), ...(indexes.length > 1 ? all : [])];
}

function indexVariable(text: string, suffix: string): readonly (readonly [string, VariableText])[] {
  const index = [`index${suffix}`, scalarOf(text)] as const;
  return /^[0-9]+$/.test(text) ? [index, [`number${suffix}`, scalarOf(Number(text))]] : [index];
}

/** All resolvable variables of a host; variables with a failing template are omitted. */
export function variableValues(entry: HostEntry, layers: readonly Layer[]): ReadonlyMap<string, string | number | boolean> {
  const variables = hostVariables(entry, layers);
  const scope = new Scope(entry.name, variables, new ProblemCollector());
  const values = new Map<string, string | number | boolean>();
  for (const name of variables.names()) {
    const value = scope.lookUp(name, () => entry.place);
    if (value !== null) values.set(name, typeof value.scalar.value === 'bigint' ? Number(value.scalar.value) : (value.scalar.value ?? ''));
  }
  return values;
}

export function validateVariableNames(layer: Layer, findings: ProblemCollector): void {
  for (const name of layer.variables.keys()) {
    const place = (): SettingLocation => layer.place(['variables', name]);
    if (BUILT_IN.test(name)) findings.add(reservedVariable(name), place());
    else if (!/^[A-Za-z_]\w*$/.test(name)) findings.add(invalidVariable(name), place());
  }
}
