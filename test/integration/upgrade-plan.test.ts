import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import type { HttpsClient } from '../../src/kube/https-client.ts';
import { type FakeHost, fakeHost } from '../support/fake-host.ts';
import { findRealBinaries } from '../support/real-apiserver.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { type UpgradeClusterOptions, upgradeCluster } from '../support/upgrade-cluster.ts';

const MANIFESTS = Object.fromEntries(
  ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((name) => [`/etc/kubernetes/manifests/${name}.yaml`, 'kind: Pod\n']),
);
const VERSIONS: UpgradeClusterOptions = { version: 'v1.35.6', kubelets: { cp1: 'v1.35.6', cp2: 'v1.34.1', worker1: 'v1.34.1' } };
const NOT_READY = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };

interface World {
  readonly api: LabApiServer;
  /** Runs upgrade plan on a control plane host. */
  readonly plan: (
    args?: readonly string[],
    releases?: Readonly<Record<string, string>>,
  ) => Promise<CliResult & { readonly asked: readonly string[] }>;
}

async function startWorld(options: UpgradeClusterOptions, files: Readonly<Record<string, string>> = MANIFESTS): Promise<World> {
  const api = await startApiServer({ controllers: ['job-runner'] });
  for (const object of upgradeCluster(options)) api.put(object);
  const connectHost = async (): Promise<FakeHost> =>
    fakeHost({ name: 'cp1', files: { ...files, '/etc/kubernetes/admin.conf': api.adminKubeconfig() } });
  return {
    api,
    plan: async (args = [], releases = {}) => {
      const asked: string[] = [];
      const web = releaseServer(releases, asked);
      const result = await runCommand(['upgrade', 'plan', ...args], { services: () => ({ web, connectHost }) });
      return { ...result, asked };
    },
  };
}

/** dl.k8s.io with these labels; without any it does not answer. */
function releaseServer(releases: Readonly<Record<string, string>>, asked: string[]): HttpsClient {
  return {
    get: async ({ url }) => {
      const label = /^https:\/\/dl\.k8s\.io\/release\/(.*)\.txt$/.exec(url)?.[1] ?? url;
      asked.push(label);
      const text = releases[label];
      if (text === undefined) return { kind: 'failed', issue: { kind: 'timed-out' } };
      return { kind: 'answer', status: 200, contentType: 'text/plain', date: null, location: null, text: `${text}\n`, peer: null };
    },
  };
}

function targetsOf({ stdout }: CliResult): readonly (readonly [string, string])[] {
  const { availableUpgrades = [] } = JSON.parse(stdout);
  return availableUpgrades.map((one: { description: string; components: { name: string; newVersion: string }[] }) => [
    one.description,
    one.components.find(({ name }) => name === 'kube-apiserver')?.newVersion,
  ]);
}

