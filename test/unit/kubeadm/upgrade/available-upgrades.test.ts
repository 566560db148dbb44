import { describe, expect, it } from 'vitest';
import { parseSemanticVersion } from '../../../../src/base/semantic-version.ts';
import { availableUpgrades, formatVersion, newestVersion } from '../../../../src/kubeadm/upgrade/available-upgrades.ts';

interface Case {
  readonly cluster: string;
  readonly program?: string;
  /** Versions of the labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly allow?: readonly ('experimental' | 'candidates')[];
}

async function upgradesOf({ cluster, program = 'v1.36.2', labels, allow = [] }: Case) {
  const asked: string[] = [];
  const version = parseSemanticVersion(cluster);
  if (version === null) throw new Error(cluster);
  const upgrades = await availableUpgrades({
    cluster: version,
    program,
    allowExperimental: allow.includes('experimental'),
    allowReleaseCandidates: allow.includes('candidates'),
    resolve: async (label) => {
      asked.push(label);
      const found = labels[label];
      if (found === undefined) throw new Error(`unexpected label ${label}`);
      return found;
    },
  });
  return { upgrades: upgrades.map(({ description, target, kubeadm }) => [description, target, kubeadm]), asked };
}

describe('availableUpgrades', () => {
  it.each<[string, Case, readonly (readonly string[])[]]>([
    ['nothing at the newest version', { cluster: 'v1.36.2', labels: { stable: 'v1.36.2', 'stable-1.36': 'v1.36.2' } }, []],
    [
      'a patch, with this kubeadm if it is new enough',
      { cluster: 'v1.36.0', labels: { stable: 'v1.36.2', 'stable-1.36': 'v1.36.2' } },
      [['version in the v1.36 series', 'v1.36.2', 'v1.36.2']],
    ],
    [
      'a patch that requires a newer kubeadm',
      { cluster: 'v1.36.0', labels: { stable: 'v1.36.4', 'stable-1.36': 'v1.36.4' } },
      [['version in the v1.36 series', 'v1.36.4', 'v1.36.4']],
    ],
    [
      'a patch and a minor',
      { cluster: 'v1.35.1', labels: { stable: 'v1.36.2', 'stable-1.35': 'v1.35.6' } },
      [
        ['version in the v1.35 series', 'v1.35.6', 'v1.36.2'],
        ['stable version', 'v1.36.2', 'v1.36.2'],
      ],
    ],
    [
      'only a minor at the newest patch',
      { cluster: 'v1.35.6', labels: { stable: 'v1.36.2', 'stable-1.35': 'v1.35.6' } },
      [['stable version', 'v1.36.2', 'v1.36.2']],
    ],
    [
      'a release candidate if candidates are allowed',
      {
        cluster: 'v1.36.2',
        labels: { stable: 'v1.36.2', 'stable-1.36': 'v1.36.2', latest: 'v1.38.0-alpha.1', 'latest-1.37': 'v1.37.0-rc.1' },
        allow: ['candidates'],
      },
      [['release candidate version', 'v1.37.0-rc.1', 'v1.37.0-rc.1']],
    ],
    [
      'no beta if only candidates are allowed',
      {
        cluster: 'v1.36.2',
        labels: { stable: 'v1.36.2', 'stable-1.36': 'v1.36.2', latest: 'v1.38.0-alpha.1', 'latest-1.37': 'v1.37.0-beta.0' },
        allow: ['candidates'],
      },
      [],
    ],
    [
      'the newest alpha if all pre-releases are allowed',
      {
        cluster: 'v1.36.2',
        labels: { stable: 'v1.36.2', 'stable-1.36': 'v1.36.2', latest: 'v1.37.0-alpha.2', 'latest-1.36': 'v1.36.3-beta.0' },
        allow: ['experimental'],
      },
      [['experimental version', 'v1.37.0-alpha.2', 'v1.37.0-alpha.2']],
    ],
    [
      'the branch before instead of its first alpha',
      {
        cluster: 'v1.36.2',
        labels: { stable: 'v1.36.2', 'stable-1.36': 'v1.36.2', latest: 'v1.38.0-alpha.0', 'latest-1.37': 'v1.37.0-beta.0' },
        allow: ['experimental'],
      },
      [['experimental version', 'v1.37.0-beta.0', 'v1.37.0-beta.0']],
    ],
  ])('offers %s', async (_, given, expected) => {
    expect((await upgradesOf(given)).upgrades).toEqual(expected);
  });

  it('asks for no patch of a branch without a stable release', async () => {
    const { upgrades, asked } = await upgradesOf({ cluster: 'v1.37.0-beta.1', labels: { stable: 'v1.36.2' } });
    expect([upgrades, asked]).toEqual([[], ['stable']]);
  });
});

describe('newestVersion', () => {
  it('is the highest by precedence, or null when a version cannot be read', () => {
    const of = (...versions: readonly string[]) => newestVersion(new Map(versions.map((version) => [version, ['cp1']])));
    expect(of('v1.35.10', 'v1.35.9', 'v1.35.10-rc.1')).toMatchObject({ minor: 35, patch: 10, preRelease: '' });
    expect(of('v1.35.9', 'latest')).toBeNull();
    expect(of()).toBeNull();
    expect(formatVersion({ major: 1, minor: 36, patch: 0, preRelease: 'rc.1' })).toBe('1.36.0-rc.1');
  });
});
