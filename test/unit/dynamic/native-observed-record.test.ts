import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { CONFIG_ERRORS } from '../../../src/dynamic/error-texts.ts';
import { nativeStorePaths } from '../../../src/dynamic/native/native-store.ts';
import { CRASHING, type NativeWorld, nativeWorld, payload } from '../../support/native-world.ts';

const E1 = CONFIG_ERRORS.LOAD_FAILED.text;
const E2 = CONFIG_ERRORS.VALIDATION_FAILED.text;
const E4 = CONFIG_ERRORS.DOWNLOAD_FAILED.text;
/** Observation time of each step. */
const OBSERVATION = 40;

interface Observed {
  readonly assigned: string | null;
  readonly active: string | null;
  readonly error: string | null;
  readonly pods: unknown;
}

async function inspect(world: NativeWorld): Promise<Observed> {
  const status = ((await world.status()) ?? {}) as { readonly [name: string]: { readonly configMap: JsonObject } | undefined } & {
    error?: string;
  };
  const name = (member: string): string | null => (status[member]?.configMap.name as string | undefined) ?? null;
  return { assigned: name('assigned'), active: name('active'), error: status.error ?? null, pods: world.kubelet.configz?.maxPods ?? null };
}

/** Replays, step by step, the observed behaviour of a kubelet 1.21.0 under systemd on 20 November 2026. */
it('behaves like the observed kubelet 1.21', async () => {
  const world = await nativeWorld();
  const put = (name: string, ...lines: readonly string[]) => world.put(name, { kubelet: payload(...lines) });
  const steps: readonly (readonly [string, () => Promise<unknown>, Observed, number])[] = [
    [
      'A good',
      async () => {
        await put('good', 'maxPods: 77');
        await world.assign('good');
      },
      { assigned: 'good', active: 'good', error: null, pods: 77 },
      1,
    ],
    [
      'B semantically invalid',
      async () => {
        await put('bad', 'maxPods: -5');
        await world.assign('bad');
      },
      { assigned: 'bad', active: null, error: E2, pods: 110 },
      2,
    ],
    [
      'C not decodable',
      async () => {
        await put('typo', 'maxPods: many');
        await world.assign('typo');
      },
      { assigned: 'typo', active: null, error: E1, pods: 110 },
      3,
    ],
    ['D does not exist', () => world.assign('no-such-cm'), { assigned: 'typo', active: null, error: E4, pods: 110 }, 3],
    ['E key does not exist', () => world.assign('good', 'nokey'), { assigned: 'good', active: null, error: E1, pods: 110 }, 4],
    [
      'F unknown field',
      async () => {
        await put('extra', 'maxPods: 77', 'noSuchField: 1');
        await world.assign('extra');
      },
      { assigned: 'extra', active: 'extra', error: null, pods: 77 },
      5,
    ],
  ];
  for (const [name, act, seen, restarts] of steps) {
    await act();
    await world.pass(OBSERVATION);
    expect({ name, ...(await inspect(world)), restarts: world.kubelet.restarts }).toEqual({ name, ...seen, restarts });
  }

  // G: the kubelet accepts a configuration that crashes it, then reads nothing: H good, I in place, J deleted, K null.
  await world.put('crash', { kubelet: CRASHING });
  await world.assign('crash');
  await world.pass(OBSERVATION);
  const before = world.kubelet.restarts;
  expect(before).toBeGreaterThan(8);
  const acts = [() => world.assign('good'), () => put('good', 'maxPods: 78'), () => world.remove('good'), () => world.reset()];
  for (const act of acts) {
    await act();
    await world.pass(OBSERVATION);
    expect(await inspect(world)).toMatchObject({ assigned: 'extra', active: 'extra', error: null });
    expect(world.meta('assigned')).toContain('name: crash\n');
  }
  expect(world.kubelet.restarts).toBeGreaterThan(before + 20);

  // The store is removed manually. Then I, J, J2, K again, and M.
  world.kubelet.stop();
  rmSync(nativeStorePaths(world.directory).root, { recursive: true });
  world.kubelet.start();
  await world.pass(OBSERVATION);
  expect(await inspect(world)).toEqual({ assigned: null, active: null, error: null, pods: 110 });
  await put('good', 'maxPods: 77');
  await world.assign('good');
  await world.pass(OBSERVATION);
  await put('good', 'maxPods: 78');
  await world.pass(OBSERVATION);
  expect(await inspect(world)).toEqual({ assigned: 'good', active: 'good', error: null, pods: 78 });
  await world.remove('good');
  await world.pass(OBSERVATION);
  expect(await inspect(world)).toEqual({ assigned: 'good', active: 'good', error: E4, pods: 78 });
  world.kubelet.start();
  await world.pass(8);
  expect(await inspect(world)).toEqual({ assigned: 'good', active: 'good', error: null, pods: 78 });
  await world.pass(12);
  expect(await inspect(world)).toEqual({ assigned: 'good', active: 'good', error: E4, pods: 78 });
  await world.reset();
  await world.pass(OBSERVATION);
  expect(await inspect(world)).toEqual({ assigned: null, active: null, error: null, pods: 110 });
  world.close();
});
