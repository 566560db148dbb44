import { describe, expect, it } from 'vitest';
import { resolvePlainScalar } from '../../../src/codec/yaml-scalar.ts';
import { fixture } from '../../support/fixture.ts';

/** Plain scalars and the JSON that kubectl's YAML parser (sigs.k8s.io/yaml, as in kubelet and kubeadm) converts them to. */
const RECORDED = JSON.parse(fixture(import.meta.url, 'fixtures/scalars-kubectl-1.32.json')) as readonly (readonly [string, unknown])[];

describe('resolvePlainScalar', () => {
  it.each(RECORDED)('reads %j as Kubernetes does', (text, expected) => {
    const { value } = resolvePlainScalar(text);
    expect(typeof value === 'number' ? value + 0 : value).toBe(expected);
  });

  it.each([
    ['9007199254740991', { type: 'int', value: 9007199254740991 }],
    ['9007199254740993', { type: 'int', value: 9007199254740993n }],
    ['-9223372036854775808', { type: 'int', value: -9223372036854775808n }],
    ['18446744073709551615', { type: 'int', value: 18446744073709551615n }],
    ['18446744073709551616', { type: 'float', value: 2 ** 64 }],
    ['+9223372036854775808', { type: 'float', value: 2 ** 63 }],
    ['0x10000000000000000', { type: 'string', value: '0x10000000000000000' }],
    ['1e400', { type: 'string', value: '1e400' }],
    ['.inf', { type: 'float', value: Number.POSITIVE_INFINITY }],
    ['-.Inf', { type: 'float', value: Number.NEGATIVE_INFINITY }],
    ['.NaN', { type: 'float', value: Number.NaN }],
    ['2001-12-14', { type: 'timestamp', value: '2001-12-14' }],
    ['2001-12-14T21:59:43Z', { type: 'timestamp', value: '2001-12-14T21:59:43Z' }],
    ['1h0m0s', { type: 'string', value: '1h0m0s' }],
    ['10%', { type: 'string', value: '10%' }],
    ['', { type: 'null', value: null }],
  ])('%j', (text, expected) => {
    expect(resolvePlainScalar(text)).toEqual(expected);
  });
});
