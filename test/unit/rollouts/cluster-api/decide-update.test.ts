import { expect, it } from 'vitest';
import { isJsonObject, type Json, type JsonObject } from '../../../../src/base/json.ts';
import { applyPatch } from '../../../../src/codec/patch.ts';
import { KUBELET_PATCH_SCHEMA } from '../../../../src/codec/patch-schema.ts';
import { IMPACTS } from '../../../../src/host/plan/impact.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { mergeConfig } from '../../../../src/kubelet/layers/layers.ts';
import { classifyChanges } from '../../../../src/kubelet/validate/classify-changes.ts';
import { decideUpdate } from '../../../../src/rollouts/cluster-api/decide-update.ts';
import { type KubeadmConfigSpec, readKubeletPatches } from '../../../../src/rollouts/cluster-api/kubelet-patches.ts';
import { kubeadmConfigSpec, patchedObject } from '../../../support/cluster-api-objects.ts';
import { seededRandom } from '../../../support/seeded-random.ts';

const MINOR = 36;
const RUNS = 2_000;

/** Fields of all classes, with values that may be valid, unusual or wrong. */
const VALUES: Readonly<Record<string, readonly Json[]>> = {
  maxPods: [50, 110, 120, 250, -1, 'x'],
  podPidsLimit: [-1, 1024, 4096],
  imageGCHighThresholdPercent: [85, 90, 95],
  imageGCLowThresholdPercent: [70, 80],
  containerLogMaxFiles: [3, 5, 10],
  containerLogMaxSize: ['10Mi', '20Mi', '10485760'],
  evictionHard: [{ 'memory.available': '100Mi' }, { 'memory.available': '200Mi', 'nodefs.available': '10%' }, {}],
  systemReserved: [{ memory: '100Mi' }, { memory: '200Mi', cpu: '100m' }],
  featureGates: [{}, { GracefulNodeShutdown: true }],
  topologyManagerPolicy: ['none', 'best-effort'],
  cpuManagerPolicy: ['none', 'static'],
  cgroupDriver: ['systemd', 'cgroupfs'],
  port: [10250, 10251],
  staticPodURL: ['https://x'],
  registryPullQPS: [5, 10],
  streamingConnectionIdleTimeout: ['4h', '5m'],
  nodeStatusUpdateFrequency: ['10s', '1h'],
  authentication: [
    { anonymous: { enabled: false } },
    { anonymous: { enabled: true }, webhook: { cacheTTL: '5m' } },
    { webhook: { cacheTTL: '10s' } },
    { webhook: { cacheTTL: '1m' } },
  ],
  logging: [{ verbosity: 2 }, { verbosity: 9 }],
  memorySwap: [{}, { swapBehavior: 'NoSwap' }],
  registerWithTaints: [[{ key: 'a', effect: 'NoSchedule' }]],
  shutdownGracePeriod: ['30s', '60s'],
  unknownField: [1],
  maxOpenFiles: [1_000_000, 2_000_000, null],
};

const PATHS = ['kubeletconfiguration.yaml', 'kubeletconfiguration1+merge.json', 'kubeletconfiguration0+strategic.yaml', 'etcd.yaml'];

function generator(seed: number) {
  const random = seededRandom(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const fields = (most: number): JsonObject => {
    const names = Object.keys(VALUES);
    return Object.fromEntries(
      Array.from({ length: Math.floor(random() * (most + 1)) }, () => pick(names)).map((name) => [name, pick(VALUES[name] ?? [])]),
    );
  };
  const file = (name: string) => ({ path: `/etc/kubernetes/patches/${name}`, content: JSON.stringify(fields(4)) });
  /** Other values of some fields of a file; sometimes one less, or another file. */
  const edited = (one: JsonObject): JsonObject => {
    if (random() < 0.4) return one;
    const old = JSON.parse(one.content as string) as JsonObject;
    const kept = random() < 0.1 ? Object.fromEntries(Object.entries(old).slice(1)) : old;
    return { ...one, content: JSON.stringify({ ...kept, ...fields(2) }), ...(random() < 0.05 ? { encoding: 'base64' } : {}) };
  };
  const spec = (files: readonly JsonObject[], changes: boolean): KubeadmConfigSpec => {
    const whole = kubeadmConfigSpec(files);
    return (changes && random() < 0.2 ? { ...whole, format: 'ignition' } : whole) as KubeadmConfigSpec;
  };
  const files = PATHS.filter(() => random() < 0.6).map(file);
  const changed = random() < 0.05 ? files.toReversed() : files.map(edited);
  return { current: spec(files, false), desired: spec(changed, true), base: fields(6), allow: pick(IMPACTS.slice(0, 2)) };
}

/** Changed values by JSON pointer. */
function differences(a: unknown, b: unknown, at = ''): readonly string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  const isComparable = (isJsonObject(a) && isJsonObject(b)) || (Array.isArray(a) && Array.isArray(b));
  if (!isComparable) return [at];
  const [x, y] = [a, b] as readonly [Record<string, unknown>, Record<string, unknown>];
  return [...new Set([...Object.keys(x), ...Object.keys(y)])].flatMap((name) => differences(x[name], y[name], `${at}/${name}`));
}

