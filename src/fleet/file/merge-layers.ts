import * as z from 'zod';
import type { Problem } from '../../base/errors.ts';
import type { PathSegment } from '../../codec/field-path.ts';
import type { HostEntry } from './entries.ts';
import type { Layer } from './layer.ts';
import type { ProblemCollector, SettingLocation } from './problem-collector.ts';
import { type FleetLayer, layerSettings } from './schema.ts';
import type { Scope } from './scope.ts';

/** The parts of a value that can contain templates: all strings, or those of some members (`*`: of each item). */
type Templates = true | ReadonlyMap<string, Templates>;

interface Rule {
  readonly merge: 'last' | 'byKey' | 'byName';
  /** Null: no template is resolved. */
  readonly templates: Templates | null;
  /** The member has fields of its own: `ssh.user`, but `labels[pool]`. */
  readonly isStruct: boolean;
}

export const RULES: ReadonlyMap<string, Rule> = new Map(
  Object.entries(layerSettings).map(([name, { def }]) => [name, ruleOf(def.innerType)]),
);

function ruleOf(schema: z.ZodType): Rule {
  const { merge } = schema.meta() ?? {};
  return {
    merge: merge === 'byKey' || merge === 'byName' ? merge : 'last',
    templates: templatesOf(schema),
    isStruct: schema instanceof z.ZodObject,
  };
}

function templatesOf(schema: z.core.$ZodType): Templates | null {
  if (schema instanceof z.ZodExactOptional || schema instanceof z.ZodDefault) return templatesOf(schema.def.innerType);
  if (schema instanceof z.ZodType && schema.meta()?.template === true) return true;
  const members: readonly (readonly [string, z.core.$ZodType])[] =
    schema instanceof z.ZodObject
      ? Object.entries(schema.shape)
      : schema instanceof z.ZodArray
        ? [['*', schema.element]]
        : schema instanceof z.ZodRecord
          ? [['*', schema.valueType]]
          : [];
  const found = members.flatMap(([name, member]): [string, Templates][] => {
    const templates = templatesOf(member);
    return templates === null ? [] : [[name, templates]];
  });
  return found.length === 0 ? null : new Map(found);
}

export interface SettingsContext {
  readonly findings: ProblemCollector;
  readonly kubernetesVersion: string | null;
  /** An administrator labels the Nodes and so may set any label. */
  readonly byAdministrator: boolean;
}

/** A host with its merged settings and their positions: the input of the functions that resolve them. */
export interface MergedHost extends SettingsContext {
  readonly entry: HostEntry;
  /**
   * A merged value. Its templates are resolved at the first call: those of an unused setting may have unknown variables.
   * A template that cannot be resolved is reported; the setting, or its key in a setting merged by key, is undefined.
   * Inside of a value such a template remains.
   */
  setting<K extends keyof FleetLayer>(member: K): FleetLayer[K] | undefined;
  /** The layer that sets a member, or a key of a member that is merged by key. */
  layerOf(member: keyof FleetLayer, key?: string): Layer | null;
  /** The position of a value in its layer, by its merged path; that of the host without such a setting. */
  place(member: keyof FleetLayer, ...steps: readonly PathSegment[]): SettingLocation;
  /** Reports a problem once for all hosts that share the place and the key. */
  report(problem: Problem, place: SettingLocation, key?: string): void;
}

/** Settings that are resolved elsewhere: on demand, and as documents of their own. */
const SEPARATE: ReadonlySet<string> = new Set<keyof FleetLayer>(['variables', 'kubeletConfiguration']);

/**
 * Merges the layers of a host by the rules of `layerSettings`.
 * @param layers lowest first
 */
