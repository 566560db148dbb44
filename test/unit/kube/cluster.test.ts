import { describe, expect, it } from 'vitest';
import {
  clusterAnswerInvalid,
  clusterNoSuchKind,
  clusterRefused,
  clusterUnreachable,
  isTemporaryError,
} from '../../../src/kube/cluster-problems.ts';

describe('clusterRefused', () => {
  it.each([
    [401, undefined, 'CLUSTER_UNAUTHORIZED'],
    [403, 'Forbidden', 'CLUSTER_FORBIDDEN'],
    [404, 'NotFound', 'CLUSTER_NOT_FOUND'],
    [409, 'Conflict', 'CLUSTER_CONFLICT'],
    [409, 'AlreadyExists', 'CLUSTER_ALREADY_EXISTS'],
    [410, 'Expired', 'CLUSTER_GONE'],
    [422, 'Invalid', 'CLUSTER_INVALID'],
    [400, 'BadRequest', 'CLUSTER_ERROR'],
    [500, undefined, 'CLUSTER_ERROR'],
  ])('%d %s is %s', (httpStatus, reason, code) => {
    expect(clusterRefused('get x', { httpStatus, reason }).code).toBe(code);
  });

  it('reports the status when the server sends no message', () => {
    expect(clusterRefused('get x', { httpStatus: 500 }).message).toBe('cannot get x: the API server answered 500 [CLUSTER_ERROR]');
  });

  it('omits the object that a server quotes', () => {
    const object = JSON.stringify({ kind: 'Secret', data: { key: 'c2VjcmV0' } });
    const message = ` "" is invalid: patch: Invalid value: ${JSON.stringify(object)}: json: cannot unmarshal number`;
    expect(clusterRefused('patch Secret a/b', { httpStatus: 422, message }).message).toBe(
      'cannot patch Secret a/b: "" is invalid: patch: Invalid value: "{…}": json: cannot unmarshal number [CLUSTER_INVALID]',
    );
    expect(clusterRefused('x', { httpStatus: 422, message: message.slice(0, 60) }).message).not.toContain('Secret');
  });

  it('is one line of limited length', () => {
    const { message } = clusterRefused('x', { httpStatus: 403, message: `a\nb\t${'c'.repeat(5000)}` });
    expect(message).toMatch(/^cannot x: a b c+… \[CLUSTER_FORBIDDEN\]$/);
    expect(message.length).toBeLessThan(1100);
  });
});

describe('isTemporaryError', () => {
  it('accepts temporary failures', () => {
    const request = { what: 'list Node', method: 'GET', path: '/api/v1/nodes' };
    const passing = [
      clusterUnreachable('https://a:6443', 'connection refused', 'x'),
      clusterRefused('x', { httpStatus: 503 }),
      clusterAnswerInvalid('https://a:6443', request, 'items: expected array'),
    ];
    const lasting = [clusterRefused('x', { httpStatus: 403 }), clusterNoSuchKind('https://a:6443', 'v1', 'X'), new Error('x')];
    expect([...passing, ...lasting].map(isTemporaryError)).toEqual([true, true, true, false, false, false]);
  });
});
