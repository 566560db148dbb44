import { describe, expect, it } from 'vitest';
import { isClusterChange } from '../../../../../src/host/plan/change.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { UPGRADE_RECORD_PATH } from '../../../../../src/kubeadm/upgrade/upgrade-record.ts';
import { fakeUnit } from '../../../../support/fake-units.ts';
import { THOROUGH } from '../../../../support/thorough.ts';
import { COMPONENTS, type Component, killedAfter, manifestOf, type UpgradeWorld, upgradeWorld } from '../../../../support/upgrade-world.ts';
import { withRun } from '../../../../support/with-run.ts';

const TMP = '/etc/kubernetes/tmp';
const K8S = COMPONENTS.filter((name) => name !== 'etcd');

const changesOf = (result: Awaited<ReturnType<UpgradeWorld['apply']>>) => result.host.phases.flatMap(({ plan }) => plan.changes);
const tagOf = ({ host }: UpgradeWorld, name: Component) => /image: .*:(\S+)/.exec(host.text(manifestOf(name)))?.[1];
const manifests = ({ host }: UpgradeWorld) => COMPONENTS.map((name) => host.text(manifestOf(name)));
/** A version of a component crashes. */
const broken = (component: Component, tag: string) => (name: Component, text: string) => name === component && text.includes(`:${tag}`);
const backups = ({ host }: UpgradeWorld, kind: 'manifests' | 'etcd') =>
  [...host.files.keys()].filter((path) => path.startsWith(`${TMP}/kubeadm-backup-${kind}-`)).sort();

