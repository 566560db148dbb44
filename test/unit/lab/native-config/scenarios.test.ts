import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CONFIG_ERRORS } from '../../../../src/core/dynamic/error-texts.ts';
import { nativeCheckpointDirectory, nativeStorePaths } from '../../../../src/core/dynamic/native-store.ts';
import type { JsonObject } from '../../../../src/core/json.ts';
import type { KubeObject } from '../../../../src/core/kubernetes/object.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import {
  BAD,
  CRASHING,
  GOOD,
  INVALID,
  type NativeWorld,
  type NativeWorldOptions,
  nativeWorld,
  payload,
} from '../../../support/native-world.ts';

const E1 = CONFIG_ERRORS.LOAD_FAILED.text;
const E2 = CONFIG_ERRORS.VALIDATION_FAILED.text;
const E4 = CONFIG_ERRORS.DOWNLOAD_FAILED.text;
const E5 = CONFIG_ERRORS.SYNC_INTERNAL_FAILURE.text;

let open: NativeWorld[] = [];
afterEach(() => {
  for (const world of open) world.close();
  open = [];
});

async function begin(options: NativeWorldOptions = {}): Promise<NativeWorld> {
  const world = await nativeWorld(options);
  open.push(world);
  return world;
}

/** Notice, restart, first report. */
const SETTLED = 30;

/** With ConfigMap `a` good and running for long enough. */
async function withLastKnownGood(): Promise<NativeWorld & { readonly a: KubeObject }> {
  const world = await begin();
  const a = await world.put('a', { kubelet: GOOD });
  await world.assign('a');
  await world.pass(12 * 60);
  return { ...world, a };
}

const maxPods = ({ kubelet }: NativeWorld) => kubelet.configz?.maxPods;

