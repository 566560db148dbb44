import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import type { UnitState } from '../../../../src/host/facts/unit.ts';
import { installPackages } from '../../../../src/host/install/operations.ts';
import {
  isVersion,
  type ObservedPackages,
  packageArgument,
  planPackages,
  validateInstalled,
} from '../../../../src/host/install/plan-packages.ts';
import { KUBERNETES_KEY_FINGERPRINT, kubernetesRepositoryUrl, type PackageInstall } from '../../../../src/host/operation/install-model.ts';
import { parsePackages } from '../../../../src/host/operation/package-facts.ts';
import { describeDone } from '../../../../src/host/operation-kinds.ts';
import type { HostChange } from '../../../../src/host/plan/change.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

const templates = await loadTemplates();
const KEY = readFileSync(new URL('./fixtures/rsa-forever.asc', import.meta.url), 'utf8');

function install(over: Partial<PackageInstall> = {}): PackageInstall {
  return {
    kind: 'packages',
    version: '1.36',
    runtime: 'containerd',
    extra: [],
    repositories: [
      {
        name: 'kubernetes',
        url: kubernetesRepositoryUrl('1.36'),
        suite: '/',
        components: [],
        key: null,
        keyFingerprints: [KUBERNETES_KEY_FINGERPRINT],
      },
    ],
    ...over,
  };
}

const unit = (activeState: string, unitFileState = 'enabled'): UnitState => ({ activeState, unitFileState }) as UnitState;

function situation(packages: string, over: Partial<ObservedPackages> = {}): ObservedPackages {
  return {
    host: 'n1',
    packages: parsePackages(packages),
    files: new Map(),
    keys: new Map([['kubernetes', KEY]]),
    kubelet: null,
    runtime: null,
    ...over,
  };
}

const fact = (content: string): FileFact => ({ type: 'file', mode: 0o644, owner: 'root:root', content });
const LIST = 'deb [signed-by=/etc/apt/keyrings/kubernetes-apt-keyring.asc] https://pkgs.k8s.io/core:/stable:/v1.36/deb/ /\n';
const FILES = new Map([
  ['/etc/apt/keyrings/kubernetes-apt-keyring.asc', fact(KEY)],
  ['/etc/apt/sources.list.d/kubernetes.list', fact(LIST)],
]);
const shown = (changes: readonly unknown[]): readonly string[] => (changes as readonly HostChange[]).map(describeDone);

