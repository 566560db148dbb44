import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { clusterInfoKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import { isSignedBy, signDetached } from '../../../../src/kubeadm/token/jws.ts';
import { KUBEADM_DRY_RUN } from '../../../support/kubeadm-dry-run.ts';

describe('signDetached', () => {
  it('matches the signature of the bootstrap signer', () => {
    const { token, server, caPem, signature } = KUBEADM_DRY_RUN;
    expect(signDetached(token.id, new Secret(token.secret), clusterInfoKubeconfig({ server, caPem }))).toBe(signature);
  });

  it('signs the UTF-8 bytes of the payload', () => {
    const payload = 'größe: ✓\n';
    const [header = '', signature] = signDetached('07401b', new Secret('f395accd246ae52d'), payload).split('..');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'HS256', kid: '07401b' });
    const signed = `${header}.${Buffer.from(payload).toString('base64url')}`;
    expect(signature).toBe(createHmac('sha256', 'f395accd246ae52d').update(signed).digest('base64url'));
  });

  it.each([
    ['the secret', signDetached('abcdef', new Secret('abcdef0123456780'), 'x')],
    ['the id', signDetached('abcdee', new Secret('abcdef0123456789'), 'x')],
    ['the payload', signDetached('abcdef', new Secret('abcdef0123456789'), 'x\n')],
  ])('depends on %s', (_, other) => {
    expect(other).not.toBe(signDetached('abcdef', new Secret('abcdef0123456789'), 'x'));
  });
});

describe('isSignedBy', () => {
  const { token, server, caPem, signature } = KUBEADM_DRY_RUN;
  const payload = clusterInfoKubeconfig({ server, caPem });
  const [header = '', mac = ''] = signature.split('..');
  const validate = (given: string, { id = token.id as string, secret = token.secret as string, text = payload } = {}) =>
    isSignedBy(given, id, new Secret(secret), text);
  const headerOf = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

  it('accepts the signature of the bootstrap signer', () => {
    expect(validate(signature)).toBe(true);
  });

  it.each([
    ['with another secret', validate(signature, { secret: 'abcdef0123456780' })],
    ['with another id', validate(signature, { id: 'abcdee' })],
    ['for another text', validate(signature, { text: `${payload} ` })],
    ['that is truncated', validate(signature.slice(0, -1))],
    ['with one character changed', validate(`${signature.slice(0, -1)}N`)],
    ['that is empty', validate('')],
    ['without a MAC', validate(`${header}..`)],
    ['without a header', validate(`..${mac}`)],
    ['with the algorithm none', validate(`${headerOf({ alg: 'none', kid: token.id })}..`)],
    ['with another algorithm and the same MAC', validate(`${headerOf({ alg: 'HS512', kid: token.id })}..${mac}`)],
    ['with reordered header fields', validate(`${headerOf({ kid: token.id, alg: 'HS256' })}..${mac}`)],
    ['with an embedded payload', validate(`${header}.${Buffer.from(payload).toString('base64url')}.${mac}`)],
    ['with padding', validate(`${signature}=`)],
    ['in standard base64', validate(signature.replaceAll('-', '+').replaceAll('_', '/'))],
    ['with a trailing space', validate(`${signature} `)],
  ])('rejects a signature %s', (_, verdict) => {
    expect(verdict).toBe(false);
  });
});
