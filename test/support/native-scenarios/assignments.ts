import { expect } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { comesTo, type NativeSubject, stays } from '../native-subject.ts';
import { BAD, GOOD, INVALID } from '../native-world.ts';
import { E1, E2, type NativeScenario, nodeRef, scenario, takes } from './scenario.ts';

const source = (change: JsonObject): JsonObject => ({
  configMap: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', ...change },
});

/** Assignments that the API server rejects, with its message. */
const REFUSED: readonly (readonly [number, JsonObject, string])[] = [
  [2, {}, 'exactly one reference subfield must be non-nil'],
  [3, source({ namespace: '' }), 'configMap.namespace: Required value'],
  [4, source({ name: '' }), 'configMap.name: Required value'],
  [5, source({ kubeletConfigKey: '' }), 'configMap.kubeletConfigKey: Required value'],
  [6, source({ uid: 'u' }), 'configMap.uid: Forbidden: uid must not be set in spec'],
  [7, source({ resourceVersion: '1' }), 'configMap.resourceVersion: Forbidden: resourceVersion must not be set in spec'],
  [8, source({ namespace: '../baz' }), 'configMap.namespace: Invalid value'],
  [9, source({ name: '../bar' }), 'configMap.name: Invalid value'],
  [10, source({ kubeletConfigKey: '../qux' }), 'configMap.kubeletConfigKey: Invalid value'],
];

/** Changes of `spec.configSource`. */
export const ASSIGNMENTS: readonly NativeScenario[] = [
  scenario([1], 'to nil from any source: the local configuration', async (s) => {
    for (const text of [GOOD, BAD, INVALID]) {
      await s.put('a', { kubelet: text });
      await s.assign('a');
      await comesTo(s, { assigned: expect.stringContaining('name: a\n') });
      await s.reset();
      await comesTo(s, { status: {}, pods: 110, assigned: '', lastKnownGood: '', lastEvent: 'Kubelet restarting to use local config' }, 45);
    }
  }),

  ...REFUSED.map(([number, configSource, text]) =>
    scenario([number], `${JSON.stringify(configSource)} is rejected, and the node is unaffected`, async (s) => {
      await expect(s.admin.patch(nodeRef(s), 'merge', { spec: { configSource } })).rejects.toThrow(text);
      expect(await s.spec()).not.toHaveProperty('configSource');
      await stays(s, { status: {}, restarts: 0 }, 3);
    }),
  ),

  scenario([11], 'nil to good: a trial within 12 s and one start', async (s) => {
    const a = await s.put('a', { kubelet: GOOD });
    await s.assign('a');
    const { uid, resourceVersion } = a.metadata;
    const path = `/api/v1/namespaces/${s.namespace}/configmaps/a`;
    const lastEvent = `Kubelet restarting to use ${path}, UID: ${uid}, ResourceVersion: ${resourceVersion}, KubeletConfigKey: kubelet`;
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a) }, pods: 77, lastEvent }, 19);
    expect(await s.events()).toHaveLength(1);
    const labels = `node_config_kubelet_key="kubelet",node_config_resource_version="${resourceVersion}",node_config_source="${path}",node_config_uid="${uid}"`;
    const metrics = await s.kubelet.metrics();
    expect(metrics).toContain(`kubelet_node_config_assigned{${labels}} 1\n`);
    expect(metrics).toContain(`kubelet_node_config_active{${labels}} 1\n`);
    expect(metrics).toContain('kubelet_node_config_error 0\n');
  }),

  ...(
    [
      [12, 'an unreadable payload', BAD, E1],
      [13, 'an invalid payload', INVALID, E2],
    ] as const
  ).map(([number, what, text, error]) =>
    scenario([number], `to ${what}: falls back to local, also in a trial`, async (s) => {
      const a = await s.put('a', { kubelet: GOOD });
      const b = await s.put('b', { kubelet: text });
      await fallsBack(s, s.at(b), error);
      await takes(s, a);
      await comesTo(s, { pods: 77 });
      await fallsBack(s, s.at(b), error);
    }),
  ),

  scenario([14], 'from bad to good: the error disappears', async (s) => {
    const a = await s.put('a', { kubelet: GOOD });
    for (const text of [BAD, INVALID]) {
      await s.put('b', { kubelet: text });
      await s.assign('b');
      await comesTo(s, { status: expect.objectContaining({ error: text === BAD ? E1 : E2 }) });
      await takes(s, a);
    }
  }),
];

/** Assigns ConfigMap `b`, which the kubelet rejects. */
async function fallsBack(s: NativeSubject, assigned: JsonObject, error: string): Promise<void> {
  await s.assign('b');
  await comesTo(s, { status: { assigned, error }, pods: 110, metrics: expect.stringContaining('kubelet_node_config_error 1\n') });
}
