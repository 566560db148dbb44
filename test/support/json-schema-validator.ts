import { createRequire } from 'node:module';
import type { JsonObject } from '../../src/base/json.ts';
import { requirement } from './requirement.ts';

interface Ajv {
  compile(schema: JsonObject): {
    (value: unknown): boolean;
    readonly errors?: readonly { instancePath: string; message?: string }[] | null;
  };
}

function load(): (new (options: object) => Ajv) | null {
  try {
    return (createRequire(import.meta.url)('ajv') as { readonly default: new (options: object) => Ajv }).default;
  } catch {
    return null;
  }
}

const Validator = load();

/** Reason to skip a test with `schemaErrors`: a checkout whose dependencies are older than package.json. */
export const NO_VALIDATOR = requirement('ajv', Validator === null ? 'run npm ci' : null);

/** Compiles a JSON Schema with ajv, in strict mode. The function returns one line for each error of a value. */
export function schemaErrors(schema: JsonObject): (value: unknown) => readonly string[] {
  if (Validator === null) throw new Error('ajv is not installed');
  const validate = new Validator({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true }).compile(schema);
  return (value) => (validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message = '' }) => `${instancePath} ${message}`));
}
