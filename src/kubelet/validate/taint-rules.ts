import { isJsonObject } from '../../base/json.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { listAt, textAt, valueAt } from '../documents/values.ts';
import { type Finding, type Rule, unknownEnumValue } from './rule.ts';

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_SUBDOMAIN = 253;
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** Taints for the registration of the node. */
export const TAINT_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_TAINT',
    since: 23,
    check: ({ config }) =>
      listAt(config, 'registerWithTaints').flatMap((taint, index): Finding[] => {
        if (!isJsonObject(taint)) return [];
        const path = `registerWithTaints[${index}]`;
        const [key, value, effect] = [textAt(taint, 'key'), textAt(taint, 'value'), textAt(taint, 'effect')];
        const findings: Finding[] = [];
        if (!isQualifiedName(key))
          findings.push({
            path: `${path}.key`,
            message: key === '' ? 'a taint needs a key' : `${quoteValue(key)} is not a valid taint key`,
            hint: 'Use up to 63 letters, digits, dots, dashes and underscores, optionally after a domain and a slash',
          });
        if (value !== '' && !NAME.test(value))
          findings.push({
            path: `${path}.value`,
            message: `${quoteValue(value)} is not a valid taint value`,
            hint: 'Use up to 63 letters, digits, dots, dashes and underscores; begin and end with a letter or digit',
          });
        if (effect !== '' && !EFFECTS.includes(effect)) findings.push({ path: `${path}.effect`, ...unknownEnumValue(effect, EFFECTS) });
        if (valueAt(taint, 'timeAdded') !== undefined)
          findings.push({
            path: `${path}.timeAdded`,
            message: 'must not be set: the API server sets this field',
            hint: 'Remove the field',
          });
        return findings;
      }),
  },
];

/** A name with an optional domain prefix. */
function isQualifiedName(text: string): boolean {
  const parts = text.split('/');
  const name = parts.pop() ?? '';
  if (parts.length > 1 || !NAME.test(name)) return false;
  const [prefix] = parts;
  return prefix === undefined || (prefix.length <= MAX_SUBDOMAIN && SUBDOMAIN.test(prefix));
}
