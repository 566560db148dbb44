import { describe, expect, it } from 'vitest';
import {
  applyForceUpgrade,
  checkUpgradeVersions,
  kubeletVersionsOf,
  type UpgradeVersions,
} from '../../../../src/kubeadm/upgrade/version-policy.ts';

const KUBELETS = new Map([['v1.35.6', ['cp1', 'worker1']]]);

function check(versions: Partial<UpgradeVersions>) {
  return checkUpgradeVersions({
    target: 'v1.36.2',
    clusterVersion: 'v1.35.6',
    kubeletVersions: KUBELETS,
    allowExperimental: false,
    allowReleaseCandidates: false,
    ...versions,
  });
}

function codes(versions: Partial<UpgradeVersions>) {
  const { mandatory, skippable, warnings } = check(versions);
  const of = (list: readonly { readonly code: string }[]) => list.map(({ code }) => code);
  return { mandatory: of(mandatory), skippable: of(skippable), warnings: of(warnings) };
}

const NONE = { mandatory: [], skippable: [], warnings: [] };

describe('checkUpgradeVersions', () => {
  it.each<[string, Partial<UpgradeVersions>]>([
    ['one minor', {}],
    ['a patch', { clusterVersion: 'v1.36.1', target: 'v1.36.9' }],
    ['the same version', { clusterVersion: 'v1.36.2' }],
    ['an earlier patch', { clusterVersion: 'v1.36.5' }],
    ['one minor down', { clusterVersion: 'v1.36.2', target: 'v1.35.6' }],
    ['from a build', { clusterVersion: 'v1.35.6-10+abcdef' }],
    ['a release candidate that is allowed', { target: 'v1.36.0-rc.1', allowReleaseCandidates: true }],
    ['a release candidate among all pre-releases', { target: 'v1.36.0-rc.1', allowExperimental: true }],
    ['an alpha that is allowed', { target: 'v1.36.0-alpha.2', allowExperimental: true }],
    ['kubelets of three minors before', { kubeletVersions: new Map([['v1.33.0', ['worker1']]]) }],
    ['a cluster without Nodes', { kubeletVersions: new Map() }],
  ])('accepts %s', (_, versions) => {
    expect(codes(versions)).toEqual(NONE);
  });

  it.each<[string, Partial<UpgradeVersions>, Partial<ReturnType<typeof codes>>]>([
    ['a target that is a label', { target: 'stable-1' }, { mandatory: ['UPGRADE_VERSION_INVALID'] }],
    ['an invalid cluster version', { clusterVersion: 'x' }, { mandatory: ['UPGRADE_VERSION_INVALID'] }],
    [
      'a target before the oldest minor',
      { clusterVersion: 'v1.35.0', target: 'v1.34.9', kubeletVersions: new Map() },
      { mandatory: ['UPGRADE_TARGET_TOO_OLD'] },
    ],
    [
      'a pre-release of the oldest minor',
      { clusterVersion: 'v1.35.0', target: 'v1.35.0-rc.1', allowExperimental: true },
      { mandatory: ['UPGRADE_TARGET_TOO_OLD'] },
    ],
    ['two minors at once', { clusterVersion: 'v1.34.0' }, { mandatory: ['UPGRADE_SKIPS_MINOR'] }],
    [
      'two minors at once to a pre-release',
      { clusterVersion: 'v1.34.0', target: 'v1.36.0-beta.0', allowExperimental: true },
      { skippable: ['UPGRADE_SKIPS_MINOR'] },
    ],
    ['two minors down', { clusterVersion: 'v1.37.0', target: 'v1.35.0' }, { mandatory: ['UPGRADE_SKIPS_MINOR'] }],
    ['another major', { target: 'v2.36.0' }, { mandatory: ['UPGRADE_SKIPS_MINOR', 'UPGRADE_TARGET_TOO_NEW'] }],
    ['a minor without known facts', { clusterVersion: 'v1.37.0', target: 'v1.38.0' }, { mandatory: ['UPGRADE_TARGET_TOO_NEW'] }],
    [
      'a pre-release of a minor without known facts',
      { clusterVersion: 'v1.37.0', target: 'v1.38.0-alpha.1', allowExperimental: true },
      { skippable: ['UPGRADE_TARGET_TOO_NEW'] },
    ],
    ['a release candidate', { target: 'v1.36.0-rc.1' }, { skippable: ['UPGRADE_TARGET_UNSTABLE'] }],
    [
      'an alpha if only candidates are allowed',
      { target: 'v1.36.0-alpha.1', allowReleaseCandidates: true },
      { skippable: ['UPGRADE_TARGET_UNSTABLE'] },
    ],
    [
      'kubelets of four minors before',
      { kubeletVersions: new Map([['v1.32.9', ['worker1']]]) },
      { skippable: ['UPGRADE_KUBELETS_TOO_OLD'] },
    ],
    ['a kubelet without a version', { kubeletVersions: new Map([['', ['worker1']]]) }, { skippable: ['UPGRADE_VERSION_INVALID'] }],
    ['Nodes that cannot be listed', { kubeletVersions: null }, { skippable: ['UPGRADE_KUBELETS_UNKNOWN'] }],
    ['a minor whose facts are assumed', { clusterVersion: 'v1.36.2', target: 'v1.37.0' }, { warnings: ['UPGRADE_FACTS_ASSUMED'] }],
    [
      'kubelets newer than the target',
      { clusterVersion: 'v1.36.2', target: 'v1.35.6', kubeletVersions: new Map([['v1.36.2', ['worker1']]]) },
      { warnings: ['UPGRADE_KUBELETS_NEWER'] },
    ],
  ])('reports %s', (_, versions, expected) => {
    expect(codes(versions)).toEqual({ ...NONE, ...expected });
  });

  it('names the assumed facts', () => {
    expect(check({ clusterVersion: 'v1.36.2', target: 'v1.37.0' }).warnings[0]?.message).toMatch(
      /: the pause image and manifests of 1\.36 are used$/,
    );
  });

  it('names the pre-release option, the Nodes, and the next step', () => {
    expect(check({ target: 'v1.36.0-rc.1' }).skippable[0]?.hint).toBe('Allow pre-releases with --allow-release-candidate-upgrades');
    expect(check({ target: 'v1.36.0-alpha.1' }).skippable[0]?.hint).toBe('Allow pre-releases with --allow-experimental-upgrades');
    const old = check({ kubeletVersions: new Map([['v1.32.9', ['worker1', 'worker2']]]) });
    expect(old.skippable[0]?.message).toContain('v1.32.9 on worker1, worker2');
    expect(check({ clusterVersion: 'v1.34.3' }).mandatory[0]?.hint).toBe('First change to the latest release of v1.35');
    expect(check({ clusterVersion: 'v1.37.0', target: 'v1.35.0' }).mandatory[0]?.hint).toBe('First change to the latest release of v1.36');
  });
});

