import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  ASSIGNED_BY_ANNOTATION,
  assignedAt,
  describeNodeSource,
  formatAssignedBy,
  type HostSource,
  resolveNodeSource,
} from '../../../src/kubelet/effective/node-source.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  formatIdentity,
  formatSourceAnnotation,
} from '../../../src/kubelet/layers/config-source.ts';

const A = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet' };
const IN_A = { ...A, uid: 'u1', resourceVersion: '1' };
const IN_B = { ...A, name: 'b', uid: 'u2', resourceVersion: '2' };
const B = { ...A, name: 'b' };
const node = (annotations: Readonly<Record<string, string>>, status: JsonObject = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', annotations },
  status,
});
const agentReports = (active: typeof IN_A | null): KubeObject =>
  node({ [CONFIG_STATUS_ANNOTATION]: JSON.stringify(active === null ? {} : { active: formatIdentity(active) }) });
const kubeletReports = (config: JsonObject): KubeObject => node({}, { nodeInfo: { kubeletVersion: 'v1.21.0' }, config });
const FILE: HostSource = { kind: 'file', dropIns: 0 };
const NATIVE: HostSource = { kind: 'native', candidates: [IN_A, IN_B], dropIns: 0 };
const UNKNOWN: HostSource = { kind: 'unknown', why: 'not observed' };

describe('the source of a kubelet', () => {
  it.each<[string, HostSource, KubeObject | null, ReturnType<typeof resolveNodeSource>]>([
    ['the process runs the file, the Node reports a ConfigMap', FILE, agentReports(IN_A), { kind: 'file', dropIns: 0 }],
    [
      'the process runs a ConfigMap, the Node reports another one',
      { kind: 'config-map', source: A, dropIns: 1 },
      agentReports(IN_B),
      { kind: 'config-map', source: A, dropIns: 1 },
    ],
    ['the host shows nothing, the Node reports a ConfigMap', UNKNOWN, agentReports(IN_A), { kind: 'config-map', source: A, dropIns: 0 }],
    ['the host shows nothing, the Node reports the file', UNKNOWN, agentReports(null), { kind: 'unknown', why: 'not observed' }],
    ['nothing is known', UNKNOWN, null, { kind: 'unknown', why: 'not observed' }],
    ['no kubelet runs', { kind: 'none' }, agentReports(IN_A), null],
    ['native, the Node was not read', NATIVE, null, { kind: 'config-map', source: A, dropIns: 0 }],
    [
      'native, rolled back to the last known good configuration',
      NATIVE,
      kubeletReports({ active: formatIdentity(IN_B) }),
      { kind: 'config-map', source: B, dropIns: 0 },
    ],
    [
      'native, the assignment could not be loaded',
      NATIVE,
      kubeletReports({ assigned: formatIdentity(IN_A), error: 'failed to load config' }),
      { kind: 'file', dropIns: 0 },
    ],
  ])('%s', (_, host, registered, source) => {
    expect(resolveNodeSource(host, registered)).toEqual(source);
  });

  it('is a short text', () => {
    expect(describeNodeSource({ kind: 'file', dropIns: 0 })).toBe('file');
    expect(describeNodeSource({ kind: 'file', dropIns: 2 })).toBe('file + 2 drop-ins');
    expect(describeNodeSource({ kind: 'config-map', source: A, dropIns: 1 })).toBe('kube-system/a + 1 drop-in');
    expect(describeNodeSource({ kind: 'unknown', why: 'not observed' })).toBe('unknown');
  });

  it('has the time of its assignment only while the Node still has this assignment', () => {
    const by = formatAssignedBy(A, { by: 'alice', at: new Date('2030-01-01T00:00:00Z') });
    const assigned = node({ [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation(A), [ASSIGNED_BY_ANNOTATION]: by });
    expect(assignedAt(assigned, A)?.toISOString()).toBe('2030-01-01T00:00:00.000Z');
    expect(assignedAt(assigned, B)).toBeNull();
    expect(assignedAt(node({ [ASSIGNED_BY_ANNOTATION]: by }), A)).toBeNull();
    expect(assignedAt(null, A)).toBeNull();
  });
});
