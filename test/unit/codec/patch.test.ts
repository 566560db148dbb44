import { describe, expect, it } from 'vitest';
import { type AppError, isAppError } from '../../../src/base/errors.ts';
import type { Json, JsonObject } from '../../../src/base/json.ts';
import { applyPatch, type PatchType } from '../../../src/codec/patch.ts';
import { KUBELET_PATCH_SCHEMA, type PatchSchema, patchSchemaOf } from '../../../src/codec/patch-schema.ts';

interface Case {
  readonly name: string;
  readonly target: JsonObject;
  readonly patch: Json;
  /** The result, or the code of the error. */
  readonly result: JsonObject | string;
}

function check(type: PatchType, schema: PatchSchema): (row: Case) => void {
  return ({ target, patch, result }) => {
    const before = structuredClone({ target, patch });
    if (typeof result === 'string') expect(codeOf(() => applyPatch(target, patch, type, schema))).toBe(result);
    else expect(applyPatch(target, patch, type, schema)).toEqual(result);
    expect({ target, patch }).toEqual(before);
  };
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (isAppError(error)) return error.code;
    throw error;
  }
  return 'no error';
}

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as AppError).message;
  }
  return 'no error';
}

describe('merge patches', () => {
  it.each<Case>([
    { name: 'replaces and adds', target: { a: 1, b: 2 }, patch: { a: 5, c: [1] }, result: { a: 5, b: 2, c: [1] } },
    { name: 'removes by null', target: { a: 1, b: 2 }, patch: { a: null, z: null }, result: { b: 2 } },
    { name: 'merges objects', target: { a: { b: 1, c: 2 } }, patch: { a: { c: null, d: 3 } }, result: { a: { b: 1, d: 3 } } },
    { name: 'replaces lists', target: { a: [1, 2] }, patch: { a: [3] }, result: { a: [3] } },
    {
      name: 'replaces an object by a value and the other way round',
      target: { a: { b: 1 }, c: 5 },
      patch: { a: 5, c: { d: 1 } },
      result: { a: 5, c: { d: 1 } },
    },
    {
      name: 'drops nulls from new objects, at any depth',
      target: {},
      patch: { a: { b: null, c: [null, { d: null }] } },
      result: { a: { c: [null, {}] } },
    },
    { name: 'an empty patch', target: { a: 1 }, patch: {}, result: { a: 1 } },
    { name: 'a list is not a merge patch', target: { a: 1 }, patch: [], result: 'PATCH_INVALID' },
    { name: 'nor is null', target: { a: 1 }, patch: null, result: 'PATCH_INVALID' },
    { name: 'nor is a string', target: { a: 1 }, patch: 'x', result: 'PATCH_INVALID' },
  ])('$name', check('merge', KUBELET_PATCH_SCHEMA));
});