describe('spec.configSource', () => {
  it('1: to nil from anything is local', async () => {
    const world = await begin();
    for (const text of [GOOD, BAD, INVALID]) {
      await world.put('a', { kubelet: text });
      await world.assign('a');
      await world.pass(SETTLED);
      await world.reset();
      await world.pass(SETTLED);
      expect(await world.status()).toEqual({});
      expect((await world.events()).at(-1)).toBe('Kubelet restarting to use local config');
      expect(maxPods(world)).toBe(110);
      expect([world.meta('assigned'), world.meta('lastKnownGood')]).toEqual(['', '']);
    }
  });

  const source = (change: JsonObject): JsonObject => ({
    configMap: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', ...change },
  });
  it.each<[number, JsonObject, string]>([
    [2, {}, 'exactly one reference subfield must be non-nil'],
    [3, source({ namespace: '' }), 'configMap.namespace: Required value'],
    [4, source({ name: '' }), 'configMap.name: Required value'],
    [5, source({ kubeletConfigKey: '' }), 'configMap.kubeletConfigKey: Required value'],
    [6, source({ uid: 'u' }), 'configMap.uid: Forbidden: uid must not be set in spec'],
    [7, source({ resourceVersion: '1' }), 'configMap.resourceVersion: Forbidden: resourceVersion must not be set in spec'],
    [8, source({ namespace: '../baz' }), 'configMap.namespace: Invalid value'],
    [9, source({ name: '../bar' }), 'configMap.name: Invalid value'],
    [10, source({ kubeletConfigKey: '../qux' }), 'configMap.kubeletConfigKey: Invalid value'],
  ])('%i: %j is refused, and the node goes on', async (_, configSource, text) => {
    const world = await begin();
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    await expect(world.admin.patch(node, 'merge', { spec: { configSource } })).rejects.toThrow(text);
    await world.pass(SETTLED);
    expect([world.kubelet.restarts, await world.status()]).toEqual([0, {}]);
  });

  it('11: nil to good is a trial, within 12 s and a start', async () => {
    const world = await begin();
    const a = await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(19);
    expect(await world.status()).toEqual({ assigned: world.at(a), active: world.at(a) });
    const { uid, resourceVersion } = a.metadata;
    expect(await world.events()).toEqual([
      `Kubelet restarting to use /api/v1/namespaces/kube-system/configmaps/a, UID: ${uid}, ResourceVersion: ${resourceVersion}, KubeletConfigKey: kubelet`,
    ]);
    expect(maxPods(world)).toBe(77);
    expect(world.kubelet.metrics).toContain(
      `kubelet_node_config_active{node_config_kubelet_key="kubelet",node_config_resource_version="${resourceVersion}",node_config_source="/api/v1/namespaces/kube-system/configmaps/a",node_config_uid="${uid}"} 1\n`,
    );
    expect(world.kubelet.metrics).toContain('kubelet_node_config_error 0\n');
  });

  it.each([
    [12, 'not readable', BAD, E1],
    [13, 'not valid', INVALID, E2],
  ])('%i: to one that is %s falls back to local, also in a trial', async (_, __, text, error) => {
    const world = await begin();
    const b = await world.put('b', { kubelet: text });
    for (const before of [null, 'a']) {
      if (before !== null) {
        await world.put('a', { kubelet: GOOD });
        await world.assign('a');
        await world.pass(SETTLED);
        expect(maxPods(world)).toBe(77);
      }
      await world.assign('b');
      await world.pass(SETTLED);
      expect(await world.status()).toEqual({ assigned: world.at(b), error });
      expect(maxPods(world)).toBe(110);
      expect(world.kubelet.metrics).toContain('kubelet_node_config_error 1\n');
    }
  });

  it.each([BAD, INVALID])('14: from a bad one to a good one, the error is gone', async (text) => {
    const world = await begin();
    await world.put('b', { kubelet: text });
    const a = await world.put('a', { kubelet: GOOD });
    await world.assign('b');
    await world.pass(SETTLED);
    await world.assign('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(a), active: world.at(a) });
  });
});

describe('last known good', () => {
  it('15, 16, 17: after ten minutes, then a bad one, then back', async () => {
    const world = await withLastKnownGood();
    const good = { assigned: world.at(world.a), active: world.at(world.a), lastKnownGood: world.at(world.a) };
    expect(await world.status()).toEqual(good);
    expect(world.kubelet.restarts).toBe(1);
    const b = await world.put('b', { kubelet: BAD });
    await world.assign('b');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ ...good, assigned: world.at(b), error: E1 });
    expect((await world.events()).at(-1)).toContain('configmaps/b,');
    expect(maxPods(world)).toBe(77);
    await world.assign('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual(good);
  });

  it('18: two keys of one ConfigMap', async () => {
    const world = await begin();
    const a = await world.put('a', { kubelet: GOOD, bad: BAD });
    await world.assign('a');
    await world.pass(12 * 60);
    await world.assign('a', 'bad');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({
      assigned: world.at(a, 'bad'),
      active: world.at(a),
      lastKnownGood: world.at(a),
      error: E1,
    });
    expect(readdirSync(join(nativeStorePaths(world.directory).checkpoints, a.metadata.uid ?? ''))).toEqual([a.metadata.resourceVersion]);
  });

  it('19: moves on to another, without a restart', async () => {
    const world = await withLastKnownGood();
    const b = await world.put('b', { kubelet: payload('maxPods: 88') });
    await world.assign('b');
    await world.pass(SETTLED);
    expect(await world.status()).toMatchObject({ active: world.at(b), lastKnownGood: world.at(world.a) });
    const { restarts } = world.kubelet;
    await world.pass(12 * 60);
    expect(await world.status()).toEqual({ assigned: world.at(b), active: world.at(b), lastKnownGood: world.at(b) });
    expect(world.kubelet.restarts).toBe(restarts);
  });

  it('20: a hundred changes between two, each converges', async () => {
    const world = await begin();
    const two = [await world.put('a', { kubelet: GOOD }), await world.put('b', { kubelet: payload('maxPods: 88') })];
    for (let i = 0; i < 100; i++) {
      const object = two[i % 2] as KubeObject;
      await world.assign(object.metadata.name);
      await world.pass(SETTLED);
      expect(await world.status()).toEqual({ assigned: world.at(object), active: world.at(object) });
    }
    expect(world.kubelet.restarts).toBe(100);
  });
});

