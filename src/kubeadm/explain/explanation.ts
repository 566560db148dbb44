import type { Json } from '../../base/json.ts';
import { type Catalogue, type FieldType, formatMinor, type Minor, NEWEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';

/** A value that was valid from one minor version to another, both `1.X`; `to` is null while it is still valid. */
export interface Period<T> {
  readonly from: string;
  readonly to: string | null;
  readonly value: T;
}

/** An entry of a list of fields. */
export interface Member {
  readonly path: string;
  readonly type: string;
  readonly description: string;
  readonly default: Json;
  /** Only when all levels were requested. */
  readonly members?: readonly Member[];
}

export interface ExplainOptions {
  readonly catalogue: Catalogue;
  /** The explained kubelet version. */
  readonly minor: Minor;
  /** Include nested members. */
  readonly recursive?: boolean;
}

const TYPE_TEXTS: { readonly [T in FieldType]: string } = {
  string: 'string',
  enum: 'string',
  bool: 'boolean',
  int32: 'int32',
  int64: 'int64',
  uint32: 'uint32',
  float: 'number',
  duration: 'duration',
  durationOrNanoseconds: 'duration or nanoseconds',
  quantity: 'quantity',
  timestamp: 'time',
  object: 'Object',
  'array<string>': '[]string',
  'array<enum>': '[]string',
  'array<int32>': '[]int32',
  'array<object>': '[]Object',
  'map<string,string>': 'map[string]string',
  'map<string,bool>': 'map[string]boolean',
  'map<string,quantity>': 'map[string]quantity',
  'map<string,array<string>>': 'map[string][]string',
};

/** A type as printed by kubectl explain. */
export function typeText(type: FieldType): string {
  return TYPE_TEXTS[type];
}

/**
 * Turns `from` entries into periods, each of which ends before the next one begins.
 * @param last the last minor version that has the item
 */
export function periods<E extends { readonly from: Minor }, T>(
  list: readonly E[],
  last: Minor,
  pick: (entry: E) => T,
): readonly Period<T>[] {
  return list.map((entry, index) => {
    const next = list[index + 1];
    const to = next === undefined ? (last >= NEWEST_MINOR ? null : last) : next.from - 1;
    return { from: formatMinor(entry.from), to: to === null ? null : formatMinor(to), value: pick(entry) };
  });
}
