import { describe, expect, it } from 'vitest';
import { runWorkflow } from '../../../../../src/host/run-workflow.ts';
import { interruptedUpgrade, recoverUpgradeWorkflow } from '../../../../../src/kubeadm/workflows/upgrade/recover-upgrade.ts';
import { type Component, manifestOf, type UpgradeWorld, upgradeWorld } from '../../../../support/upgrade-world.ts';

/** Timeouts that change the startup probe of etcd, and so its manifest. */
const NEW_PROBE = { timeouts: { upgradeManifests: '1m0s', controlPlaneComponentHealthCheck: '2m0s' } };
const isNew = (text: string): boolean => text.includes('failureThreshold: 12');
const MEMBER = '/var/lib/etcd/member';

/** The new etcd damages its data and crashes; the previous one cannot read that data. */
function damages(world: UpgradeWorld): (component: Component, text: string) => boolean {
  let isDamaged = false;
  return (component, text) => {
    if (component !== 'etcd') return false;
    isDamaged ||= isNew(text);
    const isReplaced = [...world.host.files.keys()].some((path) => path.startsWith(`${MEMBER}.replaced-`));
    return isNew(text) || (isDamaged && !(isReplaced && world.host.files.has(MEMBER)));
  };
}

describe('the rollback of etcd', () => {
  it('restores the manifest, and keeps the data that the previous etcd can read', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('etcd'));
    world.crashes = (name, text) => name === 'etcd' && isNew(text);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      exitCode: 5,
      problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ROLLED_BACK' }],
    });
    expect(world.host.text(manifestOf('etcd'))).toBe(before);
    expect(world.reporter.events.map(({ code }) => code)).not.toContain('ETCD_DATA_RESTORED');
  });

  it('restores the data if the previous etcd does not start with it, and keeps the replaced data', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('etcd'));
    world.crashes = damages(world);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(manifestOf('etcd'))).toBe(before);
    expect(world.host.text(MEMBER)).toBe('data');
    expect(world.reporter.events.map(({ code }) => code)).toContain('ETCD_DATA_RESTORED');
  });

  it('does not restore the data of a member of a larger cluster', async () => {
    const world = await upgradeWorld();
    world.etcd.all.push({
      ...{ name: 'cp-2', id: '2', isLearner: false },
      ...{ peerURLs: ['https://10.0.0.2:2380'], clientURLs: ['https://10.0.0.2:2379'] },
    });
    world.crashes = damages(world);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      exitCode: 1,
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLBACK_FAILED', message: expect.stringContaining('must not return to older data') },
      ],
    });
    expect([...world.host.files.keys()].filter((path) => path.includes('.replaced-'))).toEqual([]);
  });
});

describe('the recovery from an upgrade whose API server does not answer', () => {
  it('restores the manifests of before the upgrade, and proves that the API server answers', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('kube-apiserver'));
    await world.apply({}, { onlyPhase: 'control-plane/backup' });
    await world.host.perform([
      {
        kind: 'write-file',
        path: manifestOf('kube-apiserver'),
        content: before.replaceAll(':v1.35.6', ':v1.36.2'),
        mode: 0o600,
        owner: 'root:root',
      },
    ]);
    world.crashes = (name, text) => name === 'kube-apiserver' && text.includes(':v1.36.2');
    const record = await interruptedUpgrade(world.context);
    expect(record?.version).toBe('v1.36.2');
    if (record === null) return;
    const run = () =>
      runWorkflow(recoverUpgradeWorkflow, world.context, { record, api: world.api, timeoutMs: 10_000 }, { dryRun: false, skipPhases: [] });
    const { host } = await run();
    expect(host.phases.flatMap(({ plan }) => plan.changes.map((change) => ('path' in change ? change.path : '')))).toEqual([
      manifestOf('kube-apiserver'),
    ]);
    expect(world.host.text(manifestOf('kube-apiserver'))).toBe(before);
    world.crashes = (name) => name === 'kube-apiserver';
    await expect(run()).rejects.toMatchObject({ code: 'API_SERVER_NOT_UP' });
  });
});
