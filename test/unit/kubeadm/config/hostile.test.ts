import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { AppError } from '../../../../src/base/errors.ts';
import { CONFIG_KINDS } from '../../../../src/kubeadm/config/document-header.ts';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import { numberOfRuns } from '../../../support/thorough.ts';
import { documentOf, errorCodes, linesOf, load } from './support.ts';

const TOKEN = 'abcdef.0123456789abcdef';
const KEY = `${'1234567890'.repeat(6)}1234`;

describe('hostile files', () => {
  it('loads a file just below the size limit in time', () => {
    const items = Array.from({ length: 1_700 }, (_, i) => `- {name: a${i}, value: "${i}"}`).join('\n');
    const started = performance.now();
    const loaded = load(documentOf('init', `nodeRegistration:\n  kubeletExtraArgs:\n${items.replaceAll(/^/gm, '  ')}`));
    expect(loaded.init?.nodeRegistration?.kubeletExtraArgs).toHaveLength(1_700);
    expect(errorCodes(loaded)).toEqual([]);
    expect(performance.now() - started).toBeLessThan(8_000);
  }, 20_000);

  it('rejects more than one megabyte', () => {
    expect(errorCodes(load(documentOf('init', `# ${'x'.repeat(1024 * 1024)}`)))).toEqual(['CONFIG_TOO_LARGE']);
  });

  it('reports thousands of unknown fields in time', () => {
    const body = Array.from({ length: 2_000 }, (_, i) => `nodeRegistratio${i}: 1`).join('\n');
    const started = performance.now();
    expect(errorCodes(load(documentOf('init', body)))).toHaveLength(2_000);
    expect(performance.now() - started).toBeLessThan(8_000);
  }, 20_000);

  it('reports thousands of invalid items in time', () => {
    const body = `skipPhases: [${'1,'.repeat(2_500)}]\nbootstrapTokens: [${'{ttl: 1},'.repeat(2_500)}]`;
    const started = performance.now();
    expect(errorCodes(load(documentOf('init', body)))).toHaveLength(5_000);
    expect(performance.now() - started).toBeLessThan(8_000);
  }, 20_000);

  it('changes no prototype', () => {
    load(
      '{"apiVersion":"kubeadm.k8s.io/v1beta3","kind":"ClusterConfiguration","__proto__":{"polluted":1},"featureGates":{"__proto__":true},"apiServer":{"extraArgs":{"__proto__":"x","constructor":"y"}}}',
    );
    expect(({} as { readonly polluted?: number }).polluted).toBeUndefined();
  });

  it('keeps user-defined names that JavaScript objects have too', () => {
    const { cluster } = load(documentOf('cluster3', 'apiServer: {extraArgs: {constructor: a, toString: b}}'));
    expect(cluster?.apiServer?.extraArgs).toEqual([
      { name: 'constructor', value: 'a' },
      { name: 'toString', value: 'b' },
    ]);
  });

  it('prints no control characters', () => {
    const [line] = linesOf(load(documentOf('init', 'nodeRegistration: {name: "a\\u001b[31m\\u202eb"}')));
    expect(line).toContain('"a\\u001b[31m\\u{202e}b" is not a valid node name');
  });

  it('truncates long values and names', () => {
    const long = 'x'.repeat(500);
    expect(linesOf(load(documentOf('init', `nodeRegistration: {name: _${long}}`)))[0]).toContain(
      `"_${long.slice(0, 79)}…" is not a valid node name`,
    );
    expect(linesOf(load(documentOf('init', `${long}: 1`)))[0]).toBe(
      `f.yaml:3:1 ${long.slice(0, 200)}…: unknown field [CONFIG_UNKNOWN_FIELD]`,
    );
  });

  it('masks a token used as a field name', () => {
    expect(linesOf(load(documentOf('init', `${TOKEN}: 1`)))).toEqual(['f.yaml:3:1 ["[secret]"]: unknown field [CONFIG_UNKNOWN_FIELD]']);
  });

  it('quotes field names with special characters', () => {
    expect(linesOf(load(documentOf('init', '"a\\nb: 1": x')))[0]).toBe('f.yaml:3:1 ["a\\nb: 1"]: unknown field [CONFIG_UNKNOWN_FIELD]');
  });
});

