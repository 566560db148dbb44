import { LabelSelectorError, parseLabelSelector } from '../../src/kube/label-selector.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { badRequest, goQuote } from './status.ts';

/** Whether an object matches. */
export type Selector = (object: KubeObject) => boolean;

/**
 * A label selector as the API server reads it.
 * @throws StatusError 400
 */
export function readLabelSelector(text: string): Selector {
  try {
    const { matches } = parseLabelSelector(text);
    return ({ metadata }) => matches(metadata.labels ?? {});
  } catch (error) {
    throw error instanceof LabelSelectorError ? badRequest(error.message) : error;
  }
}

/**
 * Parses a field selector: `path=value`, `path==value`, `path!=value`, joined by commas; `\,`, `\=` and `\\`
 * are escapes.
 * @param fieldsOf the selectable fields of an object of this kind
 * @throws StatusError 400
 * @see k8s.io/apimachinery pkg/fields (1.36)
 */
export function parseFieldSelector(text: string, fieldsOf: (object: KubeObject) => Readonly<Record<string, string>>): Selector {
  const known = Object.keys(fieldsOf({ apiVersion: '', kind: '', metadata: { name: '' } }));
  const terms = splitTerms(text).map((term) => {
    const match = /^((?:[^\\=!]|\\.|!(?!=))*)(==|!=|=)([\s\S]*)$/.exec(term);
    if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = '', operator, value = ''] = match;
    if (!known.includes(field)) throw badRequest(unknownField(field, known));
    return { field, desired: value.replace(/\\([\\,=])/g, '$1'), equal: operator !== '!=' };
  });
  return (object) => {
    const fields = fieldsOf(object);
    return terms.every(({ field, desired, equal }) => (fields[field] === desired) === equal);
  };
}

function unknownField(field: string, known: readonly string[]): string {
  const plain = known.every((each) => each.startsWith('metadata.'));
  return plain
    ? `${goQuote(field)} is not a known field selector: only ${known.map(goQuote).join(', ')}`
    : `field label not supported: ${field}`;
}

function splitTerms(text: string): readonly string[] {
  return (text.match(/(?:[^\\,]|\\[\s\S])+/g) ?? []).filter((term) => term !== '');
}
