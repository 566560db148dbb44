import { usageError } from '../../base/errors.ts';
import type { JsonPathOptions } from '../../codec/jsonpath/apply.ts';
import { type JsonPath, JsonPathError, parseJsonPath } from '../../codec/jsonpath/parse.ts';

/** `-o jsonpath=TEMPLATE` and `-o jsonpath-as-json=TEMPLATE`. */
export interface JsonPathFormat extends Required<JsonPathOptions> {
  readonly path: JsonPath;
}

/**
 * Parses the value of `-o` with a JSONPath template.
 * @returns undefined for another format
 * @throws AppError USAGE (exit code 2) with the position in the template
 */
export function readJsonPathFormat(output: string, missing: 'ignored' | 'refused'): JsonPathFormat | undefined {
  const [, asJson, template] = /^jsonpath(-as-json)?=?([\s\S]*)$/.exec(output) ?? [];
  if (template === undefined) return undefined;
  if (template === '') throw usageError('-o jsonpath: the template is missing', EXAMPLE);
  return { path: withTemplatePosition(template, () => parseJsonPath(template)), asJson: asJson !== undefined, missing };
}

const EXAMPLE = "For example: -o jsonpath='{.items[*].name}'";
const EXCERPT = 20;

/** Runs a function; an error in the template is shown with its position. */
export function withTemplatePosition<T>(template: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    const rest = template.slice(error.offset, error.offset + EXCERPT);
    const place = `character ${error.offset + 1}${rest === '' ? ', at the end' : `, at ${JSON.stringify(rest)}`}`;
    throw usageError(`-o jsonpath: ${error.message} (${place})`, EXAMPLE);
  }
}
