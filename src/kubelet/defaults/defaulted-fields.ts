import type { DefaultedField, Field } from '../catalogue.ts';
import { CONDITIONAL_DEFAULTS } from './conditional-defaults.ts';

/** The fields of a minor that have a default, including conditional ones. */
export function defaultedFieldsOf(fields: Iterable<Field>): readonly DefaultedField[] {
  return [...fields]
    .filter((field) => field.default !== null || CONDITIONAL_DEFAULTS.has(field.path))
    .map((field) => ({ path: field.path.split('.'), field: inItsType(field) }));
}

/** `logging.flushFrequency` was a number of nanoseconds first, and so was its default. */
function inItsType(field: Field): Field {
  return field.type === 'int64' && field.default === '5s' ? { ...field, default: 5_000_000_000 } : field;
}