describe('planPackages', () => {
  it('sets up a Debian host: key, repository, packages, hold, runtime', () => {
    const { changes } = planPackages(templates, install(), situation('manager apt\n'));
    expect(changes).toEqual([
      expect.objectContaining({ kind: 'write-file', path: '/etc/apt/keyrings/kubernetes-apt-keyring.asc', content: KEY, mode: 0o644 }),
      expect.objectContaining({ kind: 'write-file', path: '/etc/apt/sources.list.d/kubernetes.list', content: LIST }),
      {
        kind: 'install-packages',
        manager: 'apt',
        packages: ['kubelet=1.36.*', 'cri-tools', 'containerd'],
        repositories: ['kubernetes'],
        reason: 'kubelet, cri-tools, containerd are not installed',
      },
      { kind: 'hold-packages', packages: ['kubelet'], reason: 'system upgrades must not change its version' },
      { kind: 'enable-unit', unit: 'containerd', reason: 'the unit is not enabled at boot' },
      { kind: 'start-unit', unit: 'containerd', reason: 'the unit is not running' },
    ]);
  });

  it('writes the release and the components of a Debian repository', () => {
    const [kubernetes] = install().repositories;
    const docker = { ...kubernetes, name: 'docker', url: 'https://example.com/debian/', suite: 'bookworm', components: ['stable', 'test'] };
    const repositories = [kubernetes, docker] as PackageInstall['repositories'];
    const { changes } = planPackages(templates, install({ repositories }), situation('manager apt\n'));
    expect(changes).toContainEqual(
      expect.objectContaining({
        path: '/etc/apt/sources.list.d/docker.list',
        content: 'deb [signed-by=/etc/apt/keyrings/docker-apt-keyring.asc] https://example.com/debian/ bookworm stable test\n',
      }),
    );
  });

  it('sets up a Red Hat host with CRI-O from a repository of its own', () => {
    const crio = {
      name: 'cri-o',
      url: 'https://example.com/cri-o/rpm/',
      suite: '/',
      components: [],
      key: 'crio.asc',
      keyFingerprints: ['A'],
    };
    const { changes } = planPackages(
      templates,
      install({ version: '1.36.2', runtime: 'cri-o', extra: ['socat'], repositories: [...install().repositories, crio] }),
      situation('manager dnf\n', {
        keys: new Map([
          ['kubernetes', KEY],
          ['cri-o', KEY],
        ]),
      }),
    );
    expect(shown(changes)).toEqual([
      'created /etc/pki/rpm-gpg/RPM-GPG-KEY-kubernetes',
      'created /etc/yum.repos.d/kubernetes.repo',
      'created /etc/pki/rpm-gpg/RPM-GPG-KEY-cri-o',
      'created /etc/yum.repos.d/cri-o.repo',
      'installed kubelet-1.36.2-*, cri-tools, cri-o, socat',
      'enabled crio',
      'started crio',
    ]);
    const repos = (changes as readonly HostChange[]).flatMap((change) =>
      change.kind === 'write-file' && change.path.endsWith('.repo') ? [change.content] : [],
    );
    expect(repos).toEqual([
      '[kubernetes]\nname=kubernetes\nbaseurl=https://pkgs.k8s.io/core:/stable:/v1.36/rpm/\nenabled=1\ngpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-kubernetes\nexclude=kubelet\n',
      '[cri-o]\nname=cri-o\nbaseurl=https://example.com/cri-o/rpm/\nenabled=1\ngpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-cri-o\n',
    ]);
  });

  const DONE =
    'manager apt\ninstalled kubelet 1.36.2-1.1\ninstalled cri-tools 1.36.0-1.1\ninstalled containerd 1.6.20~ds1-1+b1\nheld kubelet\n';

  it('has nothing to do on a host that has it all', () => {
    expect(planPackages(templates, install(), situation(DONE, { files: FILES, runtime: unit('active') }))).toEqual({
      changes: [],
      noop: 'kubelet 1.36.2-1.1, cri-tools 1.36.0-1.1, containerd 1.6.20~ds1-1+b1: installed',
    });
  });

  it.each<[string, Partial<PackageInstall>, string, Partial<ObservedPackages>, readonly string[]]>([
    [
      'installs another package and restarts a running kubelet',
      { version: '1.36.3' },
      DONE,
      { kubelet: unit('active') },
      ['installed kubelet=1.36.3-*', 'holds kubelet at the installed version', 'restarted kubelet'],
    ],
    [
      'does not start a stopped kubelet',
      { version: '1.36.3' },
      DONE,
      { kubelet: unit('inactive') },
      ['installed kubelet=1.36.3-*', 'holds kubelet at the installed version'],
    ],
    ['the hold was removed', {}, DONE.replace('held kubelet\n', ''), {}, ['holds kubelet at the installed version']],
    ['another package', { extra: ['socat'] }, DONE, {}, ['installed socat']],
    ['the runtime was stopped', {}, DONE, { runtime: unit('inactive', 'disabled') }, ['enabled containerd', 'started containerd']],
    ['no runtime is declared', { runtime: null }, DONE, { runtime: unit('inactive', 'disabled') }, []],
    [
      'an edited repository list',
      {},
      DONE,
      { files: new Map([...FILES, ['/etc/apt/sources.list.d/kubernetes.list', fact('deb http://x /\n')]]) },
      ['updated /etc/apt/sources.list.d/kubernetes.list'],
    ],
  ])('%s', (_, over, packages, more, expected) => {
    expect(
      shown(planPackages(templates, install(over), situation(packages, { files: FILES, runtime: unit('active'), ...more })).changes),
    ).toEqual(expected);
  });

  it.each([
    [
      '',
      'n1: install: packages needs apt-get, dnf or yum, but none of them is installed. Use install: binaries for this host, or remove install. [PACKAGE_MANAGER_UNKNOWN]',
    ],
    [
      'manager apt\ninstalled kubelet 1.37.0-1.1\n',
      'n1: kubelet 1.37.0-1.1 is installed, but 1.36 is declared: a downgrade to an older minor version is not supported. Declare the installed version, or reset the host and remove the package. [INSTALL_DOWNGRADE]',
    ],
  ])('rejects a host with %j', (packages, message) => {
    expect(() => planPackages(templates, install(), situation(packages))).toThrow(message);
  });

  it('reports an installed version that differs from the declared version', () => {
    expect(validateInstalled(install(), parsePackages(DONE))).toBeNull();
    expect(validateInstalled(install(), parsePackages('manager apt\n'))).toBe('kubelet is not installed');
    expect(validateInstalled(install({ version: '1.35' }), parsePackages(DONE))).toBe(
      'kubelet 1.36.2-1.1 is installed, not 1.35: check the repository',
    );
  });
});

describe('package versions', () => {
  it.each([
    ['1.36.2-1.1', '1.36', true],
    ['1.36.2', '1.36', true],
    ['1.36.2-150500.1.1', '1.36.2', true],
    ['1.36.2-1.1', '1.36.2-1.1', true],
    ['1.36.20-1.1', '1.36.2', false],
    ['1.3.6-1.1', '1.36', false],
    ['1.36.2-1.10', '1.36.2-1.1', false],
  ])('%s matches %s: %s', (installed, desired, is) => {
    expect(isVersion(installed, desired)).toBe(is);
  });

  it.each([
    ['apt', '1.36', 'kubelet=1.36.*'],
    ['apt', '1.36.2-1.1', 'kubelet=1.36.2-1.1'],
    ['yum', '1.36.2', 'kubelet-1.36.2-*'],
    ['dnf', null, 'kubelet'],
  ] as const)('%s gets %s as %s', (manager, version, argument) => {
    expect(packageArgument(manager, 'kubelet', version)).toBe(argument);
  });
});

describe('installPackages', () => {
  it.each([
    ['dnf', ['kubernetes', 'kubelet-1.36.*'], 'dnf -y --refresh --setopt="disable_excludes=$r" install "$@"'],
    ['yum', ['kubernetes', 'kubelet-1.36.*'], 'yum -y --disableexcludes="$r" install "$@"'],
    ['apt', ['kubelet-1.36.*'], 'apt-get -q -y'],
  ] as const)('with %s', (manager, words, program) => {
    const { argv, what } = installPackages(manager, ['kubelet-1.36.*'], ['kubernetes']);
    expect(argv.slice(4)).toEqual(words);
    expect(argv[2]).toContain(program);
    expect(what).toBe('installing kubelet-1.36.*');
  });
});
