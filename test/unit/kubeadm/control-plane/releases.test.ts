import { describe, expect, it } from 'vitest';
import { RELEASES, releaseFacts } from '../../../../src/kubeadm/config/releases.ts';

describe('releaseFacts', () => {
  it.each([
    ['v1.34.0', 35],
    ['v1.36.2', 36],
    ['ci/v1.37.0-rc.0', 37],
    ['v1.40.0', 37],
    ['', 36],
  ])('%j has the facts of 1.%i', (version, minor) => {
    expect(releaseFacts(version).minor).toBe(minor);
  });

  it('has the images and gates of kubeadm 1.37', () => {
    expect(releaseFacts('v1.37.1')).toMatchObject({ etcd: '3.7.0-0', coredns: 'v1.14.6', featureGates: ['RootlessControlPlane'] });
    expect(releaseFacts('v1.36.2')).toMatchObject({ etcd: '3.6.8-0', coredns: 'v1.14.2' });
  });

  it('has the changes of kubeadm 1.37 only for 1.37', () => {
    const behaviour = RELEASES.map((facts) => [facts.minor, facts.warnsOfIpvs, facts.patchesKubeProxy, facts.portCheck]);
    expect(behaviour).toEqual([
      [35, false, false, 'all-addresses'],
      [36, false, false, 'all-addresses'],
      [37, true, true, 'listen-addresses'],
    ]);
  });

  it('assumes facts only of the newest minor', () => {
    expect(RELEASES.filter(({ assumed }) => assumed.length > 0).map(({ minor }) => minor)).toEqual([37]);
  });
});
