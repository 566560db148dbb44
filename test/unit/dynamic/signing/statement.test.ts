import { describe, expect, it } from 'vitest';
import {
  formatStatement,
  matchesName,
  parseStatement,
  type SignedStatement,
  statementMismatch,
  statementOf,
} from '../../../../src/dynamic/signing/statement.ts';

const SOURCE = { namespace: 'ns', name: 'config', kubeletConfigKey: 'kubelet' };
const DATA = { kubelet: 'a', 'kubelet.group.x': 'b' };
const ABOUT = { namespace: 'ns', name: 'config', key: 'kubelet', revision: 3, nodes: ['n-*'] };
const SIGNED: SignedStatement = statementOf(ABOUT, DATA);

describe('a signed statement', () => {
  it('is read as it was written, and nothing else is', () => {
    const text = formatStatement(SIGNED);
    expect(parseStatement(text)).toEqual(SIGNED);
    const body = JSON.parse(text) as Record<string, unknown>;
    for (const change of [
      { revision: 0 },
      { revision: 1.5 },
      { revision: '3' },
      { nodes: [] },
      { kind: 'Other' },
      { more: 1 },
      { sha256: null },
    ])
      expect(parseStatement(JSON.stringify({ ...body, ...change })), JSON.stringify(change)).toBeNull();
    expect(parseStatement('no JSON')).toBeNull();
  });

  it('is about exactly one ConfigMap, key and set of nodes', () => {
    const mismatch = (change: Partial<Parameters<typeof statementMismatch>[1]> = {}, statement = SIGNED): string | null =>
      statementMismatch(statement, { source: SOURCE, data: DATA, nodeName: 'n-1', ...change });
    expect(mismatch()).toBeNull();
    expect(mismatch({ data: { ...DATA, 'kubeletadm-signed.json': 'x', 'kubeletadm-signed.json.sig': 'y' } })).toBeNull();
    expect(mismatch({ source: { ...SOURCE, namespace: 'other' } })).toContain('for the ConfigMap ns/config, not for other/config');
    expect(mismatch({ source: { ...SOURCE, name: 'config-2' } })).toContain('not for ns/config-2');
    expect(mismatch({ source: { ...SOURCE, kubeletConfigKey: 'kubelet.group.x' } })).toContain('for the key "kubelet" of the ConfigMap');
    expect(mismatch({ nodeName: 'm-1' })).toContain('for other nodes (n-*), not for m-1');
    expect(mismatch({ data: { ...DATA, constructor: 'c' } })).toContain('the key "constructor" of the ConfigMap is not signed');
    expect(mismatch({ data: { kubelet: 'a' } })).toContain('the signed key "kubelet.group.x" is missing');
    expect(mismatch({ data: { ...DATA, kubelet: 'A' } })).toContain('the key "kubelet" of the ConfigMap was changed after signing');
  });
});

it.each([
  ['*', 'n1', true],
  ['n1', 'n1', true],
  ['n1', 'n10', false],
  ['n*', 'n', true],
  ['n*1', 'n1', true],
  ['n*1', 'n', false],
  ['aba*aba', 'aba', false],
  ['a*b*c', 'aXbYc', true],
  ['a*b*c', 'acb', false],
  ['a*b*b', 'ab', false],
  ['*edge*', 'my-edge-1', true],
])('the pattern %s matches the name %s: %s', (pattern, name, isMatch) => {
  expect(matchesName(pattern, name)).toBe(isMatch);
});
