import { describe, expect, it } from 'vitest';
import { parseFieldSelector, readLabelSelector } from '../../../../lab/api-server/selectors.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';

const object = (labels: Record<string, string>, name = 'x'): KubeObject => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });

describe('readLabelSelector', () => {
  it('matches the labels of an object', () => {
    expect(readLabelSelector('a=b')(object({ a: 'b' }))).toBe(true);
    expect(readLabelSelector('a=b')({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'x' } })).toBe(false);
  });

  it('answers an invalid selector with 400', () => {
    expect(() => readLabelSelector('a b')).toThrow(expect.objectContaining({ httpStatus: 400 }));
  });
});

describe('parseFieldSelector', () => {
  const fields = ({ metadata }: KubeObject) => ({ 'metadata.name': metadata.name, 'spec.nodeName': String(metadata.labels?.node ?? '') });
  it.each<[string, string, Record<string, string>, boolean]>([
    ['', 'x', {}, true],
    ['metadata.name=x', 'x', {}, true],
    ['metadata.name==y', 'x', {}, false],
    ['metadata.name!=y', 'x', {}, true],
    ['metadata.name=x,spec.nodeName=n', 'x', { node: 'n' }, true],
    ['metadata.name=x,spec.nodeName=n', 'x', { node: 'm' }, false],
    ['spec.nodeName=', 'x', {}, true],
    ['spec.nodeName!=', 'x', { node: 'n' }, true],
    ['metadata.name=a\\,b', 'a,b', {}, true],
    ['metadata.name=a\\=b', 'a=b', {}, true],
    [',', 'x', {}, true],
  ])('%j on %s %j: %s', (text, name, labels, expected) => {
    expect(parseFieldSelector(text, fields)(object(labels, name))).toBe(expected);
  });

  it.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['spec.foo=x', 'field label not supported: spec.foo'],
  ])('refuses %j', (text, message) => {
    expect(() => parseFieldSelector(text, fields)).toThrow(message);
  });
});
