import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../../src/base/errors.ts';
import { decodeUpgradeRecord, UPGRADE_RECORD_PATH } from '../../../../../src/kubeadm/upgrade/upgrade-record.ts';
import { isRecovery } from '../../../../../src/kubeadm/workflows/upgrade/recover-upgrade.ts';
import { THOROUGH } from '../../../../support/thorough.ts';
import { COMPONENTS, ETCD_DB, killedAfter, manifestOf, type UpgradeWorld, upgradeWorld } from '../../../../support/upgrade-world.ts';

/** Timeouts that change the startup probe of etcd, and so its manifest. */
const NEW_PROBE = { timeouts: { upgradeManifests: '1m0s', controlPlaneComponentHealthCheck: '2m0s' } };
const isNewEtcd = (text: string): boolean => text.includes('failureThreshold: 12');
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'cp-1' };
const MEMBER = '/var/lib/etcd/member';
const BACKUP = /kubeadm-backup-etcd-[0-9-]+\/etcd/;

const manifests = ({ host }: UpgradeWorld) => COMPONENTS.map((name) => host.text(manifestOf(name)));
const paths = (planned: Awaited<ReturnType<UpgradeWorld['recover']>>) =>
  planned?.host.phases.flatMap(({ plan }) => plan.changes.map((change) => ('path' in change ? change.path : change.kind)));

/** Adds a member that has no Pod in the cluster. */
function addMember({ etcd }: UpgradeWorld): void {
  etcd.all.push({
    ...{ name: 'cp-2', id: '2', isLearner: false },
    ...{ peerURLs: ['https://10.0.0.2:2380'], clientURLs: ['https://10.0.0.2:2379'] },
  });
}

/** The number of members of etcd that the record of the upgrade has. */
const membersOf = ({ host }: UpgradeWorld) => decodeUpgradeRecord(host.text(UPGRADE_RECORD_PATH))?.etcd?.members;

/** Plans and applies the rollback of an interrupted upgrade. */
async function recover(world: UpgradeWorld) {
  const planned = await world.recover();
  return planned?.apply(world.context);
}

const replaced = ({ host }: UpgradeWorld) => [...host.files.keys()].some((path) => path.startsWith(`${MEMBER}.replaced-`));

/** The new etcd damages its data and crashes; the previous one runs only with restored data. */
function damagedData(world: UpgradeWorld): UpgradeWorld {
  let isDamaged = isNewEtcd(world.host.text(manifestOf('etcd')));
  world.crashes = (name, text) => {
    isDamaged ||= name === 'etcd' && isNewEtcd(text);
    return name === 'etcd' && isDamaged && (isNewEtcd(text) || !replaced(world));
  };
  return world;
}