describe('upgrade plan', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(VERSIONS);
  });
  afterAll(() => world.api.close());

  it.each([
    ['txt', ['v1.36.2']],
    ['json', ['v1.36.2', '-o', 'json']],
    ['yaml', ['v1.36.2', '-o', 'yaml', '--etcd-upgrade=false']],
  ])('prints the plan for a version (%s) without asking the release server', async (extension, args) => {
    const { code, stdout, stderr, asked } = await world.plan(args);
    expect([code, asked], stderr).toEqual([0, []]);
    await expect(stdout).toMatchFileSnapshot(`golden/upgrade-plan.${extension}`);
  });

  it('checks that the cluster runs a Job', async () => {
    const { code, stderr } = await world.plan(['v1.36.2']);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('CreateJob')]);
    expect(world.api.requests.filter(({ method, path }) => method === 'POST' && path.includes('/jobs')).length).toBeGreaterThan(0);
  });

  it('offers the newest patch and the newest minor release', async () => {
    const releases = { stable: 'v1.36.2', 'stable-1.35': 'v1.35.9' };
    expect(targetsOf(await world.plan(['-o', 'json'], releases))).toEqual([
      ['version in the v1.35 series', 'v1.35.9'],
      ['stable version', 'v1.36.2'],
    ]);
  });

  it('offers no release of a later minor than its own', async () => {
    const releases = { stable: 'v1.38.1', 'stable-1.36': 'v1.36.7', 'stable-1.35': 'v1.35.6' };
    const result = await world.plan(['-o', 'json'], releases);
    expect(targetsOf(result)).toEqual([['stable version', 'v1.36.7']]);
    expect(result.asked).toEqual(['stable', 'stable-1.36', 'stable-1.35']);
  });

  it('asks a silent release server once, and warns', async () => {
    const { code, asked, stderr, stdout } = await world.plan();
    expect([code, asked]).toEqual([0, ['stable']]);
    expect(stderr).toContain('cannot read https://dl.k8s.io/release/stable.txt within 10s: releases later than v1.36.2 are not listed');
    expect(stdout).toContain('kubeletadm upgrade apply v1.36.2\n');
  });

  it.each([
    ['no label', {}],
    ['the newest release only', { stable: 'v1.36.2' }],
  ])('does not report a cluster as up to date when the release server answers %s', async (_, releases) => {
    const newest = await startWorld({ version: 'v1.36.2', kubelets: { cp1: 'v1.36.2' } });
    try {
      const { code, stderr, stdout } = await newest.plan([], releases);
      expect([code, stdout]).toEqual([0, '']);
      expect(stderr).not.toContain('up to date');
      expect(stderr).toContain('cannot determine whether a later version is available');
    } finally {
      await newest.api.close();
    }
  });

  it('claims nothing about later versions when the cluster has the given one, and names the host in the next command', async () => {
    const newest = await startWorld({ version: 'v1.36.2', kubelets: { cp1: 'v1.36.2' } });
    try {
      const same = await newest.plan(['v1.36.2']);
      expect([same.code, same.stdout]).toEqual([0, '']);
      expect(same.stderr).toContain('The control plane needs no upgrade to v1.36.2.');
    } finally {
      await newest.api.close();
    }
    const other = await world.plan(['v1.36.2', '--host', 'cp1', '--ssh-config', '/dev/null']);
    expect(other.stdout).toContain('upgrade apply v1.36.2 --host cp1 --ssh-config /dev/null\n');
  });

  it('is up to date when the release server has no later version', async () => {
    const releases = { stable: 'v1.35.6', 'stable-1.35': 'v1.35.6' };
    const text = await world.plan([], releases);
    expect([text.code, text.stdout]).toEqual([0, '']);
    expect(text.stderr).toContain('The cluster is up to date');
    const { availableUpgrades, configVersions } = JSON.parse((await world.plan(['-o', 'json'], releases)).stdout);
    expect([availableUpgrades, configVersions.length]).toEqual([undefined, 2]);
  });

  it('reports what upgrade apply would refuse', async () => {
    const { code, stderr } = await world.plan(['v1.37.0']);
    expect(code).toBe(0);
    expect(stderr).toContain(
      'upgrade apply would refuse this version: a control plane cannot be upgraded from v1.35.6 to v1.37.0 in one step',
    );
  });

  it('resolves a label, and refuses an invalid version', async () => {
    expect(targetsOf(await world.plan(['stable-1.36', '-o', 'json'], { 'stable-1.36': 'v1.36.3' }))[0]?.[1]).toBe('v1.36.3');
    const silent = await world.plan(['stable-1.36']);
    expect([silent.code, silent.stderr]).toEqual([2, expect.stringContaining('"stable-1.36" cannot be resolved at dl.k8s.io')]);
    expect((await world.plan(['x'])).code).toBe(2);
  });

  it('prints the ClusterConfiguration with --print-config', async () => {
    const { stdout } = await world.plan(['v1.36.2', '--print-config']);
    expect(stdout).toMatch(/^apiServer: \{\}\napiVersion: kubeadm\.k8s\.io\/v1beta4\n/);
    expect(stdout).toContain('kubernetesVersion: v1.35.6\n');
  });

  it('refuses several hosts', async () => {
    const { code, stderr } = await world.plan(['--host', 'cp1', '--host', 'cp2']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('upgrade plan checks the cluster on exactly one control plane')]);
  });
});

