import { type Json, jsonEqual } from '../base/json.ts';
import { parseSource, sourceToJson } from '../codec/source.ts';

/** Whether two texts are equal as YAML; invalid YAML is compared as text. */
export function sameYaml(a: string, b: string): boolean {
  return a === b || jsonEqual(readYaml(a), readYaml(b));
}

/** The first document of a text as JSON; the text itself when it is not valid YAML. */
export function readYaml(text: string): Json {
  const { documents, problems } = parseSource(text, '');
  const root = documents[0]?.root ?? null;
  return problems.length > 0 || root === null ? text : sourceToJson(root);
}
