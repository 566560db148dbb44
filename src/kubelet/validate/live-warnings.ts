import type { Arg } from '../../base/arg.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Catalogue, LiveChange, Minor } from '../catalogue/catalogue.ts';
import { leavesOf } from '../layers/layers.ts';
import { type ClassifiedChange, classifyChanges } from './classify-changes.ts';
import type { Finding } from './rule.ts';

type Named = Finding & { readonly id: string };

interface Options {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
}

const REPORTED: { readonly [C in Exclude<LiveChange, 'safe'>]: string } = {
  unsafe: 'can disconnect or stop a running node',
  drain: 'requires a drained node',
  'new-pods-only': 'does not apply to running pods, or can evict them',
};

/** Warnings about changes that are not safe on a node running with another configuration. */
export function liveChangeWarnings(running: JsonObject, desired: JsonObject, options: Options): readonly Named[] {
  return classifyChanges(running, desired, options).flatMap((change): Named[] =>
    change.class === 'safe' ? [] : [{ id: 'KUBELET_UNSAFE_LIVE', path: change.path, message: liveMessage(change, change.class) }],
  );
}

function liveMessage({ before, after, reason }: ClassifiedChange, kind: Exclude<LiveChange, 'safe'>): string {
  return `the change from ${shown(before)} to ${shown(after)} ${REPORTED[kind]}: ${reason}`;
}

function shown(value: ClassifiedChange['before']): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

/** Warnings about command-line flags that override the file. */
export function shadowWarnings(flags: readonly Arg[], given: JsonObject, { minor, catalogue }: Options): readonly Named[] {
  const leaves = leavesOf(given);
  return [...new Map(flags.map((flag) => [flag.name, flag.value]))].flatMap(([name, value]): Named[] => {
    const field = catalogue.flag(name, minor)?.field ?? null;
    if (field === null) return [];
    const reported = [...leaves].find(([path, leaf]) => isWithin(path, field) && String(leaf) !== value);
    if (reported === undefined) return [];
    return [
      {
        id: 'FLAG_SHADOWS_FIELD',
        path: field,
        message: `--${name}=${value} on the kubelet's command line overrides this field`,
        hint: 'Remove the flag or the field',
      },
    ];
  });
}

function isWithin(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
}
