import { describe, expect, it } from 'vitest';
import { userOf } from '../../../../lab/api-server/authenticate.ts';
import { createRegistry } from '../../../../lab/api-server/registry.ts';
import { createStore } from '../../../../lab/api-server/store.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../../src/kube/resources.ts';

const NODES = resourceOf('v1', 'Node') as ResourceType;
const ADMIN = userOf('admin', ['system:masters']);
const source = (more: JsonObject = {}) => ({ configMap: { namespace: 'kube-system', name: 'cfg', kubeletConfigKey: 'kubelet', ...more } });

function world(dynamicKubeletConfig: boolean) {
  const store = createStore();
  const registry = createRegistry({ store, now: () => new Date('2030-01-01T00:00:00Z'), gates: { dynamicKubeletConfig } });
  const at = { namespace: '', name: 'w1' };
  registry.create(NODES, '', { metadata: { name: 'w1' } }, { user: ADMIN });
  const patch = (body: JsonObject, subresource = '', user = ADMIN): KubeObject =>
    registry.patch(NODES, at, 'strategic', body, { user, subresource });
  return { store, patch };
}

describe('with the gate on, as API servers up to 1.21', () => {
  it('keeps the source of a configuration, and its status', () => {
    const { patch } = world(true);
    expect(patch({ spec: { configSource: source() } }).spec).toMatchObject({ configSource: source() });
    const config = { assigned: source({ uid: 'u', resourceVersion: '7' }), error: 'e' };
    expect(patch({ status: { config } }, 'status').status).toMatchObject({ config });
    expect(patch({ spec: { configSource: null } }).spec).not.toHaveProperty('configSource');
  });

  it.each<[string, JsonObject, string]>([
    ['no member', {}, 'exactly one reference subfield must be non-nil'],
    ['no namespace', source({ namespace: '' }), 'spec.configSource.configMap.namespace: Required value: namespace must be set'],
    ['no name', source({ name: '' }), 'spec.configSource.configMap.name: Required value: name must be set'],
    [
      'no key',
      source({ kubeletConfigKey: '' }),
      'spec.configSource.configMap.kubeletConfigKey: Required value: kubeletConfigKey must be set',
    ],
    ['a uid', source({ uid: 'u' }), 'spec.configSource.configMap.uid: Forbidden: uid must not be set in spec'],
    [
      'a version',
      source({ resourceVersion: '1' }),
      'spec.configSource.configMap.resourceVersion: Forbidden: resourceVersion must not be set in spec',
    ],
    [
      'a bad key',
      source({ kubeletConfigKey: '..x' }),
      'spec.configSource.configMap.kubeletConfigKey: Invalid value: "..x": must not start with \'..\'',
    ],
  ])('refuses %s', (_, configSource, message) => {
    expect(() => world(true).patch({ spec: { configSource } })).toThrow(message);
  });

  it('requires uid and resourceVersion in the status', () => {
    expect(() => world(true).patch({ status: { config: { active: source() } } }, 'status')).toThrow(
      '[status.config.active.configMap.uid: Required value: uid must be set in status, status.config.active.configMap.resourceVersion: Required value: resourceVersion must be set in status]',
    );
  });

  it('lets a node drop its source, not choose another', () => {
    const { patch } = world(true);
    const node = userOf('system:node:w1', ['system:nodes']);
    expect(() => patch({ spec: { configSource: source() } }, '', node)).toThrow(
      'nodes "w1" is forbidden: node "w1" is not allowed to update configSource to a new non-nil configSource',
    );
    patch({ spec: { configSource: source() } });
    expect(patch({ spec: { configSource: null } }, '', node).spec).not.toHaveProperty('configSource');
  });
});

describe('with the gate off, as API servers since 1.22', () => {
  it('drops the source silently', () => {
    const { patch, store } = world(false);
    const before = store.revision();
    expect(patch({ spec: { configSource: {} } }).spec).not.toHaveProperty('configSource');
    expect(store.revision()).toBe(before);
  });

  it('keeps an existing source', () => {
    const store = createStore();
    store.put(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' }, spec: { configSource: source() } });
    const registry = createRegistry({ store, now: () => new Date(), gates: { dynamicKubeletConfig: false } });
    const changed = registry.patch(
      NODES,
      { namespace: '', name: 'w1' },
      'merge',
      { spec: { configSource: source({ name: 'b' }) } },
      { user: ADMIN },
    );
    expect(changed.spec).toMatchObject({ configSource: source({ name: 'b' }) });
  });
});
