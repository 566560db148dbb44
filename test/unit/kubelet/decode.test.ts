import { describe, expect, it } from 'vitest';
import { formatProblem, type Problem } from '../../../src/base/errors.ts';
import type { DecodedDocument } from '../../../src/codec/decode-typed.ts';
import { parseSource } from '../../../src/codec/source.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { checkJsonSyntax, type DecodeOptions, decodeKubeletConfiguration, syntaxOf } from '../../../src/kubelet/documents/decode.ts';
import { DECODE_CASES } from './decode-cases.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const HEADER_VALUE = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };

function decodeText(text: string, options: Partial<DecodeOptions> = {}): DecodedDocument {
  const source = parseSource(text, 'k.yaml');
  expect(source.problems).toEqual([]);
  const document = source.documents[0] ?? {
    file: 'k.yaml',
    index: 0,
    root: null,
    positionAt: () => ({ file: 'k.yaml', line: 1, column: 1 }),
  };
  return decodeKubeletConfiguration(document, { minor: 36, catalogue, ...options });
}

function decodeFields(yaml: string, options: Partial<DecodeOptions> = {}): DecodedDocument {
  return decodeText(`${HEADER}${yaml}\n`, options);
}

function messagesOf(problems: readonly Problem[]): string[] {
  return problems.map(formatProblem);
}

