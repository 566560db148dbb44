import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { ASSIGNED_BY_ANNOTATION, formatAssignedBy, readAssigner } from '../../../src/kubelet/effective/node-source.ts';

const AT = new Date('2030-01-01T00:00:00Z');
const A = { namespace: 'ns', name: 'a', kubeletConfigKey: 'kubelet' };
const B = { ...A, name: 'b' };
const node = (metadata: object): KubeObject => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', ...metadata } });
const marked = (text: string) => ({ annotations: { [ASSIGNED_BY_ANNOTATION]: text } });
const managed = (manager: string, time: string, fieldsV1: object) => ({ manager, operation: 'Update', time, fieldsV1 });

describe('the operator that assigned the configuration of a node', () => {
  it('is read from the annotation if that names this assignment', () => {
    const text = formatAssignedBy(A, { by: 'alice@ws1', at: AT });
    expect(readAssigner(node(marked(text)), A)).toEqual({ by: 'alice@ws1', at: AT, reason: null });
    expect(readAssigner(node(marked(text)), B)).toBeNull();
    expect(readAssigner(node(marked(text)), null)).toBeNull();
    expect(readAssigner(node(marked(formatAssignedBy(null, { by: 'alice@ws1', at: AT }))), null)).toEqual({
      by: 'alice@ws1',
      at: AT,
      reason: null,
    });
    const withReason = formatAssignedBy(A, { by: 'alice@ws1', at: AT, reason: 'OPS-1' });
    expect(readAssigner(node(marked(withReason)), A)).toEqual({ by: 'alice@ws1', at: AT, reason: 'OPS-1' });
  });

  it('is otherwise the last manager of the field', () => {
    const managedFields = [
      managed('kubelet', '2030-01-01T00:09:00Z', { 'f:status': { 'f:config': {} } }),
      managed('kubectl-edit', '2030-01-01T00:00:00Z', { 'f:spec': { 'f:configSource': { 'f:configMap': {} } } }),
      managed('kubectl-patch', '2030-01-01T00:05:00Z', { 'f:spec': { 'f:configSource': { 'f:configMap': { 'f:name': {} } } } }),
    ];
    const found = readAssigner(node({ managedFields, ...marked(formatAssignedBy(A, { by: 'alice@ws1', at: AT })) }), B);
    expect(found).toEqual({ by: 'manager kubectl-patch', at: new Date('2030-01-01T00:05:00Z'), reason: null });
    const fields = { 'f:metadata': { 'f:annotations': { 'f:kubeletadm.dev/config-source': {} } } };
    expect(readAssigner(node({ managedFields: [managed('x', 'never', fields)] }), B)).toEqual({
      by: 'manager x',
      at: null,
      reason: null,
    });
  });

  it.each(['', '[]', '{', '{"by":1}', '{"source":"ns/a/kubelet"}'])('is unknown with the annotation %s', (text) => {
    expect(readAssigner(node(marked(text)), A)).toBeNull();
    expect(readAssigner(node({ managedFields: 'x' }), A)).toBeNull();
  });
});