describe('upgrade apply', () => {
  it('upgrades the static Pods and the configuration of the cluster, and plans no changes the second time', async () => {
    const world = await upgradeWorld();
    const before = manifests(world);
    await world.apply();
    expect(K8S.map((name) => tagOf(world, name))).toEqual(['v1.36.2', 'v1.36.2', 'v1.36.2']);
    const config = await world.cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' });
    expect(JSON.stringify(config)).toContain('kubernetesVersion: v1.36.2');
    expect(world.reporter.events.find(({ code }) => code === 'UPGRADE_VERIFIED')?.message).toContain('the API server reports v1.36.2');
    const [directory, ...copies] = backups(world, 'manifests');
    expect(directory).toMatch(/kubeadm-backup-manifests-\d{4}(-\d\d){5}$/);
    expect(copies.map((path) => path.replace(`${directory}/`, ''))).toEqual(K8S.map((name) => `${name}.yaml`));
    expect(copies.map((path) => world.host.text(path))).toEqual(before.slice(1));
    expect(backups(world, 'etcd').at(-1)).toMatch(/\/etcd\/member\/db$/);
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
    const kept = [...world.host.files.keys()].filter((path) => /\/kubeadm-kubelet-config-[-0-9]+\/config\.yaml$/.test(path));
    expect(kept.map((path) => path.startsWith(TMP))).toEqual([true]);
    expect(changesOf(await world.apply())).toEqual([]);
    expect(backups(world, 'manifests')).toHaveLength(4);
  });

  it('refuses an argument of kubeadm-config with which the new component would exit', async () => {
    const world = await upgradeWorld();
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' };
    const { data } = (await world.cluster.get(ref)) as KubeObject & { readonly data: { readonly ClusterConfiguration: string } };
    const ClusterConfiguration = data.ClusterConfiguration.replace(/^scheduler:.*$/m, 'scheduler: {extraArgs: [{name: port, value: "0"}]}');
    await world.cluster.patch(ref, 'merge', { data: { ClusterConfiguration } });
    const refusals = async (ignorePreflightErrors: readonly string[]) => {
      const { refusals: all } = await world.plan(withRun({ ignorePreflightErrors }));
      return all.filter(({ code }) => code === 'ComponentArguments').map(({ message }) => message);
    };
    expect(await refusals([])).toEqual([
      'preflight: scheduler.extraArgs[0].name: kube-scheduler 1.36 has no flag --port: the component exits at startup',
    ]);
    expect(await refusals(['ComponentArguments'])).toEqual([]);
  });

  it('applies the changes that it printed', async () => {
    const world = await upgradeWorld();
    const planned = await world.plan();
    const kinds = (result: { readonly host: { readonly phases: readonly { readonly plan: { readonly changes: readonly object[] } }[] } }) =>
      result.host.phases.flatMap(({ plan }) =>
        plan.changes.map((change) => ('path' in change ? change.path : 'kind' in change ? change.kind : '')),
      );
    const applied = kinds(await world.apply());
    expect(applied.filter((path, i) => path !== UPGRADE_RECORD_PATH || applied.indexOf(path) === i)).toEqual(kinds(planned));
    expect(world.reporter.events.map(({ code }) => code)).not.toContain('PLAN_CHANGED');
  });

  it('renews the certificates of replaced components, unless --certificate-renewal=false', async () => {
    const world = await upgradeWorld();
    const certificate = () => world.host.text('/etc/kubernetes/pki/apiserver.crt');
    const before = certificate();
    await world.apply({ certificateRenewal: false });
    expect(certificate()).toBe(before);
    const other = await upgradeWorld();
    const changed = changesOf(await other.apply()).flatMap((change) => (!isClusterChange(change) && 'path' in change ? [change.path] : []));
    expect(changed.filter((path) => path.endsWith('.crt') || path.endsWith('.conf')).sort()).toEqual(
      [
        ...['apiserver', 'apiserver-etcd-client', 'apiserver-kubelet-client', 'front-proxy-client'].map((name) => `${name}.crt`),
        ...['etcd/healthcheck-client', 'etcd/peer', 'etcd/server'].map((name) => `${name}.crt`),
      ]
        .map((name) => `/etc/kubernetes/pki/${name}`)
        .concat(['admin', 'controller-manager', 'scheduler', 'super-admin'].map((name) => `/etc/kubernetes/${name}.conf`))
        .sort(),
    );
  });

  it.each(K8S)('restores the previous %s if the new one crashes, and proves that it runs', async (component) => {
    const world = await upgradeWorld();
    world.crashes = broken(component, 'v1.36.2');
    const before = world.host.text(manifestOf(component));
    await expect(world.apply()).rejects.toMatchObject({
      exitCode: 5,
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLED_BACK', message: expect.stringContaining(`the previous Pod of ${component} runs again and the API server answers`) },
      ],
    });
    expect(world.host.text(manifestOf(component))).toBe(before);
    const config = await world.cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' });
    expect(JSON.stringify(config)).toContain('kubernetesVersion: v1.35.6');
    world.crashes = () => false;
    await world.apply();
    expect(K8S.map((name) => tagOf(world, name))).toEqual(['v1.36.2', 'v1.36.2', 'v1.36.2']);
  });

  it('reports a rollback that failed', async () => {
    const world = await upgradeWorld();
    let isDead = false;
    world.crashes = (name, text) => {
      isDead ||= name === 'kube-apiserver' && text.includes(':v1.36.2');
      return isDead && name === 'kube-apiserver';
    };
    await expect(world.apply()).rejects.toMatchObject({
      exitCode: 1,
      problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ROLLBACK_FAILED' }],
    });
  });

  it('keeps etcd with --etcd-upgrade=false, and copies no data', async () => {
    const world = await upgradeWorld();
    await world.apply({ etcdUpgrade: false });
    expect(backups(world, 'etcd')).toEqual([]);
  });

  it('does not restart etcd while another member is unhealthy', async () => {
    const world = await upgradeWorld();
    world.etcd.isHealthy = false;
    const before = manifests(world);
    await expect(world.apply()).rejects.toMatchObject({ code: 'ETCD_UNHEALTHY' });
    expect(manifests(world)).toEqual(before);
  });

  it('upgrades the add-ons only after all control planes', async () => {
    const world = await upgradeWorld();
    const other = (tag: string) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kube-apiserver-cp-2', namespace: 'kube-system' } },
      spec: { nodeName: 'cp-2', containers: [{ name: 'kube-apiserver', image: `registry.k8s.io/kube-apiserver:${tag}` }] },
      status: {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [{ name: 'kube-apiserver', ready: true, state: { running: {} } }],
      },
    });
    world.otherPods.push(other('v1.35.6'));
    const first = await world.apply();
    const noop = (name: string) => first.host.phases.find(({ phase }) => phase === name)?.plan.noop;
    expect(noop('addon/kube-proxy')).toBe('skipped until all control planes are upgraded: cp-2 runs v1.35.6');
    expect(noop('addon/coredns')).toBe(noop('addon/kube-proxy'));
    expect(world.reporter.events.filter(({ code }) => code === 'ADDONS_NOT_UPGRADED')).toHaveLength(1);
    world.otherPods.splice(0, 1, other('v1.36.2'));
    const second = changesOf(await world.node());
    expect(second.filter(isClusterChange).map((change) => ('object' in change ? change.object.kind : ''))).toContain('DaemonSet');
  });
});

/** Every third operation is tested, each one by `npm run test:thorough`. */
const STRIDE = THOROUGH ? 1 : 4;

describe('an interrupted upgrade', () => {
  it('reaches the same state after an interruption at any operation', async () => {
    const straight = await upgradeWorld();
    const started = straight.host.performed.length;
    await straight.apply();
    const count = straight.host.performed.length - started;
    const end = manifests(straight);
    for (let at = 0; at < count; at += STRIDE) {
      const world = await upgradeWorld();
      const original = manifests(world);
      world.host.loseConnectionAfter(at);
      await expect(world.apply(), `operation ${at}`).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST' });
      await world.apply();
      expect(manifests(world), `operation ${at}`).toEqual(end);
      expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
      const copies = backups(world, 'manifests').filter((path) => path.endsWith('.yaml'));
      for (const name of K8S) {
        const copy = copies.find((path) => path.endsWith(`/${name}.yaml`)) ?? '';
        expect(world.host.text(copy), `operation ${at}`).toBe(original[COMPONENTS.indexOf(name)]);
      }
    }
  }, 240_000);

  it('rolls back the manifest that a killed run wrote, if its Pod crashes', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('kube-scheduler'));
    await world.apply({}, { onlyPhase: 'control-plane/backup' });
    const planned = await world.plan();
    const change = planned.host.phases
      .flatMap(({ plan }) => plan.changes)
      .find((each) => 'path' in each && each.path === manifestOf('kube-scheduler'));
    if (change?.kind !== 'write-file') throw new Error('no manifest planned');
    await world.host.perform([change]);
    world.crashes = broken('kube-scheduler', 'v1.36.2');
    await expect(world.apply()).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(manifestOf('kube-scheduler'))).toBe(before);
  });

  it('is not rolled back after it was complete', async () => {
    const world = await upgradeWorld();
    await world.apply();
    const upgraded = world.host.text(manifestOf('kube-scheduler'));
    world.crashes = broken('kube-scheduler', 'v1.36.2');
    await expect(world.apply()).rejects.toMatchObject({ exitCode: 1, code: 'STATIC_POD_NOT_RUNNING' });
    expect(world.host.text(manifestOf('kube-scheduler'))).toBe(upgraded);
  });
});

