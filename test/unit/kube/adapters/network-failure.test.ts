import { describe, expect, it } from 'vitest';
import { explainNetworkError, isBrokenConnection, ProxyError } from '../../../../src/kube/adapters/network-failure.ts';

const PROXY = new URL('http://me:hunter2@proxy:3128');
const failed = (code: string, message = '', more: object = {}) => Object.assign(new Error(message), { code, ...more });

describe('explainNetworkError', () => {
  it.each<[string, unknown, string, boolean]>([
    ['refused', failed('ECONNREFUSED'), 'connection refused', true],
    [
      'refused by every address of a name',
      new AggregateError([failed('ECONNREFUSED'), failed('ECONNREFUSED')]),
      'connection refused',
      true,
    ],
    ['no route', failed('EHOSTUNREACH'), 'no route to host', true],
    ['no name', failed('ENOTFOUND'), 'DNS name not found', true],
    ['lost', failed('ECONNRESET', 'socket hang up'), 'the connection was closed before a response arrived', false],
    ['timed out by the kernel', failed('ETIMEDOUT'), 'connection timed out', false],
    ['another CA', failed('SELF_SIGNED_CERT_IN_CHAIN'), 'certificate signed by an unknown CA', true],
    ['expired', failed('CERT_HAS_EXPIRED'), 'the server certificate has expired', true],
    [
      'another name',
      failed('ERR_TLS_CERT_ALTNAME_INVALID', '', { host: '10.0.0.9', cert: { subjectaltname: 'DNS:kubernetes, IP Address:10.0.0.1' } }),
      'the server certificate is not valid for 10.0.0.9, only for kubernetes, 10.0.0.1',
      true,
    ],
    ['no TLS', failed('EPROTO', 'write EPROTO ...:wrong version number:...'), 'the server does not speak TLS', true],
    [
      'a proxy',
      new ProxyError(PROXY, { why: 'with status 403', kind: 'ban' }),
      'the proxy http://proxy:3128 refused the connection with status 403',
      true,
    ],
    ['an unknown proxy', new ProxyError(PROXY, null, failed('ENOTFOUND')), 'the proxy http://proxy:3128: DNS name not found', true],
    ['bad keys', failed('ERR_OSSL_X509_KEY_VALUES_MISMATCH'), 'the TLS handshake failed (ERR_OSSL_X509_KEY_VALUES_MISMATCH)', true],
    ['something new', failed('EWHATEVER', 'secret text'), 'the connection failed (EWHATEVER)', false],
    ['not even an error', 'secret text', 'the connection failed', false],
    ['nothing', undefined, 'the connection failed', false],
  ])('%s', (_, error, why, neverSent) => {
    const issue = explainNetworkError(error);
    expect(issue).toMatchObject({ why, neverSent });
    expect(issue.hint).not.toBe('');
  });
});

it.each([
  [failed('ECONNRESET'), true],
  [failed('EPIPE'), true],
  [new Error('socket hang up'), true],
  [failed('ECONNREFUSED'), false],
  [failed('CERT_HAS_EXPIRED'), false],
])('isBrokenConnection %s', (error, broken) => {
  expect(isBrokenConnection(error)).toBe(broken);
});
