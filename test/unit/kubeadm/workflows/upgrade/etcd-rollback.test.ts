import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../../src/base/errors.ts';
import { decodeUpgradeRecord, UPGRADE_RECORD_PATH } from '../../../../../src/kubeadm/upgrade/upgrade-record.ts';
import { type Component, ETCD_DB, killedAfter, manifestOf, type UpgradeWorld, upgradeWorld } from '../../../../support/upgrade-world.ts';

/** Timeouts that change the startup probe of etcd, and so its manifest. */
const NEW_PROBE = { timeouts: { upgradeManifests: '1m0s', controlPlaneComponentHealthCheck: '2m0s' } };
const isNew = (text: string): boolean => text.includes('failureThreshold: 12');
const kept = ({ host }: UpgradeWorld) => [...host.files.keys()].filter((path) => path.includes('.replaced-'));
const MEMBER = '/var/lib/etcd/member';
const codes = ({ reporter }: UpgradeWorld) => reporter.events.map(({ code }) => code);
/** Copies of the backup that were not put in place. */
const copies = ({ host }: UpgradeWorld) => [...host.files.keys()].filter((path) => path.startsWith(`${MEMBER}.restored-`));

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
    expect(codes(world)).not.toContain('ETCD_DATA_RESTORING');
  });

  it('restores the data if the previous etcd does not start with it, and keeps the replaced data', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('etcd'));
    world.crashes = damages(world);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(manifestOf('etcd'))).toBe(before);
    expect(world.host.text(ETCD_DB)).toBe('data');
    expect(world.isEmptied()).toBe(false);
    expect(codes(world).filter((code) => code.startsWith('ETCD_DATA_'))).toEqual(['ETCD_DATA_RESTORING', 'ETCD_DATA_RESTORED']);
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
        { code: 'ROLLBACK_FAILED', message: expect.stringContaining('no member may return to older data') },
      ],
    });
    expect([...world.host.files.keys()].filter((path) => path.includes('.replaced-'))).toEqual([]);
  });

  it('keeps the data of an etcd that is healthy while the API server does not answer', async () => {
    const world = await upgradeWorld();
    let isAway = false;
    world.crashes = (name, text) => {
      isAway ||= name === 'etcd' && isNew(text);
      return (name === 'etcd' && isNew(text)) || (name === 'kube-apiserver' && isAway);
    };
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ROLLBACK_FAILED' }],
    });
    expect(kept(world)).toEqual([]);
    expect(codes(world)).not.toContain('ETCD_DATA_RESTORING');
  });

  /** The new etcd crashes, and the API server does not start again; seconds since the previous etcd was restored. */
  const withoutApiServer = (world: UpgradeWorld, isDown: (seconds: number) => boolean): void => {
    let restoredAtMs: number | null = null;
    let isAway = false;
    world.crashes = (name, text) => {
      isAway ||= name === 'etcd' && isNew(text);
      if (name === 'kube-apiserver') return isAway;
      if (name !== 'etcd' || !isAway || isNew(text)) return name === 'etcd' && isNew(text);
      restoredAtMs ??= world.clock.elapsedMs;
      return isDown((world.clock.elapsedMs - restoredAtMs) / 1000);
    };
  };
  const FIVE_MINUTES = { timeouts: { ...NEW_PROBE.timeouts, upgradeManifests: '5m0s' } };

  it('keeps the data of an etcd that was healthy and fails later, also in the next run', async () => {
    const world = await upgradeWorld();
    withoutApiServer(world, (seconds) => seconds >= 200);
    await expect(world.apply(FIVE_MINUTES)).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLBACK_FAILED', message: expect.stringMatching(/the etcd data was kept.*kubeadm-backup-etcd-2030/s) },
      ],
    });
    const planned = await world.recover();
    await expect(planned?.apply(world.context)).rejects.toMatchObject({
      problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ETCD_DATA_NOT_RESTORED' }],
    });
    expect(kept(world)).toEqual([]);
    expect(codes(world)).not.toContain('ETCD_DATA_RESTORING');
  });

  it('keeps the data of an etcd that becomes healthy while it is checked for the last time', async () => {
    const world = await upgradeWorld();
    withoutApiServer(world, (seconds) => seconds < 165);
    await expect(world.apply(FIVE_MINUTES)).rejects.toMatchObject({
      problems: [{ code: 'STATIC_POD_NOT_RUNNING' }, { code: 'ROLLBACK_FAILED' }],
    });
    expect(kept(world)).toEqual([]);
  });

  it('restores the data if only the new etcd answered, before the kubelet replaced it', async () => {
    const world = await upgradeWorld();
    const isDamaged = damages(world);
    let restoredAtMs: number | null = null;
    world.crashes = (name, text) => {
      const crashes = isDamaged(name, text);
      if (name !== 'etcd' || !crashes || isNew(text)) return crashes;
      restoredAtMs ??= world.clock.elapsedMs;
      world.stale.set('etcd', 'the new manifest');
      return world.clock.elapsedMs - restoredAtMs >= 5_000;
    };
    await expect(world.apply(NEW_PROBE)).rejects.toThrow();
    expect(kept(world)).not.toEqual([]);
  });

  it.each([
    ['still has a container of etcd', '0123\n'],
    ['does not answer', null],
  ])('keeps the data while the container runtime %s, and names the backup', async (_, live) => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('etcd'));
    world.crashes = damages(world);
    world.liveEtcd = () => live;
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLBACK_FAILED', message: expect.stringContaining('did not show in time that etcd had stopped') },
      ],
    });
    expect(kept(world)).toEqual([]);
    expect(copies(world)).toEqual([]);
    expect(world.host.text(manifestOf('etcd'))).toBe(before);
    expect(codes(world)).not.toContain('ETCD_DATA_RESTORED');
  });

  it('does not stop etcd if the backup cannot be copied', async () => {
    const world = await upgradeWorld();
    world.crashes = damages(world);
    world.copyFails = true;
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLBACK_FAILED', message: expect.stringContaining('its backup could not be copied') },
      ],
    });
    expect(world.host.files.has(manifestOf('etcd'))).toBe(true);
    expect(world.host.text(ETCD_DB)).toBe('data');
  });

  it('names the unknown effect of a lost connection, and the directories', async () => {
    const straight = await upgradeWorld();
    straight.crashes = damages(straight);
    const started = straight.host.performed.length;
    await expect(straight.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    const operations = straight.host.performed.slice(started);
    const at = (kind: string, from = 0) =>
      operations.findIndex(
        (one, i) =>
          i > from && one.kind === kind && (kind !== 'remove-file' || one.kind !== 'remove-file' || one.path === manifestOf('etcd')),
      );
    const stopped = at('remove-file');
    const steps = [
      [stopped, `it is unknown whether ${manifestOf('etcd')} was removed`, false],
      [at('run', stopped), 'it is unknown whether the etcd data was replaced. etcd is stopped; look for its data in', true],
      [at('write-file', stopped), `it is unknown whether the manifest of etcd was written to ${manifestOf('etcd')}`, true],
    ] as const;
    for (const [operation, message, isReplaced] of steps) {
      const world = await upgradeWorld();
      world.crashes = damages(world);
      world.host.loseConnectionAfter(operation);
      await expect(world.apply(NEW_PROBE), message).rejects.toMatchObject({ message: expect.stringContaining(message) });
      expect(codes(world)).not.toContain('ETCD_DATA_RESTORED');
      if (!isReplaced) continue;
      const planned = await world.recover();
      expect(codes(world), message).toContain('ETCD_DATA_RESTORED');
      const back = { message: expect.stringContaining('The etcd data was restored from the backup of 2030-01-01-00-00-10 (UTC)') };
      if (planned !== null) await expect(planned.apply(world.context)).rejects.toMatchObject(back);
    }
  });

  it('reports once that an interrupted run replaced the data, if etcd runs with it', async () => {
    const straight = await upgradeWorld();
    straight.crashes = damages(straight);
    const started = straight.host.performed.length;
    await expect(straight.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    const written = straight.host.performed
      .slice(started)
      .findLastIndex((one) => one.kind === 'write-file' && one.path === manifestOf('etcd'));
    const world = await upgradeWorld();
    world.crashes = damages(world);
    world.host.loseConnectionAfter(written);
    await expect(world.apply(NEW_PROBE)).rejects.toThrow();
    expect(await world.recover()).toBeNull();
    expect(codes(world).filter((code) => code === 'ETCD_DATA_RESTORED')).toHaveLength(1);
    world.crashes = () => false;
    const from = world.host.performed.length;
    await world.apply(NEW_PROBE);
    const records = world.host.performed.slice(from).flatMap((one) => {
      return one.kind === 'write-file' && one.path === UPGRADE_RECORD_PATH ? [decodeUpgradeRecord(String(one.content))?.restoring] : [];
    });
    expect(new Set(records)).toEqual(new Set([null]));
  });

  it('names the removed manifest and the unchanged data if the connection is lost while etcd stops, and continues', async () => {
    const world = await upgradeWorld();
    world.crashes = damages(world);
    world.liveEtcd = () => {
      throw new AppError({ host: 'cp-1', code: 'HOST_CONNECTION_LOST', message: 'the connection was lost' });
    };
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      message: expect.stringMatching(
        /whether etcd has stopped. \/etc\/kubernetes\/manifests\/etcd.yaml was removed, and the etcd data in \/var\/lib\/etcd\/member is unchanged. Rerun the command.*kubeadm-backup-etcd/s,
      ),
    });
    expect(world.host.files.has(manifestOf('etcd'))).toBe(false);
    world.liveEtcd = () => '';
    await expect((await world.recover())?.apply(world.context)).rejects.toMatchObject({ code: 'ROLLED_BACK' });
    expect(world.host.files.has(manifestOf('etcd'))).toBe(true);
  });

  it('waits for the restored etcd as long as the kubelet delays the restart of a container that crashed', async () => {
    const world = await upgradeWorld();
    const isDamaged = damages(world);
    let startsAtMs = Number.POSITIVE_INFINITY;
    world.crashes = (name, text) => {
      if (name !== 'etcd' || isDamaged(name, text)) return isDamaged(name, text);
      if (kept(world).length > 0) startsAtMs = Math.min(startsAtMs, world.clock.elapsedMs + 300_000);
      return kept(world).length > 0 && world.clock.elapsedMs < startsAtMs;
    };
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.clock.elapsedMs).toBeGreaterThanOrEqual(startsAtMs);
  });

  it('gives the previous etcd 150 seconds, also if new Pods are given more', async () => {
    const world = await upgradeWorld();
    const started = world.clock.elapsedMs;
    world.crashes = damages(world);
    await expect(world.apply({ timeouts: { upgradeManifests: '10m0s', controlPlaneComponentHealthCheck: '2m0s' } })).rejects.toMatchObject({
      exitCode: 5,
    });
    const [waitedMs, newPodMs] = [world.clock.elapsedMs - started, 600_000];
    expect(waitedMs).toBeGreaterThanOrEqual(newPodMs + 150_000);
    expect(waitedMs).toBeLessThan(newPodMs + 200_000);
  });

  it('does not start the previous etcd without data', async () => {
    const world = await upgradeWorld();
    const before = world.host.text(manifestOf('etcd'));
    world.crashes = (name, text) => {
      if (name !== 'etcd' || !isNew(text)) return false;
      for (const path of [...world.host.files.keys()]) if (path.startsWith(MEMBER)) world.host.files.delete(path);
      return true;
    };
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLBACK_FAILED', message: expect.stringContaining(`${MEMBER} does not exist`) },
      ],
    });
    expect(world.host.text(manifestOf('etcd'))).not.toBe(before);
    await expect(world.recover()).rejects.toMatchObject({
      code: 'UPGRADE_NOT_RECOVERED',
      problems: [{ hint: expect.stringContaining('kubeadm-backup-etcd-2030') }],
    });
  });

  /** etcd has its data below the mounted directory, which kubeadm-config does not know. */
  const movedData = async (): Promise<UpgradeWorld> => {
    const world = await upgradeWorld();
    const manifest = world.host.text(manifestOf('etcd')).replace('--data-dir=/var/lib/etcd', '--data-dir=/var/lib/etcd/data');
    const file = { mode: 0o600, owner: 'root:root' };
    await world.host.perform([{ kind: 'write-file', path: manifestOf('etcd'), content: manifest, ...file }]);
    world.host.files.set('/var/lib/etcd/data', { type: 'directory', ...file });
    for (const [path, found] of [...world.host.files].filter(([path]) => path === MEMBER || path.startsWith(`${MEMBER}/`))) {
      world.host.files.set(path.replace(MEMBER, '/var/lib/etcd/data/member'), found);
      world.host.files.delete(path);
    }
    world.crashes = (name, text) => name === 'etcd' && isNew(text);
    return world;
  };

  it('uses the data directory of the manifest on the host, and warns that the new manifest has another one', async () => {
    const world = await movedData();
    expect((await world.plan(NEW_PROBE)).warnings).toContainEqual(
      expect.objectContaining({ code: 'ETCD_DATA_DIR_DIFFERS', message: expect.stringContaining('/var/lib/etcd/data') }),
    );
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(manifestOf('etcd'))).toContain('--data-dir=/var/lib/etcd/data\n');
    expect([...world.host.files.keys()].filter((path) => /kubeadm-backup-etcd-[0-9-]+\/etcd\/member\/db$/.test(path))).toHaveLength(1);
  });

  it('uses the data directory of the manifest on the host also after an interruption', async () => {
    const straight = await movedData();
    const from = straight.host.performed.length;
    await expect(straight.apply(NEW_PROBE)).rejects.toThrow();
    const written = straight.host.performed.slice(from).findIndex((one) => one.kind === 'write-file' && one.path === manifestOf('etcd'));
    const world = await movedData();
    world.host.loseConnectionAfter(written);
    await expect(world.apply(NEW_PROBE)).rejects.toThrow();
    const planned = await world.recover();
    await expect(planned?.apply(world.context)).rejects.toMatchObject({ code: 'ROLLED_BACK' });
    expect(world.host.text(manifestOf('etcd'))).toContain('--data-dir=/var/lib/etcd/data\n');
  });

  it('does not start the previous etcd without data, also if the backup was skipped', async () => {
    const world = await upgradeWorld();
    world.crashes = (name, text) => {
      if (name !== 'etcd' || !isNew(text)) return false;
      for (const path of [...world.host.files.keys()]) if (path.startsWith(MEMBER)) world.host.files.delete(path);
      return true;
    };
    await expect(world.apply(NEW_PROBE, { skipPhases: ['control-plane/backup'] })).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        { code: 'ROLLBACK_FAILED', message: expect.stringContaining(`${MEMBER} does not exist`) },
      ],
    });
  });

  it('names in the error the time to which the data was rolled back', async () => {
    const world = await upgradeWorld();
    world.crashes = damages(world);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({
      problems: [
        { code: 'STATIC_POD_NOT_RUNNING' },
        {
          code: 'ROLLED_BACK',
          message: expect.stringContaining('The etcd data was restored from the backup of 2030-01-01-00-00-10 (UTC)'),
        },
      ],
    });
  });
});

