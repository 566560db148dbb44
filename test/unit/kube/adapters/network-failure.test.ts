import { describe, expect, it } from 'vitest';
import { explainNetworkError, isBrokenConnection } from '../../../../src/kube/adapters/network-failure.ts';
import { ProxyError } from '../../../../src/kube/adapters/proxy-error.ts';

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
    ['no route', failed('EHOSTUNREACH'), 'no route to the host', true],
    ['no name', failed('ENOTFOUND'), 'its name is not known to DNS', true],
    ['lost', failed('ECONNRESET', 'socket hang up'), 'the connection was closed before an answer came', false],
    ['timed out by the kernel', failed('ETIMEDOUT'), 'the connection timed out', false],
    ['another authority', failed('SELF_SIGNED_CERT_IN_CHAIN'), 'its certificate is signed by an unknown authority', true],
    ['expired', failed('CERT_HAS_EXPIRED'), 'its certificate has expired', true],
    [
      'another name',
      failed('ERR_TLS_CERT_ALTNAME_INVALID', '', { host: '10.0.0.9', cert: { subjectaltname: 'DNS:kubernetes, IP Address:10.0.0.1' } }),
      'its certificate is not for 10.0.0.9 but for kubernetes, 10.0.0.1',
      true,
    ],
    ['no TLS', failed('EPROTO', 'write EPROTO ...:wrong version number:...'), 'it does not speak TLS', true],
    [
      'a proxy',
      new ProxyError(PROXY, { why: 'with status 403', kind: 'ban' }),
      'the proxy http://proxy:3128 refused the connection with status 403',
      true,
    ],
    [
      'a proxy that is not there',
      new ProxyError(PROXY, null, failed('ENOTFOUND')),
      'the proxy http://proxy:3128: its name is not known to DNS',
      true,
    ],
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
