import { usageError } from '../base/errors.ts';
import { type JsonPath, JsonPathError, parseJsonPath } from '../codec/jsonpath/parse.ts';

/**
 * Parses the template of `-o jsonpath=TEMPLATE`.
 * @throws AppError USAGE (exit code 2) with the position in the template
 */
export function readJsonPath(template: string): JsonPath {
  if (template === '') throw usageError('-o jsonpath: the template is missing', EXAMPLE);
  return withPlace(template, () => parseJsonPath(template));
}

const EXAMPLE = "Write it like -o jsonpath='{.items[*].name}'";
const EXCERPT = 20;

/** Runs a function; an error in the template is shown with its position. */
export function withPlace<T>(template: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    const rest = template.slice(error.offset, error.offset + EXCERPT);
    const place = `character ${error.offset + 1}${rest === '' ? ', at the end' : `, at ${JSON.stringify(rest)}`}`;
    throw usageError(`-o jsonpath: ${error.message} (${place})`, EXAMPLE);
  }
}
