import { describe, expect, it } from 'vitest';
import {
  type ConfigSigners,
  checkKeyList,
  formatSigners,
  parseSigners,
  readSignerPolicy,
} from '../../../../src/dynamic/signing/signers.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGWH0xh/e3m2jAR5l4L+wI5vwNLl6caCmlibkalTyqKa';

describe('the file of signers', () => {
  it.each<ConfigSigners>([
    { allowedSigners: `# team\na@x ${KEY} Alice\n`, revokedKeys: null, limits: null },
    {
      allowedSigners: `a@x,*@y namespaces="a b",valid-before="20300101" ${KEY}`,
      revokedKeys: `${KEY}\n`,
      limits: { '*@y': { allow: 'safe' }, 'a@x': {} },
    },
  ])('is read as it was written', (signers) => {
    expect(parseSigners(formatSigners(signers))).toEqual(signers);
  });

  it('is not read if a member is missing or unknown', () => {
    const text = formatSigners({ allowedSigners: 'a', revokedKeys: null, limits: null });
    for (const damaged of ['', '{}', '[]', text.replace('limits', 'limit'), text.slice(0, 20)]) expect(parseSigners(damaged)).toBeNull();
  });

  it('is checked line by line', () => {
    expect(() => checkKeyList(`# comment\n\na@x cert-authority ${KEY}\n`, 'f', 'allowed signers')).not.toThrow();
    expect(() => checkKeyList(`${KEY} old\n`, 'f', 'revoked keys')).not.toThrow();
    expect(() => checkKeyList('', 'f', 'revoked keys')).not.toThrow();
    const bad = (text: string, content: 'allowed signers' | 'revoked keys' = 'allowed signers') =>
      expect(() => checkKeyList(text, 'f', content));
    bad(`a@x ${KEY}\n${KEY}\n`).toThrow('f:2: the line does not contain a public key in the form: alice@example.com ssh-ed25519 AAAA...');
    bad('a@x ssh-ed25519 key').toThrow('f:1: ');
    bad('# nobody\n').toThrow('f names no signer');
    bad('SSHKRL\n\0\0', 'revoked keys').toThrow('the file is not text');
    bad(`a@x ${KEY}\n`.repeat(1000)).toThrow('more than 65536 characters');
  });
});

describe('a signer policy', () => {
  const policy = (signers: string): string => `apiVersion: kubeletadm.dev/v1alpha1\nkind: SignerPolicy\nsigners:\n${signers}`;

  it('has an entry for each principal', () => {
    expect(readSignerPolicy(policy('  a@x: {}\n  b@x: {allow: safe, fields: [maxPods]}\n'), 'f')).toEqual({
      'a@x': {},
      'b@x': { allow: 'safe', fields: ['maxPods'] },
    });
  });

  it.each([
    ['  a@x: {allow: everything}\n', 'f: signers.a@x.allow: '],
    ['  a@x: {permit: safe}\n', 'f: signers.a@x: '],
    ['  - a@x\n', 'f: signers: '],
  ])('%j is refused', (signers, message) => {
    expect(() => readSignerPolicy(policy(signers), 'f')).toThrow(message);
  });
});
