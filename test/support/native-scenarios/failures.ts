import { expect } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { nativeCheckpointDirectory, nativeStorePaths, renderMetaFile } from '../../../src/dynamic/native/native-store.ts';
import { comesTo, stays } from '../native-subject.ts';
import { BAD, CRASHING, DYING_EARLY, GOOD, payload, TURNING_OFF } from '../native-world.ts';
import { E1, E2, E4, E5, type NativeScenario, nodeRef, scenario, standInScenario, takes, withLastKnownGood } from './scenario.ts';

const moreThan = (few: number): unknown => expect.toSatisfy((count: unknown) => Number(count) > few);

/** Payloads that are replaced by the local configuration, with the error. */
const UNUSABLE: readonly (readonly [number, string, JsonObject, string])[] = [
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
];

/** Payloads that are accepted, with their maxPods. */
const USABLE: readonly (readonly [number, string, string, number])[] = [
  [34, 'an unknown field', payload('maxPods: 77', 'bogus: 1'), 77],
  [34, 'a field given twice', payload('maxPods: 70', 'maxPods: 77'), 77],
  [36, 'JSON', '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":77}', 77],
  [36, 'nothing but the header', payload(), 110],
];

/** Payloads with and without defects. */
export const PAYLOADS: readonly NativeScenario[] = [
  ...UNUSABLE.map(([number, what, change, error]) =>
    scenario([number], `${what} is rejected`, async (s) => {
      const { data, ...more } = change;
      const a = await s.put('a', data as Record<string, string>, more);
      await s.assign('a');
      await comesTo(s, { status: { assigned: s.at(a), error }, pods: 110 });
    }),
  ),

  ...USABLE.map(([number, what, text, pods]) =>
    scenario([number], `${what} is accepted`, async (s) => {
      await takes(s, await s.put('a', { kubelet: text }));
      await comesTo(s, { pods });
    }),
  ),

  scenario([37], 'another file next to the payload', async (s) => {
    const a = await s.put('a', { kubelet: payload('resolvConf: resolv.conf'), 'resolv.conf': 'nameserver 10.0.0.1\n' });
    await takes(s, a);
    const path = `${nativeCheckpointDirectory(s.directory, s.identity(a))}/resolv.conf`;
    expect(await s.kubelet.configz()).toMatchObject({ resolvConf: path });
    expect(await s.store.read(path)).toBe('nameserver 10.0.0.1\n');
  }),

  ...(
    [
      ['turns the feature off', TURNING_OFF],
      ['ends the kubelet before its loops begin', DYING_EARLY],
    ] as const
  ).map(([what, text]) =>
    scenario([], `a payload that ${what} causes a crash loop, and becomes last known good`, async (s) => {
      await s.put('a', { kubelet: text });
      await s.assign('a');
      await comesTo(s, { restarts: moreThan(4) }, 60);
      await s.reset();
      await s.backdate(11);
      const a = expect.stringContaining('name: a\n');
      await comesTo(s, { status: {}, assigned: a, lastKnownGood: a });
      await stays(s, { status: {}, assigned: a }, s.rounds(5 * 60, 20));
      const { exitCodes } = await s.kubelet.process();
      expect(new Set(exitCodes.slice(1))).toEqual(new Set([1]));
    }),
  ),
];

const META = (name: string, uid = 'u'): string => {
  const members = ['kubeletConfigKey: kubelet', `name: ${name}`, 'namespace: kube-system', 'resourceVersion: "1"', `uid: ${uid}`];
  return `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource:\n  configMap:\n    ${members.join('\n    ')}\n`;
};

