import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DANGERS, NEWEST_MINOR } from '../../../src/kubelet/catalogue/catalogue.ts';
import fields from '../../../src/kubelet/catalogue/data/fields.json' with { type: 'json' };
import flags from '../../../src/kubelet/catalogue/data/flags.json' with { type: 'json' };
import gates from '../../../src/kubelet/catalogue/data/gates.json' with { type: 'json' };

// The program trusts src/kubelet/catalogue/data: this test checks each member that scripts/add-minor.mjs or a correction by
// hand writes.

/** The oldest minor of the data; `config explain` shows it. */
const OLDEST = 10;
const minor = z.int().min(OLDEST).max(NEWEST_MINOR);
const text = z.string().min(1);

/** `[{ from: 22, <member>: … }]` with ascending minors. */
function since(members: Record<string, z.ZodType>) {
  return z
    .array(z.strictObject({ from: minor, ...members }))
    .refine((list) => list.every(({ from }, i) => i === 0 || from > (list[i - 1]?.from ?? 0)), 'minors are not ascending');
}

const TYPES = [
  'string',
  'enum',
  'bool',
  'int32',
  'int64',
  'uint32',
  'float',
  'duration',
  'durationOrNanoseconds',
  'quantity',
  'timestamp',
  'object',
  'array<string>',
  'array<enum>',
  'array<int32>',
  'array<object>',
  'map<string,string>',
  'map<string,bool>',
  'map<string,quantity>',
  'map<string,array<string>>',
] as const;

const WHEN = z.union([
  z.strictObject({ to: z.boolean() }),
  z.strictObject({ atLeast: z.int() }),
  z.strictObject({ raised: z.literal(true) }),
  z.strictObject({ isSet: z.literal(true) }),
]);
const BOUND = z.union([z.number(), text]);

const FIELD = z
  .strictObject({
    path: text,
    type: z.enum(TYPES),
    typeByMinor: since({ type: z.enum(TYPES) }).optional(),
    pointer: z.boolean(),
    pointerByMinor: since({ pointer: z.boolean() }).optional(),
    omitempty: z.boolean(),
    printedWhenUnset: z.boolean(),
    minors: z.tuple([minor, minor]),
    defaultByMinor: since({ value: z.json() }),
    enumByMinor: since({ values: z.array(z.string()).min(1) }).optional(),
    flag: text.nullable(),
    flagAliases: z.array(text).optional(),
    description: text,
    liveChange: z.enum(['safe', 'drain', 'new-pods-only', 'unsafe']),
    liveChangeReason: text,
    danger: z.strictObject({ kind: z.enum(DANGERS), reason: text, when: WHEN.optional() }).nullable(),
    bounds: z.strictObject({ min: BOUND.optional(), max: BOUND.optional(), reason: text }).optional(),
    note: text.optional(),
  })
  .refine(({ minors: [first, last] }) => first <= last, 'the first minor is later than the last')
  .refine(({ type, enumByMinor }) => type.includes('enum') === (enumByMinor !== undefined), 'type and enumByMinor contradict each other')
  .refine(
    ({ liveChange, danger }) => danger === null || danger.when !== undefined || liveChange === 'unsafe',
    'a danger that is not unsafe',
  )
  .refine(({ omitempty, printedWhenUnset }) => omitempty || printedWhenUnset, 'Go prints a field without omitempty');

const FLAG = z
  .strictObject({
    flag: text,
    shorthand: text.optional(),
    type: text,
    default: z.string(),
    defaultByMinor: since({ value: z.string() }).optional(),
    since: minor,
    removedIn: minor.nullable(),
    field: z.enum(fields.map(({ path }) => path)).nullable(),
    fieldSince: minor.optional(),
    deprecated: z.boolean(),
    deprecatedSince: minor.nullable(),
    deprecatedUntil: minor.optional(),
    deprecation: z.enum(['to-be-removed', 'use-config-file', 'use-other-flag', 'leaked-cadvisor-flag']).optional(),
    group: z.enum(['config', 'kubelet', 'global']),
    hidden: z.boolean().optional(),
  })
  .refine((flag) => (flag.deprecatedSince === null) === (flag.deprecation === undefined), 'deprecatedSince without deprecation')
  .refine((flag) => flag.removedIn === null || flag.removedIn > flag.since, 'the flag is removed before it exists');

const GATE = z
  .strictObject({
    name: text,
    versions: since({ stage: z.enum(['ALPHA', 'BETA', 'GA', 'DEPRECATED']), default: z.boolean(), lockToDefault: z.boolean() }),
    removedIn: minor.nullable(),
    dependencies: since({ gates: z.array(z.enum(gates.map(({ name }) => name))) }).optional(),
  })
  .refine(({ versions }) => versions.length > 0, 'a gate without versions')
  .refine(({ versions, removedIn }) => removedIn === null || removedIn > (versions.at(-1)?.from ?? 0), 'a version after the removal');

/** The problems of each entry, under its name. */
function problemsOf(schema: z.ZodType, entries: readonly object[], key: string): readonly string[] {
  return entries.flatMap((entry) => {
    const { error } = schema.safeParse(entry);
    return (error?.issues ?? []).map(({ path, message }) => `${(entry as Record<string, unknown>)[key]}: ${path.join('.')}: ${message}`);
  });
}

function repeated(names: readonly string[]): readonly string[] {
  return names.filter((name, i) => names.indexOf(name) !== i);
}

describe('the data of the catalogue', () => {
  it.each([
    ['fields', 'path', FIELD, fields],
    ['flags', 'flag', FLAG, flags],
    ['gates', 'name', GATE, gates],
  ] as const)('has only complete %s, each once', (_, key, schema, entries) => {
    expect(problemsOf(schema, entries, key)).toEqual([]);
    expect(repeated(entries.map((entry) => String((entry as Record<string, unknown>)[key])))).toEqual([]);
  });

  it('finds a wrong entry', () => {
    const [field, flag, gate] = [fields[2], flags[0], gates[0]];
    expect(problemsOf(FIELD, [{ ...field, type: 'int16' }], 'path')).toHaveLength(1);
    expect(problemsOf(FIELD, [{ ...field, minors: [36, 20] }], 'path')).toEqual([expect.stringContaining('the first minor is later')]);
    expect(problemsOf(FIELD, [{ ...field, since: 20 }], 'path')).toEqual([expect.stringContaining('since')]);
    expect(problemsOf(FLAG, [{ ...flag, field: 'unknownField' }], 'flag')).toEqual([expect.stringContaining('field')]);
    expect(problemsOf(GATE, [{ ...gate, removedIn: OLDEST }], 'name')).toEqual([expect.stringContaining('a version after the removal')]);
  });

  it('has each field within an object, or a list of objects, of the same minors', () => {
    const byPath = new Map(fields.map((field) => [field.path, field]));
    const wrong = fields.filter(({ path, minors }) => {
      const at = path.slice(0, Math.max(0, path.lastIndexOf('.')));
      if (at === '') return false;
      const parent = byPath.get(at.replace(/\[\]$/, ''));
      const [first = 0, last = 0] = parent?.minors ?? [];
      const isInside = Number(minors[0]) >= first && Number(minors[1]) <= last;
      return parent?.type !== (at.endsWith('[]') ? 'array<object>' : 'object') || !isInside;
    });
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});
