import { expect } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { becomes } from '../native-subject.ts';
import { GOOD } from '../native-world.ts';
import { type NativeScenario, nodeRef, scenario } from './scenario.ts';

/** Permissions, and API servers that drop the field. */
export const PERMISSIONS: readonly NativeScenario[] = [
  scenario([50, 52], 'a node may not set its source, but may clear it', async (s) => {
    const configSource = { configMap: { namespace: s.namespace, name: 'a', kubeletConfigKey: 'kubelet' } };
    await expect(s.asNode.patch(nodeRef(s), 'merge', { spec: { configSource } })).rejects.toThrow(
      `node "${s.nodeName}" is not allowed to update configSource to a new non-nil configSource`,
    );
    await s.assign('a');
    await s.asNode.patch(nodeRef(s), 'merge', { spec: { configSource: null } });
    expect(await s.spec()).not.toHaveProperty('configSource');
  }),

  scenario([51], 'a node may read the ConfigMap only while it is assigned', async (s) => {
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: s.namespace, name: 'a' };
    await s.put('a', { kubelet: GOOD });
    const read = () =>
      s.asNode.get(ref).then(
        (object) => object?.metadata.name,
        (error: Error) => error.message,
      );
    const refused = expect.stringContaining(`no relationship found between node '${s.nodeName}' and this object`);
    await becomes(s, read, refused);
    await s.assign('a');
    await becomes(s, read, 'a');
    await s.reset();
    await becomes(s, read, refused);
  }),

  scenario([53], 'a server without the gate drops the field and accepts the patch', async (s) => {
    const without = await s.withoutGate();
    const configSource = { configMap: { namespace: s.namespace, name: 'a', kubeletConfigKey: 'kubelet' } };
    expect((await without.patch(nodeRef(s), 'merge', { spec: { configSource } })).spec ?? {}).not.toHaveProperty('configSource');
    expect(await s.spec()).not.toHaveProperty('configSource');
  }),

  scenario([54], 'a server without the gate still allows changes and removal of a stored source', async (s) => {
    await s.assign('a');
    const without = await s.withoutGate();
    const change = async (configSource: JsonObject | null) =>
      (await without.patch(nodeRef(s), 'merge', { spec: { configSource } })).spec ?? {};
    const other = { configMap: { namespace: s.namespace, name: 'b', kubeletConfigKey: 'kubelet' } };
    expect(await change(other)).toMatchObject({ configSource: other });
    await expect(change({ configMap: { ...other.configMap, uid: 'u' } })).rejects.toThrow('configMap.uid: Forbidden');
    expect(await change(null)).not.toHaveProperty('configSource');
    expect(await change(other)).not.toHaveProperty('configSource');
  }),
];
