import type { FieldType } from '../../kubelet/catalogue.ts';

const TYPES: { readonly [T in FieldType]: string } = {
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
  return TYPES[type];
}