describe('secrets', () => {
  it('prints no token of a valid file', () => {
    const loaded = load(
      documentOf(
        'join',
        `discovery: {bootstrapToken: {token: ${TOKEN}, apiServerEndpoint: "a:1", unsafeSkipCAVerification: true}}\ncontrolPlane: {certificateKey: "${KEY}"}`,
      ),
    );
    expect(loaded.problems).toEqual([]);
    expect(JSON.stringify(loaded)).not.toContain(TOKEN);
    expect(JSON.stringify(loaded)).not.toContain(KEY);
    expect(loaded.join?.discovery?.bootstrapToken?.token?.reveal()).toBe(TOKEN);
  });

  it.each([
    ['certificateKey as a number', 'init', `certificateKey: ${KEY}`],
    ['certificateKey too long', 'init', `certificateKey: ${KEY}00`],
    ['token as a list', 'init', `bootstrapTokens: [{token: [${TOKEN}]}]`],
    ['token in upper case', 'init', `bootstrapTokens: [{token: ${TOKEN.toUpperCase()}}]`],
    ['token as a number', 'init', 'bootstrapTokens: [{token: 1234567890}]'],
    ['token as a lifetime', 'init', `bootstrapTokens: [{ttl: ${TOKEN}}]`],
    ['token as a name', 'init', `nodeRegistration: {name: "${TOKEN} "}`],
  ] as const)('prints no secret of an invalid file: %s', (_, document, body) => {
    const text = linesOf(load(documentOf(document, body)))
      .join('\n')
      .toLowerCase();
    expect(text).not.toContain(TOKEN);
    expect(text).not.toMatch(/1234567890/);
  });

  it('prints no token, in whichever field it is', () => {
    const path = fc.array(
      fc.constantFrom('nodeRegistration', 'name', 'discovery', 'bootstrapToken', 'token', 'ttl', 'taints', 'timeouts', 'patches', 'x', '0'),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    const wrap = (value: unknown, step: string): unknown => (step === '0' ? [value] : { [step]: value });
    fc.assert(
      fc.property(path, fc.constantFrom('InitConfiguration', 'JoinConfiguration', 'ResetConfiguration'), (steps, kind) => {
        const body = steps.reduceRight<unknown>((value, step) => wrap(value, step), TOKEN);
        const document = { apiVersion: 'kubeadm.k8s.io/v1beta4', kind, ...(typeof body === 'object' && !Array.isArray(body) ? body : {}) };
        const loaded = loadConfig(stringify(document), 'f.yaml', { kinds: CONFIG_KINDS });
        expect(linesOf(loaded).join('\n')).not.toContain(TOKEN);
      }),
      { numRuns: numberOfRuns(300) },
    );
  });
});

describe('any document', () => {
  const scalar = fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    6443,
    '',
    'x',
    'a b',
    '10.0.0.0/16',
    'unix:///x',
    '5m',
    TOKEN,
    [],
    {},
    [null],
    ['x'],
    { a: 'b' },
  );
  const field = fc.constantFrom(
    'nodeRegistration',
    'kubeletExtraArgs',
    'taints',
    'name',
    'value',
    'key',
    'effect',
    'bootstrapTokens',
    'token',
    'ttl',
    'discovery',
    'bootstrapToken',
    'file',
    'kubeConfigPath',
    'controlPlane',
    'localAPIEndpoint',
    'bindPort',
    'networking',
    'podSubnet',
    'serviceSubnet',
    'apiServer',
    'extraArgs',
    'extraEnvs',
    'valueFrom',
    'etcd',
    'local',
    'external',
    'endpoints',
    'featureGates',
    'timeouts',
    'apply',
    'node',
    'patches',
    'directory',
    'skipPhases',
    'unmountFlags',
    '__proto__',
    'toString',
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof({ maxDepth: 4 }, scalar, fc.dictionary(field, tie('tree'), { maxKeys: 5 }), fc.array(tie('tree'), { maxLength: 3 })),
  }));
  const kind = fc.constantFrom(
    'InitConfiguration',
    'ClusterConfiguration',
    'JoinConfiguration',
    'ResetConfiguration',
    'UpgradeConfiguration',
  );

  it('is validated without an exception', () => {
    fc.assert(
      fc.property(kind, fc.constantFrom('v1beta4', 'v1beta3'), fc.dictionary(field, tree, { maxKeys: 6 }), (kindName, version, body) => {
        const text = stringify({ apiVersion: `kubeadm.k8s.io/${version}`, kind: kindName, ...body });
        for (const problem of loadConfig(text, 'f.yaml', { kinds: CONFIG_KINDS }).problems) {
          expect(problem.position?.line).toBeGreaterThan(0);
          expect(() => new AppError(problem)).not.toThrow();
        }
      }),
      { numRuns: numberOfRuns(300) },
    );
  });
});
