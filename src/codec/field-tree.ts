import * as z from 'zod';

/** The fields according to a schema. `map` has names that the user chooses (feature gates, arguments of v1beta3). */
export type FieldTree =
  | { readonly kind: 'struct'; readonly fields: ReadonlyMap<string, FieldTree> }
  | { readonly kind: 'list'; readonly item: FieldTree }
  | { readonly kind: 'map'; readonly value: FieldTree }
  | {
      readonly kind: 'leaf';
      /** An empty string is treated as absent, as for a plain Go string. */
      readonly emptyIsAbsent: boolean;
      /** Go's value of a null for which absence is indistinguishable, as in the values of a map. */
      readonly zero: string | boolean;
      /** How to fix a value of the wrong type. */
      readonly hint?: string;
    };

export function fieldTreeOf(schema: z.core.$ZodType): FieldTree {
  if (schema instanceof z.ZodExactOptional || schema instanceof z.ZodDefault) return fieldTreeOf(schema.def.innerType);
  if (schema instanceof z.ZodObject) {
    return { kind: 'struct', fields: new Map(Object.entries(schema.shape).map(([name, field]) => [name, fieldTreeOf(field)])) };
  }
  if (schema instanceof z.ZodArray) return { kind: 'list', item: fieldTreeOf(schema.element) };
  if (schema instanceof z.ZodRecord) return { kind: 'map', value: fieldTreeOf(schema.valueType) };
  const plainText = schema instanceof z.ZodString || schema instanceof z.ZodEnum;
  const { emptyIsAbsent, hint } = (schema instanceof z.ZodType ? schema.meta() : undefined) ?? {};
  return {
    kind: 'leaf',
    emptyIsAbsent: plainText || emptyIsAbsent === true,
    zero: schema instanceof z.ZodBoolean ? false : '',
    ...(typeof hint === 'string' && { hint }),
  };
}