/** The configuration of a node on which kubeadm applied the patch files. */
function joined(base: JsonObject, { files = [] }: KubeadmConfigSpec): JsonObject {
  const patches = files.filter(({ path }) => path.includes('/patches/kubeletconfiguration')).toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return patches.reduce((config, { path, content = '' }) => {
    return applyPatch(config, JSON.parse(content), path.includes('+merge') ? 'merge' : 'strategic', KUBELET_PATCH_SCHEMA);
  }, base);
}

it('covers only contents of kubelet patch files whose changes are permitted and have the result of a new machine', async () => {
  const catalogue = await loadCatalogue();
  const seen = { covered: 0, refused: 0, unchanged: 0 };
  for (let seed = 1; seed <= RUNS; seed++) {
    const { current, desired, base, allow } = generator(seed);
    const decision = await decideUpdate(current, desired, { version: 'v1.36.0', allow, at: '/spec' });
    if ('refused' in decision) {
      seen.refused++;
      continue;
    }
    if (decision.patch.length === 0) seen.unchanged++;
    else seen.covered++;
    const patch = Buffer.from(JSON.stringify(decision.patch)).toString('base64');
    const patched = patchedObject({ spec: current } as unknown as JsonObject, { patchType: 'JSONPatch', patch })
      .spec as unknown as KubeadmConfigSpec;
    for (const at of differences(current, patched)) {
      const [, index] = /^\/files\/(\d+)\/content$/.exec(at) ?? [];
      expect(current.files?.[Number(index)]?.path, `seed ${seed}: ${at}`).toMatch(/^\/etc\/kubernetes\/patches\/kubeletconfiguration/);
    }
    const [before, after] = [joined(base, current), joined(base, patched)];
    for (const change of classifyChanges(before, after, { minor: MINOR, catalogue }))
      expect(IMPACTS.indexOf(change.class), `seed ${seed}: ${JSON.stringify(change)}`).toBeLessThanOrEqual(IMPACTS.indexOf(allow));
    // The node gets all fields of the patches as an overlay.
    const overlay = readKubeletPatches(patched);
    if ('unreadable' in overlay) throw new Error(`seed ${seed}: ${overlay.unreadable}`);
    expect(classifyChanges(mergeConfig(before, overlay.fields), after, { minor: MINOR, catalogue }), `seed ${seed}`).toEqual([]);
  }
  expect(Math.min(seen.covered, seen.refused, seen.unchanged), JSON.stringify(seen)).toBeGreaterThan(RUNS / 50);
});

it('refuses more than 32 patch files before it reads them, because everybody may send requests', async () => {
  const spec = (count: number): KubeadmConfigSpec => {
    const name = (i: number): string => `/etc/kubernetes/patches/kubeletconfiguration${i}+merge.yaml`;
    return kubeadmConfigSpec(Array.from({ length: count }, (_, i) => ({ path: name(i), content: 'maxPods: 1' }))) as KubeadmConfigSpec;
  };
  const [few, many] = [readKubeletPatches(spec(32)), readKubeletPatches(spec(20_000))];
  expect(few).toMatchObject({ fields: { maxPods: 1 } });
  expect(many).toEqual({ unreadable: 'more than 32 patch files' });
});
