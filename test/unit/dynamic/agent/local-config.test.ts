import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { watchFile } from '../../../../src/cli/adapters/watch-file.ts';
import { newWorld, payload, type World } from './world.ts';

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

describe('an agent after an edit of the local configuration', () => {
  let world: World;
  afterEach(() => world.stop());
  const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;
  const running = (): string =>
    [...world.host.files].find(([path]) => path.includes(world.state?.active?.hash ?? '-') && path.endsWith('kubelet.yaml'))?.[1].content ??
    '';

  it('merges the overlay with it within seconds, as a trial, and rolls back after a crash', async () => {
    world = newWorld({ timing: { trialMs: 30_000 } });
    world.start();
    const configz = { podPidsLimit: 4096 };
    for (const pods of [110, 120]) world.behaviours.set(pods, { configz });
    await world.push('a', `${OVERLAY}podPidsLimit: 4096\n`);
    await world.assign('a');
    await world.until('a is good', phase('good'));
    const editedAt = world.clock.elapsedMs;
    world.editLocal(payload(120));
    await world.until('the merged configuration runs', () => world.runs() === 120);
    expect(world.clock.elapsedMs - editedAt).toBeLessThan(10_000);
    expect(running()).toContain('podPidsLimit: 4096');
    await world.until('good again', () => world.state?.phase === 'good' && world.state.active?.hash === world.state.lastKnownGood?.hash);
    world.behaviours.set(60, { configz, crashesAfter: 5 });
    world.editLocal(payload(60));
    await world.until('rolled back', phase('fallen-back'));
    expect(world.runs()).toBe(120);
    expect(running()).toContain('podPidsLimit: 4096');
  });

  it('does not restart the kubelet if the result is unchanged', async () => {
    world = newWorld({ timing: { trialMs: 30_000 } });
    world.start();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('a is good', phase('good'));
    const trips = world.host.roundTrips;
    world.editLocal(payload(111));
    await world.until('prepared', () => world.host.roundTrips > trips + 1);
    expect([world.starts(), world.state?.phase]).toEqual([1, 'good']);
  });
});

describe('a watch of a file', () => {
  it.each<[string, (path: string) => void]>([
    ['is written in place', (path) => writeFileSync(path, 'b')],
    [
      'is replaced by a rename',
      (path) => {
        writeFileSync(`${path}.new`, 'a');
        renameSync(`${path}.new`, path);
      },
    ],
    ['is removed', (path) => rmSync(path)],
  ])('reports only that it %s', async (_, change) => {
    const directory = mkdtempSync(join(tmpdir(), 'watch-file-'));
    const path = join(directory, 'config.yaml');
    writeFileSync(path, 'a');
    const stop = new AbortController();
    let isChanged = false;
    const changes: boolean[] = [];
    await new Promise<void>((resolve) => {
      const seen = (): void => {
        changes.push(isChanged);
        resolve();
      };
      watchFile(path, seen, stop.signal, 5);
      // Node.js reads in order: the first read of the watch has ended before the last of these.
      const reads = Array.from({ length: 8 }, () => stat(path));
      void Promise.all(reads).then(() => {
        isChanged = true;
        change(path);
      });
    });
    stop.abort();
    rmSync(directory, { recursive: true, force: true });
    expect(changes).toEqual([true]);
  });
});
