import type * as z from 'zod';

/** A rule of the API: an API server evaluates the CEL expression; this program and the API server double call the function. */
export interface Rule<T> {
  readonly cel: string;
  readonly message: string;
  readonly holds: (value: T) => boolean;
}

/** By CEL expression. */
export const ruleFunctions = new Map<string, (value: never) => boolean>();

/** Adds a rule to a schema: to its validation, and as `x-kubernetes-validations` to the CustomResourceDefinition. */
export function ruled<S extends z.ZodType>(schema: S, rule: Rule<z.output<S>>): S {
  return schema.refine(rule.holds, { error: rule.message }).meta({ ...schema.meta(), 'x-kubernetes-validations': validations(rule) });
}

export function validations<T>({ cel, message, holds }: Rule<T>) {
  ruleFunctions.set(cel, holds);
  return [{ rule: cel, message }];
}