describe('planRecovery', () => {
  it('restores only the components that were written, not verified and do not run, and proves that they run', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    const [, , controllerManager] = manifests(world);
    world.crashes = (name, text) => name === 'kube-scheduler' && text.includes(':v1.36.2');
    const planned = await world.recover();
    expect(paths(planned)).toEqual([manifestOf('kube-scheduler')]);
    expect(planned !== null && isRecovery(planned.host)).toBe(true);
    await expect(planned?.apply(world.context)).rejects.toMatchObject({
      exitCode: 5,
      problems: [{ code: 'ROLLED_BACK', message: expect.stringContaining('(kube-scheduler) were restored, and run again') }],
    });
    expect(world.host.text(manifestOf('kube-scheduler'))).toContain(':v1.35.6');
    expect(world.host.text(manifestOf('kube-controller-manager'))).toBe(controllerManager);
    expect(controllerManager).toContain(':v1.36.2');
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
    expect(await world.recover()).toBeNull();
  });

  it('restores an API server that does not answer', async () => {
    const world = await killedAfter(manifestOf('kube-apiserver'));
    world.crashes = (name, text) => name === 'kube-apiserver' && text.includes(':v1.36.2');
    await expect(recover(world)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(manifestOf('kube-apiserver'))).toContain(':v1.35.6');
  });

  it('does not claim a rollback that it did not observe', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    world.crashes = (name) => name === 'kube-scheduler';
    await expect(recover(world)).rejects.toMatchObject({ code: 'STATIC_POD_NOT_RUNNING' });
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(true);
  });

  it.each(['kube-apiserver', 'kube-scheduler'] as const)('keeps a %s that runs, also if the credentials are refused', async (name) => {
    const world = await killedAfter(manifestOf(name));
    const before = manifests(world);
    world.refusal = new AppError({ code: 'CLUSTER_UNAUTHORIZED', message: 'the client certificate has expired' });
    expect(await world.recover()).toBeNull();
    expect(manifests(world)).toEqual(before);
  });

  it.each(['CLUSTER_FORBIDDEN', 'CLUSTER_UNREACHABLE'])('waits for an API server that has just started (%s)', async (code) => {
    const world = await killedAfter(manifestOf('kube-apiserver'));
    world.refusal = new AppError({ code, message: 'not yet' });
    world.clock.at(world.clock.elapsedMs + 3_000, () => {
      world.refusal = null;
    });
    expect(await world.recover()).toBeNull();
    expect(world.refusal).toBeNull();
  });

  it('waits until the kubelet runs the manifest that was written last', async () => {
    const world = await killedAfter(manifestOf('etcd'), NEW_PROBE);
    const [previous] = [...world.host.files].filter(([path]) => path.includes('backup') && path.endsWith('/etcd.yaml'));
    world.stale.set('etcd', previous?.[1].content ?? '');
    world.clock.at(world.clock.elapsedMs + 3_000, () => world.stale.clear());
    expect(await world.recover()).toBeNull();
    expect(world.stale.size).toBe(0);
  });

  it('waits for a Node whose kubelet could not report while its API server was interrupted', async () => {
    const world = await killedAfter(manifestOf('kube-apiserver'));
    const ready = (status: string) =>
      world.cluster.patch(NODE, 'merge', { status: { conditions: [{ type: 'Ready', status }] } }, { subresource: 'status' });
    await ready('Unknown');
    let isReady = false;
    world.clock.at(world.clock.elapsedMs + 3_000, () => {
      isReady = true;
      void ready('True');
    });
    expect(await world.recover()).toBeNull();
    expect(isReady).toBe(true);
  });

  it('does not wait for a Node whose kubelet reports that it is not Ready', async () => {
    const world = await killedAfter(manifestOf('kube-apiserver'));
    await world.cluster.patch(NODE, 'merge', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }, { subresource: 'status' });
    const startedMs = world.clock.elapsedMs;
    expect(await world.recover()).toBeNull();
    expect(world.clock.elapsedMs).toBe(startedMs);
  });

  it('keeps a manifest that someone changed after the interruption', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    const path = manifestOf('kube-scheduler');
    const content = `${world.host.text(path)}# edited\n`;
    await world.host.perform([{ kind: 'write-file', path, content, mode: 0o600, owner: 'root:root' }]);
    world.crashes = (name) => name === 'kube-scheduler';
    expect(await world.recover()).toBeNull();
  });

  it('refuses a manifest whose copy is missing', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    for (const path of [...world.host.files.keys()])
      if (path.endsWith('/kube-scheduler.yaml') && path.includes('backup')) world.host.files.delete(path);
    world.crashes = (name) => name === 'kube-scheduler';
    await expect(world.recover()).rejects.toMatchObject({ code: 'UPGRADE_NOT_RECOVERED' });
  });

  it('refuses a single phase until the rollback is done', async () => {
    const world = await killedAfter(manifestOf('kube-scheduler'));
    world.crashes = (name) => name === 'kube-scheduler';
    await expect(world.recover({ onlyPhase: 'addon/coredns' })).rejects.toMatchObject({ code: 'UPGRADE_INTERRUPTED', exitCode: 3 });
  });
});

