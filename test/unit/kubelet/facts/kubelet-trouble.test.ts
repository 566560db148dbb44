import { describe, expect, it } from 'vitest';
import { kubeletTrouble } from '../../../../src/kubelet/facts/kubelet-trouble.ts';
import { fixture } from '../../../support/fixture.ts';

const JOURNAL = fixture(import.meta.url, '../../host/facts/fixtures/kubelet-trouble/1.36-no-api-server.txt');
const REFUSED = 'dial tcp 10.0.0.10:6443: connect: connection refused';

describe('what a kubelet says keeps it from its certificate or its Node', () => {
  it('the last it said', () => {
    expect(kubeletTrouble(JOURNAL)).toBe(
      `cannot create certificate signing request: Post "https://10.0.0.10:6443/apis/certificates.k8s.io/v1/certificatesigningrequests": ${REFUSED}`,
    );
    const registering = JOURNAL.split('\n').filter((line) => !line.includes('certificate_manager'));
    expect(kubeletTrouble(registering.join('\n'))).toBe(`Post "https://10.0.0.10:6443/api/v1/nodes": ${REFUSED}`);
  });

  it.each([
    ['Failed while requesting a signed certificate from the master: cannot create certificate signing request: Unauthorized'],
    [
      'kubernetes.io/kubelet: Failed while requesting a signed certificate from the control plane: cannot create certificate signing request: Unauthorized',
    ],
    [
      '"Failed while requesting a signed certificate from the control plane" err="cannot create certificate signing request: Unauthorized" logger="x"',
    ],
  ])('in the form of its time: %s', (said) => {
    expect(kubeletTrouble(`E0102 03:04:05.678901   42 certificate_manager.go:1] ${said}\n`)).toBe(
      'cannot create certificate signing request: Unauthorized',
    );
  });

  it.each([
    ['Unable to register node "w1" with API server: nodes is forbidden'],
    ['"Unable to register node with API server, reason is forbidden" err="nodes is forbidden" node="w1"'],
  ])('%s', (said) => expect(kubeletTrouble(`E0102 03:04:05.678901   42 kubelet_node_status.go:1] ${said}`)).toBe('nodes is forbidden'));

  it('in one line that no terminal obeys', () => {
    const said = kubeletTrouble(`Unable to register node "w1" with API server: \u001b[2J${'x'.repeat(500)}`);
    expect(said).toMatch(/^\[2Jx+\.\.\.$/);
    expect(said?.length).toBeLessThan(310);
  });

  it('nothing', () => {
    expect(kubeletTrouble('')).toBeNull();
    expect(kubeletTrouble('I0102 Attempting to register node')).toBeNull();
  });
});