describe('upgrade plan of a cluster that cannot be upgraded', () => {
  it('reports failed checks with exit code 3, and ignores those of --ignore-preflight-errors', async () => {
    const world = await startWorld(VERSIONS, {});
    try {
      world.api.put({
        ...(upgradeCluster(VERSIONS).find(({ metadata }) => metadata.name === 'cp2') as never as object),
        ...NOT_READY,
      } as never);
      const { code, stderr, stdout } = await world.plan(['v1.36.2']);
      expect([code, stdout]).toEqual([3, '']);
      expect(stderr).toContain('[StaticPodManifest]');
      const ignored = await world.plan(['v1.36.2', '--ignore-preflight-errors', 'all']);
      expect([ignored.code, ignored.stderr]).toEqual([0, expect.stringContaining('warning: static Pod manifests do not exist')]);
    } finally {
      await world.api.close();
    }
  });

  it('reports a host without admin.conf', async () => {
    const connectHost = async (): Promise<FakeHost> => fakeHost({ name: 'worker1' });
    const { code, stderr } = await runCommand(['upgrade', 'plan', 'v1.36.2'], { services: () => ({ connectHost }) });
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/\/admin\.conf does not exist: the host is not a control plane\. .*with --kubeconfig: KUBECONFIG is not read/),
    ]);
  });
});

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;

function whyNot(): string | null {
  if (typeof binaries === 'string') return binaries;
  if (kubeadm === null) return 'kubeadm not found next to kube-apiserver';
  const version = kubeadmVersion(kubeadm);
  return version === 'v1.36.2' ? null : `kubeadm is ${version}, not v1.36.2`;
}

describe.skipIf(requirement('upgrade plan compared with kubeadm', whyNot()))("kubeadm's plan of the same cluster", () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-upgrade-plan-'));
  const kubeconfig = join(directory, 'admin.conf');
  let api: LabApiServer;
  beforeAll(async () => {
    api = await startApiServer();
    const kubelets = { [hostname().toLowerCase()]: 'v1.35.6', 'other-cp': 'v1.34.1', worker1: 'v1.34.1' };
    // Without a schedulable Node kubeadm creates no Job.
    for (const object of upgradeCluster({ version: 'v1.35.6', kubelets, schedulable: false })) api.put(object);
    writeFileSync(kubeconfig, api.adminKubeconfig(), { mode: 0o600 });
  });
  afterAll(async () => {
    await api.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it.each([
    [['v1.36.2', '-o', 'json']],
    [['v1.36.2', '-o', 'yaml']],
    [['v1.35.7', '-o', 'json']],
    [['v1.36.2', '-o', 'json', '--etcd-upgrade=false']],
    [['v1.36.0-rc.1', '-o', 'json', '--allow-release-candidate-upgrades']],
    [['v1.36.0-alpha.1', '-o', 'json', '--allow-experimental-upgrades']],
    [['v1.36.2']],
    [['v1.36.2', '--print-config', '--etcd-upgrade=false']],
    [['v1.35.6']],
    [['v1.36.0-rc.1', '--allow-release-candidate-upgrades']],
  ])('is byte-for-byte ours: %j', async (args) => {
    const line = [...args, '--ignore-preflight-errors=all', '--kubeconfig', kubeconfig];
    const theirs = await promisify(execFile)(kubeadm as string, ['upgrade', 'plan', ...line], { encoding: 'utf8' });
    const ours = await runCommand(['upgrade', 'plan', ...line], { env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
    expect(ours.stdout).toBe(theirs.stdout);
  });
});