describe('the backup of the etcd data', () => {
  const change = (world: UpgradeWorld): void =>
    void world.host.files.set(ETCD_DB, { type: 'file', mode: 0o600, owner: 'root:root', content: 'later' });

  it('is not that of an earlier attempt that was rolled back', async () => {
    const world = await upgradeWorld();
    world.crashes = (name, text) => name === 'kube-apiserver' && text.includes(':v1.36.2');
    await expect(world.apply()).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.files.has(UPGRADE_RECORD_PATH)).toBe(false);
    change(world);
    world.crashes = damages(world);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(ETCD_DB)).toBe('later');
  });

  it('is made again while etcd runs its previous manifest', async () => {
    const world = await killedAfter(UPGRADE_RECORD_PATH, NEW_PROBE);
    change(world);
    world.clock.advance(86_400_000);
    world.crashes = damages(world);
    await expect(world.apply(NEW_PROBE)).rejects.toMatchObject({ exitCode: 5 });
    expect(world.host.text(ETCD_DB)).toBe('later');
  });

  it('is kept once etcd was replaced', async () => {
    const world = await killedAfter(manifestOf('etcd'), NEW_PROBE);
    change(world);
    world.clock.advance(86_400_000);
    await world.apply(NEW_PROBE);
    const found = [...world.host.files].filter(([path]) => /kubeadm-backup-etcd-.*\/db$/.test(path));
    expect(found.map(([, { content }]) => content)).toEqual(['data']);
  });
});
