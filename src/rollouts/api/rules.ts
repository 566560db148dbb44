import type * as z from 'zod';

/** A rule of the API: the API server evaluates the CEL expression, this program and the API server double the function. */
interface Rule<T> {
  readonly cel: string;
  readonly message: string;
  readonly holds: (value: T) => boolean;
}

/** Adds a rule to a schema: to its validation, and as `x-kubernetes-validations` to the CustomResourceDefinition. */
export function ruled<S extends z.ZodType>(schema: S, { cel, message, holds }: Rule<z.output<S>>): S {
  return schema.refine(holds, { error: message }).meta({ ...schema.meta(), 'x-kubernetes-validations': [{ rule: cel, message }] });
}
