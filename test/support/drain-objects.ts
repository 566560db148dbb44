import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';

/** Objects for tests of drains, which fakeCluster accepts. */

export function drainNode(
  name: string,
  { labels = {}, taints = [], unschedulable, allocatable = {} }: Partial<NodeParts> = {},
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    spec: { ...(taints.length === 0 ? {} : { taints }), ...(unschedulable === undefined ? {} : { unschedulable }) },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      allocatable: { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '20Gi', ...allocatable },
    },
  };
}

interface NodeParts {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly JsonObject[];
  readonly unschedulable: boolean;
  readonly allocatable: JsonObject;
}

interface PodParts {
  /** Kind and name of the controller, e.g. `ReplicaSet/web`; null: none. */
  readonly of: string | null;
  readonly app: string;
  readonly namespace: string;
  readonly isReady: boolean;
  readonly phase: string;
  readonly requests: JsonObject;
  readonly spec: JsonObject;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A running and Ready pod of ReplicaSet web with the label `app: web`. */
export function drainPod(name: string, node: string, parts: Partial<PodParts> = {}): KubeObject {
  const { of = 'ReplicaSet/web', app = 'web', namespace = 'default', isReady = true, phase = 'Running', requests = {}, spec = {} } = parts;
  const [kind = '', owner = ''] = of?.split('/') ?? [];
  const apiVersion = kind === 'Cluster' ? 'postgresql.cnpg.io/v1' : kind === 'Job' ? 'batch/v1' : 'apps/v1';
  const owners = of === null ? {} : { ownerReferences: [{ apiVersion, kind, name: owner, uid: uidOf(of), controller: true }] };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app }, annotations: parts.annotations ?? {}, ...owners },
    spec: { nodeName: node, containers: [{ name: 'main', image: 'example.org/main:1', resources: { requests } }], ...spec },
    status: { phase, conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  };
}

function uidOf(owner: string): string {
  return `uid-of-${owner.toLowerCase().replace('/', '-')}`;
}

export function scaled(of: string, replicas: number, namespace = 'default'): KubeObject {
  const [kind = '', name = ''] = of.split('/');
  return { apiVersion: 'apps/v1', kind, metadata: { name, namespace, uid: uidOf(of) }, spec: { replicas } };
}

/** A PodDisruptionBudget of the pods with a label `app`. */
export function drainBudget(name: string, app: string, spec: JsonObject, namespace = 'default'): KubeObject {
  const metadata = { name, namespace };
  return { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { selector: { matchLabels: { app } }, ...spec } };
}