describe('in place', () => {
  it('21: good, bad, good, invalid, with rising versions', async () => {
    const world = await begin();
    await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(SETTLED);
    for (const [text, error] of [
      [BAD, E1],
      [payload('maxPods: 78'), undefined],
      [INVALID, E2],
    ] as const) {
      const now = await world.put('a', { kubelet: text });
      await world.pass(SETTLED);
      const expected = error === undefined ? { active: world.at(now) } : { error };
      expect(await world.status()).toEqual({ assigned: world.at(now), ...expected });
    }
  });

  it('22, 23: with a last known good, to a bad one and back', async () => {
    const world = await withLastKnownGood();
    const second = await world.put('a', { kubelet: BAD });
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({
      assigned: world.at(second),
      active: world.at(world.a),
      lastKnownGood: world.at(world.a),
      error: E1,
    });
    const third = await world.put('a', { kubelet: GOOD });
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(third), active: world.at(third), lastKnownGood: world.at(world.a) });
  });

  it('24: is noticed by a kubelet that has been idle', async () => {
    const world = await withLastKnownGood();
    await world.pass(20 * 60);
    const second = await world.put('a', { kubelet: payload('maxPods: 78') });
    await world.pass(SETTLED);
    expect(await world.status()).toMatchObject({ active: world.at(second) });
  });

  it('25, 26: nothing changed does nothing; a label restarts', async () => {
    const world = await begin();
    await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(SETTLED);
    await world.put('a', { kubelet: GOOD });
    await world.pass(SETTLED);
    expect(world.kubelet.restarts).toBe(1);
    const labelled = await world.put('a', { kubelet: GOOD }, { metadata: { labels: { team: 'x' } } });
    await world.pass(SETTLED);
    expect(world.kubelet.restarts).toBe(2);
    expect(await world.status()).toEqual({ assigned: world.at(labelled), active: world.at(labelled) });
  });
});

