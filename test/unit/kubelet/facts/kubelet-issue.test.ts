import { describe, expect, it } from 'vitest';
import { kubeletIssue } from '../../../../src/kubelet/facts/kubelet-issue.ts';
import { fixture } from '../../../support/fixture.ts';

const JOURNAL = fixture(import.meta.url, '../../host/facts/fixtures/kubelet-trouble/1.36-no-api-server.txt');
const REFUSED = 'dial tcp 10.0.0.10:6443: connect: connection refused';

describe('the logged reason for a missing certificate or Node', () => {
  it('returns the last error', () => {
    expect(kubeletIssue(JOURNAL)).toBe(
      `cannot create certificate signing request: Post "https://10.0.0.10:6443/apis/certificates.k8s.io/v1/certificatesigningrequests": ${REFUSED}`,
    );
    const registering = JOURNAL.split('\n').filter((line) => !line.includes('certificate_manager'));
    expect(kubeletIssue(registering.join('\n'))).toBe(`Post "https://10.0.0.10:6443/api/v1/nodes": ${REFUSED}`);
  });

  it.each([
    ['Failed while requesting a signed certificate from the master: cannot create certificate signing request: Unauthorized'],
    [
      'kubernetes.io/kubelet: Failed while requesting a signed certificate from the control plane: cannot create certificate signing request: Unauthorized',
    ],
    [
      '"Failed while requesting a signed certificate from the control plane" err="cannot create certificate signing request: Unauthorized" logger="x"',
    ],
  ])('in the log format of its version: %s', (reported) => {
    expect(kubeletIssue(`E0102 03:04:05.678901   42 certificate_manager.go:1] ${reported}\n`)).toBe(
      'cannot create certificate signing request: Unauthorized',
    );
  });

  it.each([
    ['Unable to register node "w1" with API server: nodes is forbidden'],
    ['"Unable to register node with API server, reason is forbidden" err="nodes is forbidden" node="w1"'],
  ])('%s', (reported) =>
    expect(kubeletIssue(`E0102 03:04:05.678901   42 kubelet_node_status.go:1] ${reported}`)).toBe('nodes is forbidden'),
  );

  it('is one line without terminal escape sequences', () => {
    const reported = kubeletIssue(`Unable to register node "w1" with API server: \u001b[2J${'x'.repeat(500)}`);
    expect(reported).toMatch(/^\[2Jx+\.\.\.$/);
    expect(reported?.length).toBeLessThan(310);
  });

  it('is null without such an error', () => {
    expect(kubeletIssue('')).toBeNull();
    expect(kubeletIssue('I0102 Attempting to register node')).toBeNull();
  });
});