const CORRUPT: readonly (readonly [string, string])[] = [
  ['garbage', 'not: [a'],
  ['no member', 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource: {}\n'],
  ['a name that is a boolean', META('n')],
];

const NO_CHECKPOINT = 'failed to determine a valid configuration, error: no checkpoint for source /api/v1/namespaces/';
const UNSAVABLE = ['', 'foo/bar', '/bar', '.', '..', 'k'.repeat(256)];

/** Failures during a change, and their effects. */
export const FAILURES: readonly NativeScenario[] = [
  scenario([30], 'a missing ConfigMap keeps local, and is used once it exists', async (s) => {
    await s.assign('a');
    await comesTo(s, { status: { error: E4 }, restarts: 0 });
    const a = await s.put('a', { kubelet: GOOD });
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a) } });
  }),

  scenario([31], 'the error of a missing ConfigMap outlives the reset, until a restart', async (s) => {
    await s.assign('a');
    await comesTo(s, { status: { error: E4 } });
    await s.reset();
    await stays(s, { status: { error: E4 } }, s.rounds(5 * 60, 30));
    await s.kubelet.start();
    await comesTo(s, { status: {} });
  }),

  scenario([38], 'starts from disk while the API server is down, and the trial does not start over', async (s) => {
    await takes(s, await s.put('a', { kubelet: GOOD }));
    await s.pass(15);
    const { assigned } = nativeStorePaths(s.directory);
    const before = await s.store.modifiedAt(assigned);
    await s.loseApiServer(true);
    await s.kubelet.start();
    await comesTo(s, { pods: 77 });
    await s.pass(20);
    expect(await s.store.modifiedAt(assigned)).toBe(before);
    await s.loseApiServer(false);
  }),

  scenario([39], 'the age of a file promotes it, so a crash loop becomes last known good', async (s) => {
    const a = await withLastKnownGood(s, GOOD);
    const reported = await s.status();
    const crash = await s.put('c', { kubelet: CRASHING });
    await s.assign('c');
    await comesTo(s, { restarts: moreThan(4) }, 75);
    await stays(s, { status: reported, assigned: expect.stringContaining('name: c\n') }, 0);
    expect(await s.store.read(nativeStorePaths(s.directory).lastKnownGood)).toContain(`uid: ${a.metadata.uid}\n`);
    await s.backdate(11);
    await comesTo(s, { lastKnownGood: expect.stringContaining('name: c\n') });
    await s.reset();
    await stays(s, { assigned: expect.stringContaining(`uid: ${crash.metadata.uid}`), status: reported }, s.rounds(120, 30));
    // The repair.
    await s.kubelet.stop();
    await s.store.remove(nativeStorePaths(s.directory).root);
    await s.kubelet.start();
    await comesTo(s, { status: {}, pods: 110 });
  }),

  scenario([40], 'a reset restarts only a kubelet with an assignment', async (s) => {
    const leftover = { namespace: 'kube-system', name: 'old', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' };
    await s.kubelet.stop();
    await s.store.write(nativeStorePaths(s.directory).lastKnownGood, renderMetaFile(leftover));
    await s.kubelet.start();
    await comesTo(s, { status: { lastKnownGood: { configMap: expect.objectContaining({ name: 'old' }) } } });
    await comesTo(s, { lastKnownGood: '' });
    await stays(s, { restarts: 0 }, 5);
  }),

  ...CORRUPT.map(([what, text]) =>
    scenario([41], `a meta file with ${what} causes a crash loop`, async (s) => {
      await s.kubelet.stop();
      await s.store.write(nativeStorePaths(s.directory).assigned, text);
      await s.kubelet.start();
      await comesTo(s, { restarts: moreThan(5), log: expect.stringContaining('failed to determine a valid configuration, error: ') });
      const { exitCodes } = await s.kubelet.process();
      expect(new Set(exitCodes)).toEqual(new Set([1]));
    }),
  ),

  scenario([41], 'a directory in place of a meta file causes a crash loop', async (s) => {
    const { assigned } = nativeStorePaths(s.directory);
    await s.kubelet.stop();
    await s.store.remove(assigned);
    await s.store.makeDirectory(assigned);
    await s.kubelet.start();
    await comesTo(s, { restarts: moreThan(5), log: expect.stringContaining('expected regular file at ') });
    const { exitCodes } = await s.kubelet.process();
    expect(new Set(exitCodes)).toEqual(new Set([1]));
  }),

  scenario([42], 'a bad configuration, and a last known good one without checkpoint', async (s) => {
    const a = await withLastKnownGood(s, GOOD);
    await s.store.remove(nativeCheckpointDirectory(s.directory, s.identity(a)));
    await s.put('b', { kubelet: BAD });
    await s.assign('b');
    await comesTo(s, { restarts: moreThan(5), log: expect.stringContaining(NO_CHECKPOINT) });
    const { exitCodes } = await s.kubelet.process();
    expect(exitCodes.slice(0, 2)).toEqual([0, 0]);
    expect(new Set(exitCodes.slice(2))).toEqual(new Set([1]));
  }),

  scenario([43], 'a meta file without a uid', async (s) => {
    await s.kubelet.stop();
    await s.store.write(nativeStorePaths(s.directory).assigned, META('a', ''));
    await s.kubelet.start();
    // An API server rejects a status without a uid, and the kubelet does not send it again.
    await comesTo(s, { metrics: expect.stringContaining('kubelet_node_config_error 1\n') });
    const log = await s.kubelet.log();
    expect(log).toContain(`reason="${E1}"`);
    expect(log).toContain('empty UID is ambiguous');
    await stays(s, { status: {} }, 0);
  }),

  scenario([44], 'a lost checkpoint is restored automatically, and used after one more restart', async (s) => {
    const a = await s.put('a', { kubelet: GOOD });
    await takes(s, a);
    const directory = nativeCheckpointDirectory(s.directory, s.identity(a));
    await s.store.remove(directory);
    await s.kubelet.start();
    await comesTo(s, { status: { assigned: s.at(a), error: E1 } });
    await s.pass(15);
    expect(await s.store.exists(directory)).toBe(true);
    await stays(s, { status: { assigned: s.at(a), error: E1 }, restarts: 0 }, 0);
    await s.kubelet.start();
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a) } });
  }),

  ...UNSAVABLE.map((key) =>
    standInScenario([45], `nothing is written for the key ${JSON.stringify(key)}`, 'a real API server refuses such keys', async (s) => {
      const a = await s.put('a', { kubelet: GOOD });
      s.serveInstead((object) => (object.kind === 'ConfigMap' ? { ...object, data: { kubelet: GOOD, [key]: 'x' } } : object));
      await s.assign('a');
      await comesTo(s, { status: { error: E5 }, assigned: '' });
      expect(await s.store.exists(nativeCheckpointDirectory(s.directory, s.identity(a)))).toBe(false);
    }),
  ),

  scenario([46], 'a report that is lost twice, also with the first sync, is not sent again', async (s) => {
    const a = await s.put('a', { kubelet: GOOD });
    await s.refuseReports(true);
    await s.assign('a');
    await comesTo(s, { pods: 77 });
    await s.pass(40);
    await s.refuseReports(false);
    await stays(s, { status: {}, pods: 77 }, s.rounds(8 * 60, 30));
    await s.passTrial();
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a), lastKnownGood: s.at(a) } });
  }),

  scenario([46], 'a lost report is sent again with the first sync', async (s) => {
    const a = await s.put('a', { kubelet: GOOD });
    await s.refuseReports(true);
    await s.assign('a');
    await comesTo(s, { pods: 77 });
    await s.pass(5);
    await stays(s, { status: {} }, 0);
    await s.refuseReports(false);
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a) } });
  }),

  scenario(
    [47, 48],
    'no Node at the start; a recreated Node without a source is a reset',
    async (s) => {
      const a = await s.put('a', { kubelet: GOOD });
      await takes(s, a);
      await s.admin.delete(nodeRef(s));
      await s.kubelet.start();
      await comesTo(s, { pods: 77 });
      await stays(s, { pods: 77, restarts: 0 }, 20);
      await s.admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: s.nodeName } });
      await comesTo(s, { pods: 110, status: {}, restarts: 1 }, 45);
    },
    { needsNode: true },
  ),

  scenario([48], 'a Node deleted under a running kubelet has no effect, recreated without a source it is a reset', async (s) => {
    await takes(s, await s.put('a', { kubelet: GOOD }));
    await s.pass(15);
    await s.admin.delete(nodeRef(s));
    await stays(s, { pods: 77, restarts: 1 }, 25);
    await s.admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: s.nodeName } });
    await comesTo(s, { pods: 110, status: {}, restarts: 2 }, 45);
  }),

  scenario(
    [49],
    'exit code 0 and one event per change; a unit with Restart=on-failure stays down',
    async (s) => {
      await s.put('a', { kubelet: GOOD });
      await s.assign('a');
      await comesTo(s, { state: 'stopped', exitCodes: [0] });
      expect(await s.events()).toHaveLength(1);
      await stays(s, { state: 'stopped', status: {} }, 5);
    },
    { restart: 'on-failure' },
  ),
];