describe('deleted and made anew', () => {
  it.each([
    [BAD, E1],
    [INVALID, E2],
    [GOOD, undefined],
  ])('27, 28, 29: goes on while it is gone, then takes what comes', async (text, error) => {
    const world = await begin();
    const first = await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(SETTLED);
    await world.remove('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(first), active: world.at(first), error: E4 });
    expect([maxPods(world), world.kubelet.restarts]).toEqual([77, 1]);
    const again = await world.put('a', { kubelet: text });
    await world.pass(SETTLED);
    const expected = error === undefined ? { active: world.at(again) } : { error };
    expect(await world.status()).toEqual({ assigned: world.at(again), ...expected });
  });
});

describe('failure and recovery', () => {
  it('30: a missing ConfigMap leaves local, and is taken when it comes', async () => {
    const world = await begin();
    await world.assign('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ error: E4 });
    expect(world.kubelet.restarts).toBe(0);
    const a = await world.put('a', { kubelet: GOOD });
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(a), active: world.at(a) });
  });

  it('31: its error outlives the reset, until a restart', async () => {
    const world = await begin();
    await world.assign('a');
    await world.pass(SETTLED);
    await world.reset();
    await world.pass(5 * 60);
    expect(await world.status()).toEqual({ error: E4 });
    world.kubelet.start();
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({});
  });

  it.each<[number, string, JsonObject, string]>([
    [32, 'no such key', { data: { other: GOOD } }, E1],
    [32, 'an empty value', { data: { kubelet: '' } }, E1],
    [32, 'binary alone', { data: {}, binaryData: { kubelet: Buffer.from(GOOD).toString('base64') } }, E1],
    [33, 'no kind', { data: { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\n' } }, E1],
    [33, 'no version', { data: { kubelet: 'kind: KubeletConfiguration\n' } }, E1],
    [33, 'another kind', { data: { kubelet: GOOD.replace('KubeletConfiguration', 'BogusKind') } }, E1],
    [33, 'another version', { data: { kubelet: GOOD.replace('v1beta1', 'bogusversion') } }, E1],
    [33, 'an alias of nothing', { data: { kubelet: '*' } }, E1],
    [33, 'an open brace', { data: { kubelet: '{*' } }, E1],
    [35, 'an unknown feature gate', { data: { kubelet: payload('featureGates: {NoSuchGate: true}') } }, E2],
  ])('%i: %s', async (_, __, change, error) => {
    const world = await begin();
    const { data, ...more } = change;
    const a = await world.put('a', data as Record<string, string>, more);
    await world.assign('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(a), error });
    expect(maxPods(world)).toBe(110);
  });

  it.each([
    [34, 'an unknown field', payload('maxPods: 77', 'bogus: 1'), 77],
    [34, 'a field given twice', payload('maxPods: 70', 'maxPods: 77'), 77],
    [36, 'JSON', '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":77}', 77],
    [36, 'nothing but the header', payload(), 110],
  ])('%i: %s is taken', async (_, __, text, pods) => {
    const world = await begin();
    const a = await world.put('a', { kubelet: text });
    await world.assign('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(a), active: world.at(a) });
    expect(maxPods(world)).toBe(pods);
  });

  it('37: a file beside the payload', async () => {
    const world = await begin();
    const a = await world.put('a', { kubelet: payload('resolvConf: resolv.conf'), 'resolv.conf': 'nameserver 10.0.0.1\n' });
    await world.assign('a');
    await world.pass(SETTLED);
    const directory = nativeCheckpointDirectory(world.directory, world.identity(a));
    expect(world.kubelet.configz?.resolvConf).toBe(`${directory}/resolv.conf`);
    expect(readFileSync(`${directory}/resolv.conf`, 'utf8')).toBe('nameserver 10.0.0.1\n');
  });

  it('38: starts from disk while the API server is away, and the trial does not begin anew', async () => {
    const world = await begin();
    await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(SETTLED);
    const { assigned } = nativeStorePaths(world.directory);
    const before = statSync(assigned).mtimeMs;
    world.asNode.get = async () => {
      throw new Error('connection refused');
    };
    world.kubelet.start();
    await world.pass(60);
    expect([maxPods(world), statSync(assigned).mtimeMs]).toEqual([77, before]);
  });

  it('39: age of a file is what promotes, so a crash loop becomes last known good', async () => {
    const world = await withLastKnownGood();
    const crash = await world.put('c', { kubelet: CRASHING });
    await world.assign('c');
    await world.pass(75);
    const reported = await world.status();
    expect(reported).toEqual({ assigned: world.at(world.a), active: world.at(world.a), lastKnownGood: world.at(world.a) });
    expect(world.kubelet.restarts).toBeGreaterThan(8);
    expect(world.meta('assigned')).toContain('name: c\n');
    expect(world.meta('lastKnownGood')).toContain('name: a\n');
    world.backdate(11);
    await world.pass(30);
    expect(world.meta('lastKnownGood')).toContain('name: c\n');
    await world.reset();
    await world.pass(120);
    expect(world.meta('assigned')).toContain(`uid: ${crash.metadata.uid}`);
    expect(await world.status()).toEqual(reported);
    // The cure.
    world.kubelet.stop();
    rmSync(nativeStorePaths(world.directory).root, { recursive: true });
    world.kubelet.start();
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({});
  });

  it('40: a reset restarts only where something was assigned', async () => {
    const world = await begin({ stopped: true });
    const { meta, lastKnownGood } = nativeStorePaths(world.directory);
    mkdirSync(meta, { recursive: true });
    const leftover = { namespace: 'kube-system', name: 'old', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' };
    const { renderMetaFile } = await import('../../../../src/core/dynamic/native-store.ts');
    writeFileSync(lastKnownGood, renderMetaFile(leftover));
    world.kubelet.start();
    await world.pass(SETTLED);
    expect([world.meta('lastKnownGood'), world.kubelet.restarts]).toEqual(['', 0]);
  });

  it.each([
    ['garbage', 'not: [a'],
    ['no member', 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource: {}\n'],
    ['a name that is a boolean', META('n')],
  ])('41: a meta file with %s loops for ever', async (_, text) => {
    const world = await begin();
    world.kubelet.stop();
    writeFileSync(nativeStorePaths(world.directory).assigned, text);
    world.kubelet.start();
    await world.pass(20);
    expect(world.kubelet.restarts).toBeGreaterThan(15);
    expect(new Set(world.kubelet.exits.slice(-5).map(({ code }) => code))).toEqual(new Set([1]));
    expect(world.kubelet.exits.at(-1)?.why).toContain('failed to determine a valid configuration, error: ');
  });

  it('41: a directory in place of a meta file', async () => {
    const world = await begin();
    const { assigned } = nativeStorePaths(world.directory);
    world.kubelet.stop();
    rmSync(assigned);
    mkdirSync(assigned);
    world.kubelet.start();
    expect(world.kubelet.exits.at(-1)).toMatchObject({ code: 1, why: expect.stringContaining('expected regular file at ') });
  });

  it('42: a bad one, and a last known good whose checkpoint is gone', async () => {
    const world = await withLastKnownGood();
    rmSync(nativeCheckpointDirectory(world.directory, world.identity(world.a)), { recursive: true });
    await world.put('b', { kubelet: BAD });
    await world.assign('b');
    await world.pass(SETTLED);
    expect(world.kubelet.exits.at(-1)).toMatchObject({ code: 1, why: expect.stringContaining(E1) });
    expect(world.kubelet.restarts).toBeGreaterThan(5);
  });

  it('43: a meta file without a uid', async () => {
    const world = await begin();
    world.kubelet.stop();
    writeFileSync(nativeStorePaths(world.directory).assigned, META('a', ''));
    world.kubelet.start();
    await world.pass(6);
    // An API server refuses a status without a uid, and it is not sent again.
    expect(world.kubelet.metrics).toContain('kubelet_node_config_error 1\n');
    expect(world.kubelet.log.join('\n')).toContain(`reason="${E1}"`);
    expect(world.kubelet.log.join('\n')).toContain('empty UID is ambiguous');
  });

  it('44: a lost checkpoint comes back by itself, and counts after one more restart', async () => {
    const world = await begin();
    const a = await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(SETTLED);
    const directory = nativeCheckpointDirectory(world.directory, world.identity(a));
    rmSync(directory, { recursive: true });
    world.kubelet.start();
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(a), error: E1 });
    expect(existsSync(directory)).toBe(true);
    world.kubelet.start();
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ assigned: world.at(a), active: world.at(a) });
  });

  it.each(['', 'foo/bar', '/bar', '.', '..', 'k'.repeat(256)])('45: nothing is written for the key %j', async (key) => {
    const world = await begin();
    const a = await world.put('a', { kubelet: GOOD });
    const get = world.asNode.get;
    world.asNode.get = async (ref) => {
      const object = await get(ref);
      return object !== null && object.kind === 'ConfigMap' ? { ...object, data: { kubelet: GOOD, [key]: 'x' } } : object;
    };
    await world.assign('a');
    await world.pass(SETTLED);
    expect(await world.status()).toEqual({ error: E5 });
    expect([world.meta('assigned'), existsSync(nativeCheckpointDirectory(world.directory, world.identity(a)))]).toEqual(['', false]);
  });

  it('46: a report that is lost is not sent again', async () => {
    const world = await begin();
    await world.put('a', { kubelet: GOOD });
    const { patch } = world.asNode;
    world.asNode.patch = async () => {
      world.asNode.patch = patch;
      throw new Error('internal error');
    };
    await world.assign('a');
    await world.pass(9 * 60);
    expect(await world.status()).toEqual({});
    expect(maxPods(world)).toBe(77);
    await world.pass(3 * 60);
    expect(await world.status()).toHaveProperty('lastKnownGood');
  });

  it('47, 48: no Node at the start; a Node made anew without a source is a reset', async () => {
    const world = await begin();
    const a = await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(SETTLED);
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    await world.admin.delete(node);
    world.kubelet.start();
    await world.pass(60);
    expect([maxPods(world), world.kubelet.exits.length]).toEqual([77, 1]);
    expect(existsSync(nativeCheckpointDirectory(world.directory, world.identity(a)))).toBe(true);
    await world.admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
    await world.pass(SETTLED);
    expect([maxPods(world), await world.status()]).toEqual([110, {}]);
  });

  it('49: exit code 0 and one event a change; a unit that restarts on failure alone stays down', async () => {
    const world = await begin({ restart: 'on-failure' });
    await world.put('a', { kubelet: GOOD });
    await world.assign('a');
    await world.pass(60);
    expect(world.kubelet.exits.map(({ code }) => code)).toEqual([0]);
    expect(await world.events()).toHaveLength(1);
    expect(world.kubelet.state).toBe('stopped');
  });
});

describe('authorization', () => {
  it('50, 52: a node may not set its source, and may clear it', async () => {
    const world = await begin();
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    const configSource = { configMap: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet' } };
    await expect(world.asNode.patch(node, 'merge', { spec: { configSource } })).rejects.toThrow(
      'node "n1" is not allowed to update configSource to a new non-nil configSource',
    );
    await world.assign('a');
    await world.asNode.patch(node, 'merge', { spec: { configSource: null } });
    expect(await world.spec()).not.toHaveProperty('configSource');
  });

  it('51: it reads the ConfigMap only while it is assigned', async () => {
    const world = await begin();
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'a' };
    await world.put('a', { kubelet: GOOD });
    const refused = "no relationship found between node 'n1' and this object";
    await expect(world.asNode.get(ref)).rejects.toThrow(refused);
    await world.assign('a');
    expect(await world.asNode.get(ref)).toMatchObject({ metadata: { name: 'a' } });
    await world.reset();
    await expect(world.asNode.get(ref)).rejects.toThrow(refused);
  });
});

describe('gates', () => {
  it('53: a server without the gate drops the field and says yes', async () => {
    const world = await begin({ keepsSource: false });
    await world.assign('a');
    expect(await world.spec()).not.toHaveProperty('configSource');
  });

  it('54: such a server still lets a stored source be changed and removed', async () => {
    const world = await begin();
    await world.assign('a');
    const later = fakeCluster({ sharedWith: world.admin, dynamicKubeletConfig: false });
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
    const change = async (configSource: JsonObject | null) => (await later.patch(node, 'merge', { spec: { configSource } })).spec;
    const other = { configMap: { namespace: 'kube-system', name: 'b', kubeletConfigKey: 'kubelet' } };
    expect(await change(other)).toMatchObject({ configSource: other });
    await expect(change({ configMap: { ...other.configMap, uid: 'u' } })).rejects.toThrow('configMap.uid: Forbidden');
    expect(await change(null)).not.toHaveProperty('configSource');
    expect(await change(other)).not.toHaveProperty('configSource');
  });

  it('a payload that turns the feature off cannot be taken back through the API', async () => {
    const world = await begin();
    await world.put('a', { kubelet: payload('maxPods: 77', 'featureGates: {DynamicKubeletConfig: false}') });
    await world.assign('a');
    await world.pass(SETTLED);
    await world.reset();
    await world.pass(5 * 60);
    expect([maxPods(world), world.meta('assigned') !== '']).toEqual([77, true]);
  });
});

function META(name: string, uid = 'u'): string {
  const members = ['kubeletConfigKey: kubelet', `name: ${name}`, 'namespace: kube-system', 'resourceVersion: "1"', `uid: ${uid}`];
  return `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource:\n  configMap:\n    ${members.join('\n    ')}\n`;
}