describe('planRecovery: etcd', () => {
  it('restores the manifest of etcd, and keeps its data', async () => {
    const world = await killedAfter(manifestOf('etcd'), NEW_PROBE);
    world.crashes = (name, text) => name === 'etcd' && isNewEtcd(text);
    world.host.files.set(ETCD_DB, { type: 'file', mode: 0o600, owner: 'root:root', content: 'later' });
    await expect(recover(world)).rejects.toMatchObject({ exitCode: 5 });
    expect(isNewEtcd(world.host.text(manifestOf('etcd')))).toBe(false);
    expect(world.host.text(ETCD_DB)).toBe('later');
  });

  it('restores the data of a single member if etcd does not run with it, and names the time of the backup', async () => {
    const world = damagedData(await killedAfter(manifestOf('etcd'), NEW_PROBE));
    world.host.files.set(ETCD_DB, { type: 'file', mode: 0o600, owner: 'root:root', content: 'damaged' });
    await expect(recover(world)).rejects.toMatchObject({
      exitCode: 5,
      message: expect.stringContaining('The etcd data was restored from the backup of 2030-01-01'),
    });
    expect(world.host.text(ETCD_DB)).toBe('data');
    expect([...world.host.files].filter(([path]) => /\.replaced-[0-9-]+\/db$/.test(path)).map(([, { content }]) => content)).toEqual([
      'damaged',
    ]);
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
  });

  it('knows the number of members only from etcd itself, right before etcd is replaced', async () => {
    const backedUp = await killedAfter(UPGRADE_RECORD_PATH, NEW_PROBE, addMember);
    expect(membersOf(backedUp)).toBe(0);
    await backedUp.apply(NEW_PROBE);
    expect(membersOf(await killedAfter(manifestOf('etcd'), NEW_PROBE, addMember))).toBe(2);
    expect(membersOf(await killedAfter(manifestOf('etcd'), NEW_PROBE))).toBe(1);
  });

  it('keeps the data of an etcd with its previous manifest that starts after the longest delay of the kubelet', async () => {
    const world = await killedAfter(manifestOf('etcd'), NEW_PROBE);
    world.crashes = (name) => name === 'etcd';
    world.copyFails = true;
    await expect(recover(world)).rejects.toMatchObject({
      problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ETCD_DATA_NOT_RESTORED' }],
    });
    world.copyFails = false;
    const startsAtMs = world.clock.elapsedMs + 300_000;
    world.crashes = (name) => name === 'etcd' && world.clock.elapsedMs < startsAtMs;
    await expect(recover(world)).rejects.toMatchObject({ code: 'ROLLED_BACK', exitCode: 5 });
    expect(replaced(world)).toBe(false);
  });

  it('does not restore the data of a cluster whose number of members is not known', async () => {
    const world = damagedData(await killedAfter(manifestOf('etcd'), NEW_PROBE));
    const record = world.host.text(UPGRADE_RECORD_PATH).replace('"members": 1', '"members": 0');
    await world.host.perform([{ kind: 'write-file', path: UPGRADE_RECORD_PATH, content: record, mode: 0o600, owner: 'root:root' }]);
    await expect(recover(world)).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ETCD_DATA_NOT_RESTORED', message: expect.stringContaining('the number of etcd members is unknown') },
      ],
    });
    expect(replaced(world)).toBe(false);
  });

  it('names the backup if the member belongs to a larger cluster, also of members without Pods', async () => {
    const world = damagedData(await killedAfter(manifestOf('etcd'), NEW_PROBE, addMember));
    for (const run of [1, 2])
      await expect(recover(world), `run ${run}`).rejects.toMatchObject({
        problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ETCD_DATA_NOT_RESTORED', hint: expect.stringMatching(BACKUP) }],
      });
    expect(replaced(world)).toBe(false);
  });

  it('never starts an etcd without its data, and names the backup', async () => {
    const world = damagedData(await killedAfter(manifestOf('etcd'), NEW_PROBE));
    for (const path of [...world.host.files.keys()]) if (path.startsWith(MEMBER)) world.host.files.delete(path);
    await world.host.perform([{ kind: 'remove-file', path: manifestOf('etcd') }]);
    const record = world.host.text(UPGRADE_RECORD_PATH).replace('"restoring": null', '"restoring": "2030-01-01-00-05-00"');
    await world.host.perform([{ kind: 'write-file', path: UPGRADE_RECORD_PATH, content: record, mode: 0o600, owner: 'root:root' }]);
    await expect(recover(world)).rejects.toMatchObject({
      code: 'UPGRADE_NOT_RECOVERED',
      problems: [{ hint: expect.stringMatching(BACKUP) }],
    });
    expect(world.host.files.has(manifestOf('etcd'))).toBe(false);
    expect(world.isEmptied()).toBe(false);
  });

  it('names the backup if etcd is not healthy although its manifest was not replaced', async () => {
    const world = await killedAfter(UPGRADE_RECORD_PATH, NEW_PROBE);
    world.crashes = (name) => name === 'etcd';
    await expect(world.recover()).rejects.toMatchObject({
      code: 'UPGRADE_NOT_RECOVERED',
      problems: [{ hint: expect.stringMatching(BACKUP) }],
    });
  });

  it('loses no data, killed at any operation of the rollback', async () => {
    const straight = damagedData(await upgradeWorld());
    const started = straight.host.performed.length;
    await expect(straight.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    const operations = straight.host.performed.slice(started);
    const first = operations.findIndex((one) => one.kind === 'write-file' && one.path === manifestOf('etcd'));
    expect(first).toBeGreaterThan(0);
    const removedAt = operations.findIndex((one) => one.kind === 'remove-file' && one.path === manifestOf('etcd'));
    const swappedAt = operations.findIndex((one, at) => at > removedAt && one.kind === 'run');
    expect(swappedAt).toBeGreaterThan(first);
    // Every second operation is tested, each one by `npm run test:thorough`.
    for (let at = first; at < operations.length; at += THOROUGH ? 1 : 3) {
      const world = damagedData(await upgradeWorld());
      world.host.loseConnectionAfter(at);
      await expect(world.apply(NEW_PROBE), `operation ${at}`).rejects.toThrow();
      const error = await recover(world).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      const isBack =
        world.host.files.get(ETCD_DB)?.content === 'data' &&
        !world.crashes('etcd', world.host.files.get(manifestOf('etcd'))?.content ?? '');
      const names = error instanceof AppError && BACKUP.test(error.problems.map(({ hint }) => hint).join());
      expect(isBack || names, `operation ${at}: ${String(error)}`).toBe(true);
      const reported = world.reporter.events.some(({ code }) => code === 'ETCD_DATA_RESTORED');
      if (at >= swappedAt) expect(reported, `operation ${at}: ETCD_DATA_RESTORED`).toBe(true);
      expect(world.isEmptied(), `operation ${at}`).toBe(false);
    }
  }, 120_000);
});