describe('JSON patches', () => {
  const target = { a: { b: [1, 2] }, 'x/y': { 'm~n': 1 }, n: null };

  it.each<Case>([
    { name: 'add a member', target, patch: [{ op: 'add', path: '/c', value: 1 }], result: { ...target, c: 1 } },
    { name: 'add into a list', target, patch: [{ op: 'add', path: '/a/b/1', value: 9 }], result: { ...target, a: { b: [1, 9, 2] } } },
    { name: 'add at the end', target, patch: [{ op: 'add', path: '/a/b/-', value: 9 }], result: { ...target, a: { b: [1, 2, 9] } } },
    {
      name: 'add at the end by index',
      target,
      patch: [{ op: 'add', path: '/a/b/2', value: 9 }],
      result: { ...target, a: { b: [1, 2, 9] } },
    },
    {
      name: 'add counted from the end',
      target,
      patch: [{ op: 'add', path: '/a/b/-1', value: 9 }],
      result: { ...target, a: { b: [1, 2, 9] } },
    },
    { name: 'add beyond the end', target, patch: [{ op: 'add', path: '/a/b/3', value: 9 }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'add without value is null', target, patch: [{ op: 'add', path: '/c' }], result: { ...target, c: null } },
    { name: 'add below a missing member', target, patch: [{ op: 'add', path: '/c/d', value: 1 }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'add below null', target, patch: [{ op: 'add', path: '/n/d', value: 1 }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'add below a number', target, patch: [{ op: 'add', path: '/a/b/0/c', value: 1 }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'remove a member', target, patch: [{ op: 'remove', path: '/a' }], result: { 'x/y': { 'm~n': 1 }, n: null } },
    { name: 'remove the last item', target, patch: [{ op: 'remove', path: '/a/b/-1' }], result: { ...target, a: { b: [1] } } },
    { name: 'remove a missing member', target, patch: [{ op: 'remove', path: '/c' }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'remove beyond the end', target, patch: [{ op: 'remove', path: '/a/b/2' }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'remove from the prototype', target, patch: [{ op: 'remove', path: '/toString' }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'replace', target, patch: [{ op: 'replace', path: '/a/b/0', value: 5 }], result: { ...target, a: { b: [5, 2] } } },
    { name: 'replace a missing member adds it', target, patch: [{ op: 'replace', path: '/c', value: 5 }], result: { ...target, c: 5 } },
    { name: 'replace a missing item', target, patch: [{ op: 'replace', path: '/a/b/2', value: 5 }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'replace everything', target, patch: [{ op: 'replace', path: '', value: { z: 1 } }], result: { z: 1 } },
    { name: 'replace everything by a list', target, patch: [{ op: 'replace', path: '', value: [] }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'replace everything by null', target, patch: [{ op: 'replace', path: '', value: null }], result: 'PATCH_INVALID' },
    { name: 'move', target, patch: [{ op: 'move', from: '/a/b/0', path: '/c' }], result: { ...target, a: { b: [2] }, c: 1 } },
    { name: 'move a missing member', target, patch: [{ op: 'move', from: '/z', path: '/c' }], result: 'PATCH_NOT_APPLICABLE' },
    {
      name: 'copy',
      target,
      patch: [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'add', path: '/c/b/0', value: 0 },
      ],
      result: { ...target, c: { b: [0, 1, 2] } },
    },
    { name: 'copy a missing member gives null', target, patch: [{ op: 'copy', from: '/z', path: '/c' }], result: { ...target, c: null } },
    { name: 'escapes', target, patch: [{ op: 'replace', path: '/x~1y/m~0n', value: 2 }], result: { ...target, 'x/y': { 'm~n': 2 } } },
    { name: 'test that succeeds', target, patch: [{ op: 'test', path: '/a', value: { b: [1, 2] } }], result: target },
    { name: 'test of the whole document', target, patch: [{ op: 'test', path: '', value: target }], result: target },
    { name: 'test that fails', target, patch: [{ op: 'test', path: '/a', value: { b: [2, 1] } }], result: 'PATCH_TEST_FAILED' },
    { name: 'test for absence', target, patch: [{ op: 'test', path: '/c', value: null }], result: target },
    { name: 'test of an absent member', target, patch: [{ op: 'test', path: '/c', value: 1 }], result: 'PATCH_TEST_FAILED' },
    {
      name: 'test leaves earlier operations without effect',
      target,
      patch: [
        { op: 'add', path: '/c', value: 1 },
        { op: 'test', path: '/c', value: 2 },
      ],
      result: 'PATCH_TEST_FAILED',
    },
    { name: 'no operations', target, patch: [], result: target },
    { name: 'null is an empty list of operations', target, patch: null, result: target },
    { name: 'an object is not a JSON patch', target, patch: { op: 'add' }, result: 'PATCH_INVALID' },
    { name: 'unknown operation', target, patch: [{ op: 'put', path: '/a' }], result: 'PATCH_INVALID' },
    { name: 'no path', target, patch: [{ op: 'add', value: 1 }], result: 'PATCH_INVALID' },
    { name: 'no from', target, patch: [{ op: 'copy', path: '/c' }], result: 'PATCH_INVALID' },
    { name: 'an item that is not an operation', target, patch: ['x'], result: 'PATCH_INVALID' },
    { name: 'an invalid index', target, patch: [{ op: 'add', path: '/a/b/x', value: 1 }], result: 'PATCH_NOT_APPLICABLE' },
    { name: 'a pointer without slash', target, patch: [{ op: 'add', path: 'a', value: 1 }], result: 'PATCH_NOT_APPLICABLE' },
  ])('$name', check('json', KUBELET_PATCH_SCHEMA));

  it('names the operation', () => {
    const patch = [
      { op: 'test', path: '/a', value: 1 },
      { op: 'remove', path: '/b' },
    ];
    expect(messageOf(() => applyPatch({ a: 1 }, patch, 'json', KUBELET_PATCH_SCHEMA))).toBe(
      'operation 2 (remove /b): b does not exist [PATCH_NOT_APPLICABLE]',
    );
  });
});

describe('strategic merge patches of a KubeletConfiguration', () => {
  const target = { maxPods: 110, syncFrequency: '1m0s', clusterDNS: ['a', 'b'], evictionHard: { x: '1', y: '2' } };

  it.each<Case>([
    {
      name: 'nothing is normalised or checked',
      target,
      patch: { syncFrequency: '60s', maxPods: 'many', foo: { bar: null, baz: 1 } },
      result: { ...target, syncFrequency: '60s', maxPods: 'many', foo: { baz: 1 } },
    },
    {
      name: 'null removes',
      target,
      patch: { maxPods: null, evictionHard: { x: null } },
      result: { syncFrequency: '1m0s', clusterDNS: ['a', 'b'], evictionHard: { y: '2' } },
    },
    { name: 'lists are replaced', target, patch: { clusterDNS: ['c'] }, result: { ...target, clusterDNS: ['c'] } },
    { name: 'null as a patch changes nothing', target, patch: null, result: target },
    {
      name: '$patch: replace',
      target,
      patch: { evictionHard: { $patch: 'replace', z: '3' } },
      result: { ...target, evictionHard: { z: '3' } },
    },
    { name: '$patch: replace of something new drops it', target, patch: { evictionSoft: { $patch: 'replace', z: '3' } }, result: target },
    { name: '$patch: delete empties', target, patch: { evictionHard: { $patch: 'delete' } }, result: { ...target, evictionHard: {} } },
    { name: '$patch: replace of everything', target, patch: { $patch: 'replace', a: 1 }, result: { a: 1 } },
    { name: '$patch: merge is invalid', target, patch: { evictionHard: { $patch: 'merge' } }, result: 'PATCH_INVALID' },
    {
      name: '$retainKeys',
      target,
      patch: { evictionHard: { $retainKeys: ['y', 'z'], z: '3' } },
      result: { ...target, evictionHard: { y: '2', z: '3' } },
    },
    {
      name: '$retainKeys without a field of the patch',
      target,
      patch: { evictionHard: { $retainKeys: ['y'], z: '3' } },
      result: 'PATCH_INVALID',
    },
    { name: '$retainKeys that is not a list', target, patch: { evictionHard: { $retainKeys: 'y' } }, result: 'PATCH_INVALID' },
    {
      name: '$deleteFromPrimitiveList',
      target,
      patch: { '$deleteFromPrimitiveList/clusterDNS': ['a'] },
      result: { ...target, clusterDNS: ['b'] },
    },
    { name: '$deleteFromPrimitiveList without name', target, patch: { $deleteFromPrimitiveList: ['a'] }, result: 'PATCH_INVALID' },
    {
      name: '$deleteFromPrimitiveList of a missing list',
      target,
      patch: { '$deleteFromPrimitiveList/foo': ['a'] },
      result: target,
    },
    {
      name: '$setElementOrder',
      target,
      patch: { '$setElementOrder/clusterDNS': ['b', 'a'] },
      result: { ...target, clusterDNS: ['b', 'a'] },
    },
    {
      name: '$setElementOrder with a list that contradicts it',
      target,
      patch: { '$setElementOrder/clusterDNS': ['b'], clusterDNS: ['b', 'c'] },
      result: 'PATCH_INVALID',
    },
    { name: 'a list is not a strategic patch', target, patch: ['a'], result: 'PATCH_INVALID' },
  ])('$name', check('strategic', KUBELET_PATCH_SCHEMA));
});

describe('strategic merge patches of a Pod', () => {
  const pod = (spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({ metadata, spec });
  const a = { name: 'a', image: '1', env: [{ name: 'X', value: '1' }], args: ['p'] };
  const b = { name: 'b', image: '1' };

  it.each<Case>([
    {
      name: 'containers by name, env by name, args replaced',
      target: pod({ containers: [a, b] }),
      patch: pod({ containers: [{ name: 'a', env: [{ name: 'Y' }, { name: 'X', value: '2' }], args: ['q'] }] }),
      result: pod({ containers: [{ name: 'a', image: '1', env: [{ name: 'Y' }, { name: 'X', value: '2' }], args: ['q'] }, b] }, {}),
    },
    { name: 'a new container', target: pod({ containers: [a] }), patch: pod({ containers: [b] }), result: pod({ containers: [b, a] }) },
    {
      name: 'a removed container',
      target: pod({ containers: [a, b] }),
      patch: pod({ containers: [{ name: 'a', $patch: 'delete' }] }),
      result: pod({ containers: [b] }),
    },
    {
      name: 'all containers replaced',
      target: pod({ containers: [a, b] }),
      patch: pod({ containers: [{ $patch: 'replace' }, { name: 'c' }] }),
      result: pod({ containers: [{ name: 'c' }] }),
    },
    {
      name: 'an item without its key',
      target: pod({ containers: [a] }),
      patch: pod({ containers: [{ image: '2' }] }),
      result: 'PATCH_INVALID',
    },
    {
      name: 'ports by containerPort',
      target: pod({ containers: [{ name: 'a', ports: [{ containerPort: 80 }] }] }),
      patch: pod({ containers: [{ name: 'a', ports: [{ containerPort: 80, name: 'http' }] }] }),
      result: pod({ containers: [{ name: 'a', ports: [{ containerPort: 80, name: 'http' }] }] }),
    },
    {
      name: 'volumeMounts by mountPath',
      target: pod({ containers: [{ name: 'a', volumeMounts: [{ mountPath: '/x', name: 'v' }] }] }),
      patch: pod({ containers: [{ name: 'a', volumeMounts: [{ mountPath: '/x', readOnly: true }] }] }),
      result: pod({ containers: [{ name: 'a', volumeMounts: [{ mountPath: '/x', name: 'v', readOnly: true }] }] }),
    },
    {
      name: 'tolerations replaced',
      target: pod({ tolerations: [{ key: 'a' }] }),
      patch: pod({ tolerations: [{ key: 'b' }] }),
      result: pod({ tolerations: [{ key: 'b' }] }),
    },
    {
      name: 'finalizers as a set',
      target: pod({}, { finalizers: ['x', 'y'] }),
      patch: pod({}, { finalizers: ['y', 'z'], labels: { a: 'b' } }),
      result: pod({}, { finalizers: ['x', 'y', 'z'], labels: { a: 'b' } }),
    },
    {
      name: 'kubectl: one container gone, one new, in order',
      target: pod({ containers: [a, b] }),
      patch: pod({
        '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }],
        containers: [{ name: 'c' }, { name: 'a', $patch: 'delete' }],
      }),
      result: pod({ containers: [{ name: 'c' }, b] }),
    },
    {
      name: 'an order of objects without merge key',
      target: pod({ tolerations: [{ key: 'a' }] }),
      patch: pod({ '$setElementOrder/tolerations': [], tolerations: [] }),
      result: 'PATCH_NOT_APPLICABLE',
    },
  ])('$name', check('strategic', patchSchemaOf('Pod')));
});

describe('strategic merge patches of other kinds', () => {
  it.each<Case & { readonly kind: string }>([
    {
      kind: 'Node',
      name: 'conditions by type',
      target: { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
      patch: { status: { conditions: [{ type: 'Ready', status: 'True' }, { type: 'PIDPressure' }] } },
      result: { status: { conditions: [{ type: 'Ready', status: 'True' }, { type: 'PIDPressure' }] } },
    },
    {
      kind: 'Node',
      name: 'addresses by type',
      target: { status: { addresses: [{ type: 'InternalIP', address: '1' }] } },
      patch: { status: { addresses: [{ type: 'InternalIP', address: '2' }] } },
      result: { status: { addresses: [{ type: 'InternalIP', address: '2' }] } },
    },
    {
      kind: 'Node',
      name: 'taints replaced',
      target: { spec: { taints: [{ key: 'a' }] } },
      patch: { spec: { taints: [{ key: 'b' }] } },
      result: { spec: { taints: [{ key: 'b' }] } },
    },
    {
      kind: 'ConfigMap',
      name: 'data merged',
      target: { data: { a: '1', b: '2' } },
      patch: { data: { b: null, c: '3' } },
      result: { data: { a: '1', c: '3' } },
    },
    {
      kind: 'Deployment',
      name: 'containers of the template',
      target: { spec: { template: { spec: { containers: [{ name: 'a', image: '1' }] } } } },
      patch: { spec: { template: { spec: { containers: [{ name: 'a', image: '2' }] } } } },
      result: { spec: { template: { spec: { containers: [{ name: 'a', image: '2' }] } } } },
    },
    {
      kind: 'Service',
      name: 'ports by port',
      target: { spec: { ports: [{ port: 80 }] } },
      patch: { spec: { ports: [{ port: 81 }] } },
      result: { spec: { ports: [{ port: 81 }, { port: 80 }] } },
    },
    {
      kind: 'ServiceAccount',
      name: 'secrets by name',
      target: { secrets: [{ name: 'a' }] },
      patch: { secrets: [{ name: 'a', $patch: 'delete' }] },
      result: { secrets: [] },
    },
  ])('$kind: $name', ({ kind, ...row }) => check('strategic', patchSchemaOf(kind))(row));
});

describe('applyPatch', () => {
  it.each<PatchType>(['strategic', 'merge', 'json'])('treats keys of Object.prototype as data (%s)', (type) => {
    const patch = type === 'json' ? [{ op: 'add', path: '/__proto__', value: { x: 1 } }] : (JSON.parse('{"__proto__": {"x": 1}}') as Json);
    const result = applyPatch({ a: 1 }, patch, type, KUBELET_PATCH_SCHEMA);
    expect(Object.getPrototypeOf(result)).toBeNull();
    expect(Object.keys(result)).toEqual(['a', '__proto__']);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });
});