export function mergeLayers(
  entry: HostEntry,
  layers: readonly Layer[],
  { scope, ...context }: SettingsContext & { readonly scope: Scope },
): MergedHost {
  const values = new Map<string, unknown>();
  const lists = new Map<string, readonly { readonly item: { readonly name: string }; readonly layer: Layer; readonly index: number }[]>();
  for (const layer of layers)
    for (const [name, value] of Object.entries(layer.written)) {
      const rule = RULES.get(name);
      if (rule === undefined || SEPARATE.has(name) || value === undefined) continue;
      if (rule.merge === 'byName' && isNamedList(value)) {
        const kept = (lists.get(name) ?? []).filter(({ item }) => !value.some((other) => other.name === item.name));
        lists.set(name, [...kept, ...value.map((item, index) => ({ item, layer, index }))]);
      } else if (rule.merge === 'byKey' && typeof value === 'object') {
        const before = values.get(name);
        values.set(name, typeof before === 'object' ? { ...before, ...value } : value);
      } else values.set(name, value);
    }
  for (const [name, items] of lists)
    values.set(
      name,
      items.map(({ item }) => item),
    );
  // Positions are found on demand: most are never reported.
  const layerOf = (name: string, key?: PathSegment): Layer | null =>
    layers.findLast(({ written }) => hasPart(written[name as keyof FleetLayer], key)) ?? null;
  const place = (name: string, ...steps: readonly PathSegment[]): SettingLocation => {
    const [key, ...rest] = steps;
    const item = typeof key === 'number' ? lists.get(name)?.[key] : undefined;
    if (item !== undefined) return item.layer.place([name, item.index, ...rest]);
    const layer = (RULES.get(name)?.merge === 'byKey' ? layerOf(name, key) : null) ?? layerOf(name);
    return layer?.place([name, ...steps]) ?? entry.place;
  };
  const resolve: ResolveText = (text, [name = '', ...steps]) => scope.text(text, () => place(String(name), ...steps));
  const resolved = new Set<string>();
  return {
    ...context,
    entry,
    setting: <K extends keyof FleetLayer>(member: K) => {
      if (!resolved.has(member) && values.has(member)) values.set(member, resolveValue(member, values.get(member), resolve));
      resolved.add(member);
      return values.get(member) as FleetLayer[K] | undefined;
    },
    layerOf,
    place,
    report: (problem, at, key = problem.message) => context.findings.addShared(key, at, () => problem),
  };
}

function isNamedList(value: unknown): value is readonly { readonly name: string }[] {
  return Array.isArray(value);
}

function hasPart(value: unknown, key: PathSegment | undefined): boolean {
  if (key === undefined || value === undefined) return value !== undefined;
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key);
}

/** Null: reported. */
type ResolveText = (text: string, path: readonly PathSegment[]) => string | null;

/** The value with resolved templates; undefined if it is one template that cannot be resolved. */
function resolveValue(name: string, value: unknown, resolve: ResolveText): unknown {
  const { merge, templates } = RULES.get(name) as Rule;
  if (templates === null) return value;
  if (merge !== 'byKey' || typeof value !== 'object' || value === null) return fill(value, templates, [name], resolve) ?? undefined;
  const entries = Object.entries(value).map(([key, each]) => {
    const own = ofStep(templates, key);
    return [key, own === undefined ? each : fill(each, own, [name, key], resolve)] as const;
  });
  return Object.fromEntries(entries.filter(([, each]) => each !== null));
}

function ofStep(templates: Templates, step: string): Templates | undefined {
  return templates === true ? true : (templates.get(step) ?? templates.get('*'));
}

function fill(value: unknown, templates: Templates, path: readonly PathSegment[], resolve: ResolveText): unknown {
  if (typeof value === 'string') return templates === true ? resolve(value, path) : value;
  if (typeof value !== 'object' || value === null) return value;
  const part = (each: unknown, step: PathSegment): unknown => {
    const own = ofStep(templates, String(step));
    return own === undefined ? each : (fill(each, own, [...path, step], resolve) ?? each);
  };
  if (Array.isArray(value)) return value.map(part);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, part(each, key)]));
}