describe('a continued upgrade', () => {
  it('with another version restores the manifests of before the first attempt', async () => {
    const world = await killedAfter(manifestOf('kube-apiserver'));
    world.crashes = broken('kube-apiserver', 'v1.36.1');
    await expect(world.apply({ version: 'v1.36.1' })).rejects.toMatchObject({ exitCode: 5 });
    expect(tagOf(world, 'kube-apiserver')).toBe('v1.35.6');
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
  });

  it('does not take the previous Pod for the new one', async () => {
    // Only the probe of etcd changes: both Pods have the same image.
    const options = { timeouts: { upgradeManifests: '1m0s', controlPlaneComponentHealthCheck: '2m0s' } };
    const before = (await upgradeWorld()).host.text(manifestOf('etcd'));
    const world = await killedAfter(manifestOf('etcd'), options);
    world.stale.set('etcd', before);
    await expect(world.apply(options)).rejects.toMatchObject({
      exitCode: 5,
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING', message: expect.stringContaining('has not replaced Pod etcd') },
        { code: 'ROLLED_BACK' },
      ],
    });
  });

  it('renews the kubeconfigs of administrators', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    const before = world.host.text('/etc/kubernetes/admin.conf');
    await world.apply();
    expect(world.host.text('/etc/kubernetes/admin.conf')).not.toBe(before);
  });

  it('renews the kubeconfig of a controller on the host, and restarts it', async () => {
    const path = '/etc/kubernetes/kubeletadm-controller.conf';
    const world = await killedAfter(manifestOf('kube-scheduler'));
    const found = world.host.files.get('/etc/kubernetes/admin.conf');
    if (found === undefined) throw new Error('no admin.conf');
    world.host.files.set(path, found);
    const unit = fakeUnit({ activeState: 'active', subState: 'running' });
    world.host.units.set('kubeletadm-controller', unit);
    await world.apply();
    expect(world.host.text(path)).not.toBe(found.content);
    expect(unit.starts).toBe(1);
  });

  it('does not roll back a component that was verified', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    world.crashes = broken('kube-controller-manager', 'v1.36.2');
    await expect(world.apply()).rejects.toMatchObject({ exitCode: 1, code: 'STATIC_POD_NOT_RUNNING' });
    expect(tagOf(world, 'kube-controller-manager')).toBe('v1.36.2');
  });
});

describe('selected phases', () => {
  it('are verified alone', async () => {
    const world = await upgradeWorld();
    await world.apply({}, { skipPhases: ['control-plane'] });
    expect(tagOf(world, 'kube-apiserver')).toBe('v1.35.6');
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
  });

  it('end the record of the upgrade', async () => {
    const world = await upgradeWorld();
    await world.apply({}, { skipPhases: ['control-plane/scheduler'] });
    expect(K8S.map((name) => tagOf(world, name))).toEqual(['v1.36.2', 'v1.36.2', 'v1.35.6']);
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
  });
});

describe('the checks of an upgrade', () => {
  it('read the version from the API server of the host, not through a load balancer', async () => {
    const world = await upgradeWorld();
    const other = { reach: async () => ({ ...(await world.api.reach(world.context)), version: async () => 'v1.35.6' }) };
    await world.apply({ api: { ...world.api, ...other } as typeof world.api });
    expect(world.reporter.events.find(({ code }) => code === 'UPGRADE_VERIFIED')?.message).toContain('the API server reports v1.36.2');
    world.hostVersion = 'v1.35.6';
    await expect(world.apply()).rejects.toMatchObject({ code: 'UPGRADE_NOT_VERIFIED' });
  });

  it('require the files for the health of an etcd that is replaced', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('etcd'));
    world.host.files.delete('/etc/kubernetes/pki/etcd/healthcheck-client.key');
    const timeouts = { upgradeManifests: '1m0s', controlPlaneComponentHealthCheck: '2m0s' };
    await expect(world.apply({ timeouts, certificateRenewal: false })).rejects.toMatchObject({
      code: 'ETCD_CREDENTIALS_MISSING',
      message: expect.stringContaining('etcd/healthcheck-client.key'),
    });
    expect(world.host.text(manifestOf('etcd'))).toBe(before);
  });
});
