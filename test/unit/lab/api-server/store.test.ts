import { describe, expect, it } from 'vitest';
import { createStore, type StoreEvent } from '../../../../lab/api-server/store.ts';
import { openWatch } from '../../../../lab/api-server/watch.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../../src/kube/resources.ts';

const CM = resourceOf('v1', 'ConfigMap') as ResourceType;
const SECRETS = resourceOf('v1', 'Secret') as ResourceType;
const configMap = (name: string, value = '', labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', labels },
  data: { value },
});

describe('createStore', () => {
  it('has one version over all kinds', () => {
    const store = createStore();
    store.put(CM, configMap('a'));
    store.put(SECRETS, { ...configMap('a'), kind: 'Secret' });
    expect(store.put(CM, configMap('b')).metadata.resourceVersion).toBe('3');
    expect(store.remove(CM, 'default', 'a')?.metadata.resourceVersion).toBe('4');
    expect(store.revision()).toBe(4);
    expect(store.get(SECRETS, 'default', 'a')).not.toBeNull();
  });

  it('keeps the version for the same content', () => {
    const store = createStore();
    const stored = store.put(CM, configMap('a'));
    expect(store.put(CM, { ...stored, data: { value: '' } })).toBe(stored);
    expect(store.since(0)).toHaveLength(1);
  });

  it('lists by namespace and name', () => {
    const store = createStore();
    for (const name of ['b', 'a', 'c']) store.put(CM, configMap(name));
    store.put(CM, { ...configMap('z'), metadata: { name: 'z', namespace: 'a' } });
    expect(store.list(CM).map(({ metadata }) => metadata.name)).toEqual(['z', 'a', 'b', 'c']);
    expect(store.list(CM, 'a')).toHaveLength(1);
  });

  it('discards old changes, and returns null', () => {
    const store = createStore({ historyLimit: 3 });
    for (let i = 0; i < 20; i++) store.put(CM, configMap('a', String(i)));
    expect(store.since(1)).toBeNull();
    expect(store.since(18)?.map(({ revision }) => revision)).toEqual([19, 20]);
    store.compact();
    expect(store.since(19)).toBeNull();
    expect(store.since(20)).toEqual([]);
  });

  it('delivers events to every listener in the same order, even when one of them writes', () => {
    const store = createStore();
    const seen: string[] = [];
    store.subscribe(({ object }) => {
      if (object.metadata.name === 'cause') store.put(CM, configMap('effect'));
    });
    store.subscribe(({ object }) => seen.push(object.metadata.name));
    store.put(CM, configMap('cause'));
    expect(seen).toEqual(['cause', 'effect']);
  });

  it('is not misled by names of the prototype', () => {
    const store = createStore();
    expect(store.get(CM, 'default', '__proto__')).toBeNull();
    store.put(CM, configMap('__proto__'));
    expect(store.list(CM)).toHaveLength(1);
  });
});

describe('openWatch', () => {
  const watching = (
    store: ReturnType<typeof createStore>,
    options: { resourceVersion?: string; namespace?: string; sendInitialEvents?: boolean; desired?: (object: KubeObject) => boolean } = {},
  ) => {
    const seen: string[] = [];
    const { resourceVersion = '', namespace = '', desired = () => true, sendInitialEvents = false } = options;
    const watch = openWatch(
      store,
      { type: CM, namespace, selector: desired, resourceVersion, sendInitialEvents },
      {
        send: (type, object) => {
          const { name = '', resourceVersion: version = '' } = (object.metadata ?? {}) as { name?: string; resourceVersion?: string };
          seen.push(type === 'ERROR' ? `ERROR ${object.code} ${object.message}` : `${type} ${name}@${version}`);
        },
        end: () => seen.push('end'),
      },
    );
    return { seen, watch };
  };

  it.each(['', '0'])('starts with the existing objects for version %j', (resourceVersion) => {
    const store = createStore();
    store.put(CM, configMap('a'));
    store.put(CM, configMap('a', '2'));
    const { seen } = watching(store, { resourceVersion });
    store.put(CM, configMap('b'));
    expect(seen).toEqual(['ADDED a@2', 'ADDED b@3']);
  });

  it('starts after a version', () => {
    const store = createStore();
    for (const name of ['a', 'b', 'c']) store.put(CM, configMap(name));
    store.remove(CM, 'default', 'a');
    expect(watching(store, { resourceVersion: '2' }).seen).toEqual(['ADDED c@3', 'DELETED a@4']);
  });

  it('waits for a future version', () => {
    const store = createStore();
    const { seen } = watching(store, { resourceVersion: '2' });
    for (const name of ['a', 'b', 'c']) store.put(CM, configMap(name));
    expect(seen).toEqual(['ADDED c@3']);
  });

  it('ends with an error for an expired version', () => {
    const store = createStore();
    store.put(CM, configMap('a'));
    store.put(CM, configMap('b'));
    store.compact();
    expect(watching(store, { resourceVersion: '1' }).seen).toEqual(['ERROR 410 too old resource version: 1 (2)', 'end']);
  });

  it('marks the end of the existing objects on request', () => {
    const store = createStore();
    store.put(CM, configMap('a'));
    expect(watching(store, { sendInitialEvents: true }).seen).toEqual(['ADDED a@1', 'BOOKMARK @1']);
  });

  it('sees only its namespace and kind', () => {
    const store = createStore();
    const { seen } = watching(store, { namespace: 'other' });
    store.put(CM, configMap('a'));
    store.put(SECRETS, { ...configMap('s'), metadata: { name: 's', namespace: 'other' } });
    store.put(CM, { ...configMap('b'), metadata: { name: 'b', namespace: 'other' } });
    expect(seen).toEqual(['ADDED b@3']);
  });

  it('sends ADDED and DELETED when an object starts and stops matching, with its last content', () => {
    const store = createStore();
    const { seen } = watching(store, { desired: ({ metadata }) => metadata.labels?.show === 'yes' });
    store.put(CM, configMap('a', '1', { show: 'no' }));
    store.put(CM, configMap('a', '2', { show: 'yes' }));
    store.put(CM, configMap('a', '3', { show: 'yes' }));
    store.put(CM, configMap('a', '4', { show: 'no' }));
    store.remove(CM, 'default', 'a');
    expect(seen).toEqual(['ADDED a@2', 'MODIFIED a@3', 'DELETED a@4']);
  });

  it('stops', () => {
    const store = createStore();
    const { seen, watch } = watching(store);
    watch.stop();
    store.put(CM, configMap('a'));
    expect(seen).toEqual([]);
  });

  it('rejects an invalid version', () => {
    expect(() => watching(createStore(), { resourceVersion: 'x' })).toThrow('resourceVersion: Invalid value: "x"');
  });
});

it('passes the previous object to a listener', () => {
  const store = createStore();
  const events: StoreEvent[] = [];
  store.subscribe((event) => events.push(event));
  store.put(CM, configMap('a', '1'));
  store.put(CM, configMap('a', '2'));
  store.remove(CM, 'default', 'a');
  expect(events.map(({ type, previous }) => [type, previous?.data])).toEqual([
    ['ADDED', undefined],
    ['MODIFIED', { value: '1' }],
    ['DELETED', { value: '2' }],
  ]);
});
