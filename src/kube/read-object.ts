import type * as z from 'zod';
import { clusterObjectInvalid } from './cluster-problems.ts';
import type { KubeObject } from './object.ts';

/** Validates members. @throws AppError CLUSTER_ANSWER_INVALID with the object, the member and the reason */
export function readObject<T>(schema: z.ZodType<T>, object: KubeObject): T {
  const read = schema.safeParse(object);
  if (read.success) return read.data;
  throw clusterObjectInvalid(object, describeIssue(read.error));
}

/** `spec.usages[0]: expected string, received number`: the first issue of a schema. */
export function describeIssue({ issues: [issue] }: z.ZodError): string {
  const path = (issue?.path ?? []).reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
  const message = (issue?.message ?? 'invalid').replace(/^Invalid input: /, '');
  return path === '' ? message : `${path}: ${message}`;
}
