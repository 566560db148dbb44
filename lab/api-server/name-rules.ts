import { describePattern, type NameRule, ruleOf } from '../../src/kube/name-rules.ts';

/** Any text that is valid in a path: RBAC objects. */
export const pathSegment: NameRule = (text) => {
  if (text === '.' || text === '..') return [`may not be '${text}'`];
  return ['/', '%'].filter((illegal) => text.includes(illegal)).map((illegal) => `may not contain '${illegal}'`);
};

/** No rule: certificate signing requests. */
export const anyName: NameRule = () => [];

const CONFIG_KEY = '[-._a-zA-Z0-9]+';
const plainConfigKey: NameRule = ruleOf(
  CONFIG_KEY,
  253,
  describePattern(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    CONFIG_KEY,
    'key.name',
    'KEY_NAME',
    'key-name',
  ),
);

/** A key of a ConfigMap or Secret. */
export const configKey: NameRule = (text) => {
  const wrong = plainConfigKey(text);
  if (text === '.' || text === '..') return [...wrong, `must not be '${text}'`];
  return text.startsWith('..') ? [...wrong, "must not start with '..'"] : wrong;
};