describe('applyForceUpgrade', () => {
  const verdict = check({ clusterVersion: 'v1.34.0', kubeletVersions: null });

  it('refuses everything without --force, and names --force where it helps', () => {
    const { refusals, warnings } = applyForceUpgrade(verdict, false);
    expect(refusals.map(({ code, hint }) => [code, hint?.includes('--force')])).toEqual([
      ['UPGRADE_SKIPS_MINOR', false],
      ['UPGRADE_KUBELETS_UNKNOWN', true],
    ]);
    expect(warnings).toEqual([]);
  });

  it('turns skippable problems into warnings with --force', () => {
    const { refusals, warnings } = applyForceUpgrade(verdict, true);
    expect(refusals.map(({ code }) => code)).toEqual(['UPGRADE_SKIPS_MINOR']);
    expect(warnings.map(({ code }) => code)).toEqual(['UPGRADE_KUBELETS_UNKNOWN']);
  });
});

describe('kubeletVersionsOf', () => {
  it('groups Nodes by the version of their kubelet', () => {
    const node = (name: string, kubeletVersion: string) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: { nodeInfo: { kubeletVersion } },
    });
    expect([...kubeletVersionsOf([node('a', 'v1.36.2'), node('b', 'v1.35.6'), node('c', 'v1.36.2')])]).toEqual([
      ['v1.36.2', ['a', 'c']],
      ['v1.35.6', ['b']],
    ]);
  });
});
