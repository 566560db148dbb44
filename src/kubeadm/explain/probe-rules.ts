import type { Problem } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import type { Field, KubeletReader } from '../../kubelet/catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import { setAt } from '../../kubelet/layers/kubeadm-defaults.ts';
import { UNSAFE_DIRECTORY } from '../../kubelet/validate/directory-rules.ts';
import { isStartupRule, STARTUP_FAILURE_MESSAGE, validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';

const WORD = 'no such word';

/** Values that are rejected by any validation. */
const PROBES: Readonly<Partial<Record<Field['type'], readonly Json[]>>> = {
  bool: [true, false],
  int32: [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1],
  int64: [-(2 ** 31), -1, 0, 1, 2 ** 53 - 1],
  uint32: [2 ** 32 - 1],
  float: [-1, 0, 2],
  string: [WORD, 'a/b'],
  enum: [WORD],
  duration: ['-1h', '1ns', '2400h'],
  'array<string>': [[WORD]],
  'array<enum>': [[WORD]],
  'map<string,string>': [{ [WORD]: 'x' }],
};

/**
 * The validation rules of the kubelet for a field, in words: the field is validated with invalid values, and
 * the messages are collected without the values. Rules that need several fields are not found.
 */
export function probeRules(path: string, { minor, catalogue }: KubeletReader): readonly string[] {
  const field = catalogue.field(path, minor);
  if (field === null || path.includes('[]')) return [];
  const words = (PROBES[field.type] ?? []).flatMap((probe) => {
    const header = { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
    const document = documentOfValue(setAt(header, path.split('.'), probe), 'probe');
    return validateKubeletConfiguration(document, { minor, catalogue })
      .problems.filter((problem) => problem.path === path || problem.path?.startsWith(`${path}[`))
      .flatMap((problem) => ruleOf(problem, problem.path === path ? '' : field.type.startsWith('map') ? 'each name ' : 'each item '));
  });
  return [...new Set(words)];
}

/** Empty if the message is only about the value itself or its type. */
function ruleOf({ code, message }: Problem, of: string): readonly string[] {
  // The bounds and the danger of a field are shown on their own.
  if (code.startsWith('CONFIG_') || code === 'KUBELET_UNUSUAL_VALUE' || code === UNSAFE_DIRECTORY) return [];
  const rule = message
    .replace(`; ${STARTUP_FAILURE_MESSAGE}`, '')
    .replace(/, (?:not|and is) (?:"[^"]{0,64}"|-?[0-9][^ ]{0,64})$/, '')
    .replace(/: -?[0-9][^ ]{0,64} is (?:not|more) .*$/s, '');
  if (rule.startsWith('"') || rule.includes(WORD)) return [];
  const whole = rule.startsWith('must ') ? `${of}${rule}` : rule;
  return [isStartupRule(code) ? `${whole}; otherwise the kubelet fails at startup` : whole];
}
