import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../../src/base/json.ts';
import { parseSource } from '../../../../src/codec/source.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { type Verdict, validateKubeletConfiguration } from '../../../../src/kubelet/validate/validate.ts';
import { numberOfRuns } from '../../../support/thorough.ts';

const catalogue = await loadCatalogue();
const HEADER = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };
/** Allowance for busy hosts. */
const LIMIT_MS = 5_000;

function validate(fields: Json, minor = 36): Verdict {
  const [document] = parseSource(JSON.stringify({ ...HEADER, ...(fields as object) }), 'k.json').documents;
  if (document === undefined) throw new Error('no document');
  return validateKubeletConfiguration(document, { minor, catalogue, running: {}, flags: [{ name: 'max-pods', value: '1' }] });
}

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

describe('validateKubeletConfiguration finishes in time', () => {
  it.each<[string, Json]>([
    ['gates', { featureGates: Object.fromEntries(many(1_000, (i) => [`KubeletTracin${i}`, true])) }],
    ['kinds', { enforceNodeAllocatable: many(1_000, (i) => `system-reserve${i}`) }],
    ['cipher suites', { tlsCipherSuites: many(1_000, (i) => `TLS_RSA_WITH_AES_128_CBC_SH${i % 10}`) }],
    ['taints', { registerWithTaints: many(1_000, () => ({ key: 'a b', effect: 'x' })) }],
    ['thresholds', { evictionHard: Object.fromEntries(many(1_000, (i) => [`s${i}`, '<5'])) }],
    ['unreadable values', { clusterDNS: many(1_000, () => 1), featureGates: Object.fromEntries(many(1_000, (i) => [`G${i}`, 'x'])) }],
    ['digits', { kubeReserved: { memory: '9'.repeat(55_000) } }],
    ['a percentage', { evictionHard: { 'memory.available': `${'1'.repeat(55_000)}x%` } }],
    ['percent signs', { evictionHard: { 'memory.available': `${'%'.repeat(55_000)}x%` } }],
    [
      'exponents',
      {
        memoryManagerPolicy: 'Static',
        reservedMemory: [{ limits: { memory: '1e2147483647' } }],
        kubeReserved: { memory: '1e-2147483647' },
      },
    ],
    ['processors', { reservedSystemCPUs: `${'1,'.repeat(25_000)}0-99999999999` }],
    [
      'blanks',
      {
        imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages',
        preloadedImagesVerificationAllowlist: [`a${' '.repeat(55_000)}a`],
      },
    ],
    [
      'names of images',
      {
        imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages',
        preloadedImagesVerificationAllowlist: many(12, () => `${'a-'.repeat(2000)}!`),
      },
    ],
    ['names of sysctls', { allowedUnsafeSysctls: many(170, () => `net.${'a-'.repeat(120)}`) }],
    ['brackets in names', { featureGates: { ['['.repeat(50)]: true } }],
  ])('with endless %s', (_, fields) => {
    const start = performance.now();
    validate(fields);
    expect(performance.now() - start).toBeLessThan(LIMIT_MS);
  });

  const paths = [...catalogue.fields.keys()].filter((path) => !/[.[]/.test(path));
  const texts = fc.oneof(
    fc.string(),
    fc.constantFrom('', '-1', '0', '0s', '1Gi', '5%', 'none', 'true', '[', '](.', '../x', '%zz', '1-2-3'),
  );
  const values = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      texts,
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(
        fc.oneof(texts, fc.constantFrom('limits', 'memory', 'key', 'cpu', 'memory.available', 'json', 'endpoint')),
        tie('value'),
        { maxKeys: 3 },
      ),
    ),
  })).value;

  it('and without a crash for arbitrary values', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...paths), values, { maxKeys: 6 }), fc.integer({ min: 20, max: 37 }), (fields, minor) => {
        const { ok, problems } = validate(fields, minor);
        expect(ok).toBe(problems.every(({ severity }) => severity === 'warning'));
        for (const { path, position, message } of problems)
          expect([typeof path, typeof position?.line, message !== '']).toEqual(['string', 'number', true]);
      }),
      { numRuns: numberOfRuns(500) },
    );
  });
});
