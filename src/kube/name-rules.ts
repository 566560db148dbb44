/**
 * The API server's messages; empty: valid. @see k8s.io/apimachinery pkg/util/validation,
 * pkg/api/validate/content (1.36)
 */
export type NameRule = (text: string) => readonly string[];

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const KEY = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const KEY_TEXT = describePattern(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  KEY,
  'MyName',
  'my.name',
  '123-abc',
);
const LABEL_TEXT = describePattern(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL,
  'my-name',
  '123-abc',
);
const plainLabel: NameRule = ruleOf(LABEL, 63, LABEL_TEXT);

/** DNS-1123 subdomain: most object names. */
export const subdomain: NameRule = ruleOf(
  SUBDOMAIN,
  253,
  describePattern(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
    SUBDOMAIN,
    'example.com',
  ),
);

/** DNS-1123 label: namespaces. */
export const label: NameRule = (text) => {
  const wrong = plainLabel(text);
  const onlyDots = wrong.includes(LABEL_TEXT) && subdomain(text).length === 0;
  return wrong.map((why) => (onlyDots && why === LABEL_TEXT ? 'must not contain dots' : why));
};

/** The value of a label; may be empty. */
export const labelValue: NameRule = ruleOf(
  `(${KEY})?`,
  63,
  describePattern(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    `(${KEY})?`,
    'MyValue',
    'my_value',
    '12345',
  ),
  'bytes',
);

const keyName: NameRule = ruleOf(KEY, 63, KEY_TEXT, 'bytes');

/** `example.com/name` or `name`: keys of labels, annotations and taints. */
export const labelKey: NameRule = (text) => {
  const parts = text.split('/');
  const name = parts.at(-1) ?? '';
  if (parts.length > 2) {
    return [`a valid label key ${KEY_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const prefix = parts.length === 2 ? parts[0] : undefined;
  return [
    ...(prefix === '' ? ['prefix part must be non-empty'] : []),
    ...(prefix ? subdomain(prefix).map((why) => `prefix part ${why}`) : []),
    ...(name === '' ? ['name part must be non-empty'] : []),
    ...keyName(name).map((why) => `name part ${why}`),
  ];
};

export function ruleOf(pattern: string, maxLength: number, reported: string, unit: 'characters' | 'bytes' = 'characters'): NameRule {
  const matcher = new RegExp(`^(?:${pattern})$`);
  return (text) => [
    ...(text.length > maxLength ? [`must be no more than ${maxLength} ${unit}`] : []),
    ...(matcher.test(text) ? [] : [reported]),
  ];
}

export function describePattern(what: string, pattern: string, ...examples: readonly string[]): string {
  return `${what} (e.g. ${examples.map((example) => `'${example}', `).join(' or ')}regex used for validation is '${pattern}')`;
}