describe('decodeKubeletConfiguration', () => {
  const rows = DECODE_CASES.flatMap((row) => row.minors.map((minor) => ({ ...row, minor })));

  it.each(rows)('$rule (1.$minor): $yaml', ({ yaml, minor, value = {}, problems = [] }) => {
    const decoded = decodeFields(yaml, { minor });
    expect(decoded.problems.map(({ path, code }) => `${path} ${code}`)).toEqual(problems);
    const refused = problems.map((problem) => problem.split(/[ .[]/)[0]);
    const kept = Object.fromEntries(Object.entries(decoded.value).filter(([key]) => key in value || !refused.includes(key)));
    expect(kept).toEqual({ ...HEADER_VALUE, ...value });
  });

  it('returns objects without prototype for any keys', () => {
    const { value } = decodeFields('kubeReserved: {__proto__: "1", constructor: "2"}\nauthentication: {x509: {}}');
    expect(Object.getPrototypeOf(value)).toBeNull();
    expect(Object.getPrototypeOf(value.kubeReserved)).toBeNull();
    expect(Object.entries(value.kubeReserved ?? {})).toEqual([
      ['__proto__', '1'],
      ['constructor', '2'],
    ]);
    expect(({} as Record<string, unknown>).cpu).toBeUndefined();
  });

  it('records the position of each field', () => {
    const { fields } = decodeFields(
      'authentication:\n  x509:\n    clientCAFile: /ca\nclusterDNS:\n- a\nevictionHard: {memory.available: 5%}\nmaxPods: null\nport: x',
    );
    const places = [...fields].map(([path, { line, column }]) => `${path} ${line}:${column}`);
    expect(places.sort()).toEqual([
      'apiVersion 1:1',
      'authentication 3:1',
      'authentication.x509 4:3',
      'authentication.x509.clientCAFile 5:5',
      'clusterDNS 6:1',
      'clusterDNS[0] 7:3',
      'evictionHard 8:1',
      'evictionHard[memory.available] 8:16',
      'kind 2:1',
    ]);
  });

  it('reports in order of position', () => {
    const { problems } = decodeFields('b: 1\nmaxPods: x\na: 1\nport: 5\nport: 6');
    expect(problems.map(({ position, code }) => `${position?.line} ${code}`)).toEqual([
      '3 CONFIG_UNKNOWN_FIELD',
      '4 CONFIG_WRONG_TYPE',
      '5 CONFIG_UNKNOWN_FIELD',
      '7 CONFIG_DUPLICATE_FIELD',
    ]);
  });

  it('reports only unknown and duplicate fields as warnings when lenient', () => {
    const { problems } = decodeFields('foo: 1\nport: 5\nport: 6\nmaxPods: x', { lenient: true });
    expect(problems.map(({ code, severity }) => `${code} ${severity ?? 'error'}`)).toEqual([
      'CONFIG_UNKNOWN_FIELD warning',
      'CONFIG_DUPLICATE_FIELD warning',
      'CONFIG_WRONG_TYPE error',
    ]);
  });
});

describe('header', () => {
  const API = 'apiVersion: kubelet.config.k8s.io/v1beta1\n';
  const KIND = 'kind: KubeletConfiguration\n';
  const NO_KIND = 'k.yaml:1:1 kind: kind is missing. Add kind: KubeletConfiguration. [CONFIG_MISSING_HEADER]';
  const NO_API = 'k.yaml:1:1 apiVersion: apiVersion is missing. Add apiVersion: kubelet.config.k8s.io/v1beta1. [CONFIG_MISSING_HEADER]';

  it.each<[string, string[]]>([
    [API + KIND, []],
    [API, [NO_KIND]],
    [KIND, [NO_API]],
    ['', [NO_API, NO_KIND]],
    ['# only a comment\n', [NO_API, NO_KIND]],
    [`apiVersion: null\n${KIND}`, [NO_API]],
    [`${API}kind: ""\n`, [NO_KIND]],
    [
      `apiVersion: kubelet.config.k8s.io/v1\n${KIND}`,
      ['k.yaml:1:13 apiVersion: is "kubelet.config.k8s.io/v1", expected kubelet.config.k8s.io/v1beta1 [CONFIG_WRONG_KIND]'],
    ],
    [
      `${API}kind: kubeletconfiguration\nfoo: 1\n`,
      ['k.yaml:2:7 kind: is "kubeletconfiguration", expected KubeletConfiguration [CONFIG_WRONG_KIND]'],
    ],
    [`${API}kind: 5\n`, ['k.yaml:2:7 kind: must be a string, not the number 5. Quote the value: "5". [CONFIG_WRONG_TYPE]']],
    [`${API}kind: [a]\n`, ['k.yaml:2:7 kind: must be a string, not a list [CONFIG_WRONG_TYPE]']],
    ['- a\n', ['k.yaml:1:1: must be an object, not a list [CONFIG_WRONG_TYPE]']],
    ['hello\n', ['k.yaml:1:1: must be an object, not a single value [CONFIG_WRONG_TYPE]']],
    ['maxPods: 5\n', [NO_API, NO_KIND]],
    [
      `${API}KIND: 5\n${KIND}`,
      [
        'k.yaml:2:1 KIND: unknown field. Did you mean kind? [CONFIG_UNKNOWN_FIELD]',
        'k.yaml:2:7 KIND: must be a string, not a single value [CONFIG_WRONG_TYPE]',
      ],
    ],
  ])('%j', (text, expected) => {
    expect(messagesOf(decodeText(text).problems)).toEqual(expected);
  });

  it('accepts header fields in another letter case, as Go does, with a warning', () => {
    const { problems } = decodeText(`${API}Kind: KubeletConfiguration\n`, { lenient: true });
    expect(messagesOf(problems)).toEqual(['k.yaml:2:1 Kind: unknown field. Did you mean kind? [CONFIG_UNKNOWN_FIELD]']);
    expect(problems[0]?.severity).toBe('warning');
  });

  it('still reads the fields of a document without header', () => {
    expect(decodeText('maxPods: x\n').problems.map(({ code }) => code)).toEqual([
      'CONFIG_MISSING_HEADER',
      'CONFIG_MISSING_HEADER',
      'CONFIG_WRONG_TYPE',
    ]);
  });
});

describe('messages', () => {
  it.each<[string, number, string]>([
    ['MaxPods: 5', 36, 'k.yaml:3:1 MaxPods: unknown field. Did you mean maxPods? [CONFIG_UNKNOWN_FIELD]'],
    [
      'nodeIP: 10.0.0.1',
      36,
      'k.yaml:3:1 nodeIP: unknown field. nodeIP is the flag --node-ip, not a field: pass --kubelet-extra-args node-ip=VALUE. [CONFIG_UNKNOWN_FIELD]',
    ],
    ['maxPdos: 5', 36, 'k.yaml:3:1 maxPdos: unknown field. Did you mean maxPods? [CONFIG_UNKNOWN_FIELD]'],
    ['podManifestPath: /x', 36, 'k.yaml:3:1 podManifestPath: unknown field [CONFIG_UNKNOWN_FIELD]'],
    [
      'authentication: {evictionHard: {}}',
      36,
      'k.yaml:3:18 authentication.evictionHard: unknown field. evictionHard is a top-level field. [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'clientCAFile: /x',
      36,
      'k.yaml:3:1 clientCAFile: unknown field. clientCAFile is a field of authentication.x509. [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'enabled: true',
      36,
      'k.yaml:3:1 enabled: unknown field. enabled is a field of authentication.webhook or authentication.anonymous. [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'metadata: {name: x}',
      36,
      'k.yaml:3:1 metadata: unknown field. A KubeletConfiguration has no metadata: its fields are at the top level. [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'crashLoopBackOff: {}',
      30,
      'k.yaml:3:1 crashLoopBackOff: unknown to a 1.30 kubelet: the field was added in 1.32. Remove the field, or use a kubelet of at least 1.32. [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'logging: {sanitization: true}',
      36,
      'k.yaml:3:11 logging.sanitization: unknown to a 1.36 kubelet: the field was removed in 1.24. Remove the field. [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'logging: {vmodule: [{filePatern: x}]}',
      36,
      'k.yaml:3:22 logging.vmodule[0].filePatern: unknown field. Did you mean filePattern? [CONFIG_UNKNOWN_FIELD]',
    ],
    [
      'port: 5\nport: 6',
      36,
      'k.yaml:4:1 port: duplicate field, first on line 3. Remove one of the two fields; the last one takes precedence. [CONFIG_DUPLICATE_FIELD]',
    ],
    ['maxPods: "50"', 36, 'k.yaml:3:10 maxPods: must be an integer, not the string "50". Use 50, without quotes. [CONFIG_WRONG_TYPE]'],
    ['maxPods: 5.5', 36, 'k.yaml:3:10 maxPods: must be an integer, not the number 5.5 [CONFIG_WRONG_TYPE]'],
    [
      'maxPods: 3000000000',
      36,
      'k.yaml:3:10 maxPods: must be an integer from -2147483648 to 2147483647, not 3000000000 [CONFIG_OUT_OF_RANGE]',
    ],
    [
      'kubeReserved: {cpu: 1}',
      36,
      'k.yaml:3:21 kubeReserved[cpu]: must be a string, not the number 1. Quote the value: "1". [CONFIG_WRONG_TYPE]',
    ],
    [
      'failSwapOn: "yes"',
      36,
      'k.yaml:3:13 failSwapOn: must be true or false, not the string "yes". Use true, without quotes. [CONFIG_WRONG_TYPE]',
    ],
    [
      'syncFrequency: 10',
      36,
      'k.yaml:3:16 syncFrequency: must be a duration, not the number 10. Add a unit, for example 10s. [CONFIG_INVALID_DURATION]',
    ],
    [
      'syncFrequency: 2d',
      36,
      'k.yaml:3:16 syncFrequency: the string "2d" is not a valid duration. Days are not a valid unit: use 48h. [CONFIG_INVALID_DURATION]',
    ],
    [
      'syncFrequency: " 1s"',
      36,
      'k.yaml:3:16 syncFrequency: the string " 1s" is not a valid duration. Use a duration such as 1h30m or 10s. [CONFIG_INVALID_DURATION]',
    ],
    [
      'syncFrequency: null',
      36,
      'k.yaml:3:16 syncFrequency: must be a duration, not null. Omit the field, or use 0s. [CONFIG_INVALID_DURATION]',
    ],
    [
      'clusterDNS: 10.0.0.1',
      36,
      'k.yaml:3:13 clusterDNS: must be a list, not a single value. Use brackets, or a dash before each item. [CONFIG_WRONG_TYPE]',
    ],
    [
      'reservedMemory: [{limits: {memory: 1GB}}]',
      36,
      'k.yaml:3:36 reservedMemory[0].limits[memory]: the string "1GB" is not a valid quantity. Use a number with a suffix such as Mi, Gi, M, G or m. [CONFIG_INVALID_QUANTITY]',
    ],
  ])('%s (1.%i)', (yaml, minor, expected) => {
    expect(messagesOf(decodeFields(yaml, { minor }).problems)).toContain(expected);
  });

  it('never shows the value of a request header', () => {
    const problems = messagesOf(decodeFields('staticPodURLHeader: {Authorization: [12345678]}').problems);
    expect(problems).toEqual(['k.yaml:3:38 staticPodURLHeader[Authorization][0]: must be a string. Quote the value. [CONFIG_WRONG_TYPE]']);
  });

  it('truncates long values and escapes control characters', () => {
    const [problem] = decodeFields(`maxPods: "\\e[31m${'x'.repeat(200)}"`).problems;
    expect(problem?.message).toBe(`must be an integer, not the string "\\u001b[31m${'x'.repeat(55)}…"`);
  });
});

describe('JSON files', () => {
  const json = (text: string, minor = 36) =>
    decodeText(`{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration",${text}}`, { minor, syntax: 'json' });

  it('accept fewer notations of integers', () => {
    expect(json('"maxPods": 50').value.maxPods).toBe(50);
    expect(json('"maxPods": 50.0').problems[0]?.code).toBe('CONFIG_WRONG_TYPE');
    expect(json('"maxPods": 1e2').problems[0]?.code).toBe('CONFIG_WRONG_TYPE');
  });

  it('merge duplicate objects, and validate each value', () => {
    const merged = json(
      '"authentication":{"x509":{"clientCAFile":"a"}},"authentication":{"webhook":{"enabled":true}},"address":"x","address":null',
    );
    expect(merged.value).toMatchObject({ authentication: { x509: { clientCAFile: 'a' }, webhook: { enabled: true } }, address: 'x' });
    expect(json('"maxPods":"many","maxPods":6').problems.map(({ code }) => code)).toEqual(['CONFIG_WRONG_TYPE', 'CONFIG_DUPLICATE_FIELD']);
  });

  it('are recognised by their first character', () => {
    expect(syntaxOf(' \n{"a": 1}')).toBe('json');
    expect(syntaxOf('a: {}')).toBe('yaml');
    expect(syntaxOf('\ufeff{}')).toBe('yaml');
    expect(syntaxOf('')).toBe('yaml');
  });

  it('must be valid JSON', () => {
    expect(checkJsonSyntax('{"a": [1, 2]}\n', 'k.yaml')).toBeNull();
    expect(checkJsonSyntax('{a: 1}', 'k.yaml')?.code).toBe('CONFIG_SYNTAX');
    expect(checkJsonSyntax('{"a": 1} x', 'k.yaml')?.code).toBe('CONFIG_SYNTAX');
  });
});

describe('hostile documents', () => {
  it.each([
    ['unknown fields', Array.from({ length: 3_000 }, (_, i) => `maxPdos${i}: 1`).join('\n')],
    ['one field repeatedly', 'maxPods: 1\n'.repeat(5_000)],
    ['a list of wrong items', `clusterDNS:\n${'- 1\n'.repeat(5_000)}`],
    ['a very long number', `maxPods: ${'9'.repeat(60_000)}`],
  ])('%s are read in reasonable time', (_, yaml) => {
    const decoded = decodeFields(yaml);
    expect(decoded.problems.length).toBeGreaterThan(0);
  });
});
