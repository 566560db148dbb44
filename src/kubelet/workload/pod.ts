import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';
import type { KubeObject } from '../../kube/object.ts';
import { entriesAt, objectAt, objectsAt, textAt, valueAt } from '../documents/values.ts';

/** Amounts that a pod requests, or that a node offers. */
export interface Amounts {
  readonly cpuMillis: number;
  readonly memoryBytes: number;
  readonly ephemeralBytes: number;
}

/** A pod of a node, as the API server shows it. */
export interface NodePod {
  readonly uid: string;
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  /** Started from a file on the node; the API server shows a mirror pod. */
  readonly isStatic: boolean;
  /** `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`. */
  readonly phase: string;
  /** The kubelet's reason for the phase, for example `OutOfpods`; empty: none. */
  readonly reason: string;
  readonly message: string;
  readonly isReady: boolean;
  /** Deleted, and being stopped. */
  readonly isTerminating: boolean;
  /** In RFC 3339. */
  readonly createdAt: string;
  /** The pod requests as the scheduler and the kubelet count them. */
  readonly requests: Amounts;
  /** Containers that wait for their start, with the kubelet's reason (`RunContainerError`, ...). */
  readonly waiting: readonly { readonly name: string; readonly reason: string; readonly message: string }[];
}

/** Label of probe pods: those of a run over SSH and of an agent. */
export const PROBE_LABEL = 'kubeletadm.dev/probe';
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Reads a Pod. Unexpected values count as absent. */
export function readPod(pod: KubeObject): NodePod {
  const { metadata } = pod;
  const containers = [...objectsAt(pod, 'status.initContainerStatuses'), ...objectsAt(pod, 'status.containerStatuses')];
  return {
    uid: metadata.uid ?? '',
    name: `${metadata.namespace ?? ''}/${metadata.name}`,
    isStatic: metadata.annotations?.[MIRROR_ANNOTATION] !== undefined,
    phase: textAt(pod, 'status.phase'),
    reason: textAt(pod, 'status.reason'),
    message: textAt(pod, 'status.message'),
    isReady: objectsAt(pod, 'status.conditions').some(({ type, status }) => type === 'Ready' && status === 'True'),
    isTerminating: metadata.deletionTimestamp !== undefined,
    createdAt: metadata.creationTimestamp ?? '',
    requests: requestsOf(objectAt(pod, 'spec')),
    waiting: containers.flatMap((container) => {
      const waiting = valueAt(container, 'state.waiting');
      if (!isJsonObject(waiting)) return [];
      return [{ name: textAt(container, 'name'), reason: textAt(waiting, 'reason'), message: textAt(waiting, 'message') }];
    }),
  };
}

/** Whether the pod occupies its node: it has not ended. */
export function isActive({ phase }: Pick<NodePod, 'phase'>): boolean {
  return phase !== 'Succeeded' && phase !== 'Failed';
}

/** Whether the pod is a probe pod, of any run or of an agent. */
export function isProbe({ metadata }: KubeObject): boolean {
  return metadata.labels?.[PROBE_LABEL] === 'true';
}

/** Field selector of the pods of a node; the Node authorizer allows a kubelet's credential only these. */
export function podsOfNode(nodeName: string): string {
  return `spec.nodeName=${nodeName}`;
}

const NONE: Amounts = { cpuMillis: 0, memoryBytes: 0, ephemeralBytes: 0 };

/**
 * The requests of a pod: the sum of its containers and sidecars, at least those of each init container, plus
 * the overhead of its runtime class.
 * @see k8s.io/component-helpers resource (1.36) PodRequests
 */
function requestsOf(spec: JsonObject): Amounts {
  let running = objectsAt(spec, 'containers').map(containerRequests).reduce(sum, NONE);
  let starting = NONE;
  let sidecars = NONE;
  for (const container of objectsAt(spec, 'initContainers')) {
    const own = containerRequests(container);
    if (container.restartPolicy === 'Always') {
      running = sum(running, own);
      sidecars = sum(sidecars, own);
      starting = largest(starting, sidecars);
    } else starting = largest(starting, sum(sidecars, own));
  }
  const podLevel = objectAt(spec, 'resources.requests');
  const total = { ...largest(running, starting) };
  if ('cpu' in podLevel) total.cpuMillis = amountsOf(podLevel).cpuMillis;
  if ('memory' in podLevel) total.memoryBytes = amountsOf(podLevel).memoryBytes;
  return sum(total, amountsOf(objectAt(spec, 'overhead')));
}

function containerRequests(container: JsonObject): Amounts {
  return amountsOf(objectAt(container, 'resources.requests'));
}

/** Reads a resource list, for example `status.capacity` of a Node. */
export function amountsOf(resources: JsonObject): Amounts {
  return {
    cpuMillis: amount(resources.cpu, 1000),
    memoryBytes: amount(resources.memory, 1),
    ephemeralBytes: amount(resources['ephemeral-storage'], 1),
  };
}

function amount(value: unknown, factor: 1 | 1000): number {
  if (typeof value !== 'string' && typeof value !== 'number') return 0;
  const quantity = parseQuantity(String(value));
  if (quantity === null) return 0;
  return Number(quantityValue(factor === 1 ? quantity : { ...quantity, scale: quantity.scale - 3 }));
}

function sum(a: Amounts, b: Amounts): Amounts {
  return {
    cpuMillis: a.cpuMillis + b.cpuMillis,
    memoryBytes: a.memoryBytes + b.memoryBytes,
    ephemeralBytes: a.ephemeralBytes + b.ephemeralBytes,
  };
}

function largest(a: Amounts, b: Amounts): Amounts {
  return {
    cpuMillis: Math.max(a.cpuMillis, b.cpuMillis),
    memoryBytes: Math.max(a.memoryBytes, b.memoryBytes),
    ephemeralBytes: Math.max(a.ephemeralBytes, b.ephemeralBytes),
  };
}

/** A feature that pods use. */
export interface PodFeature {
  /** `pods with ...`. */
  readonly of: string;
  /** The reason of the kubelet for a rejected pod; null: the pod runs on, but its containers cannot be started again. */
  readonly rejectedAs: string | null;
}

/**
 * The features that a kubelet needs for a pod, by their gate. A Node declares a feature under the name of its gate.
 * @see k8s.io/component-helpers nodedeclaredfeatures/features, pkg/kubelet/lifecycle/handlers.go
 *   declaredFeaturesAdmitHandler, features_linux.go isPodLevelResourcesSupported, pkg/kubelet/userns
 *   GetOrCreateUserNamespaceMappings (1.36)
 */
export const POD_FEATURES = {
  RestartAllContainersOnContainerExits: { of: 'a restart rule RestartAllContainers', rejectedAs: 'PodFeatureUnsupported' },
  UserNamespacesHostNetworkSupport: { of: 'hostUsers: false and hostNetwork: true', rejectedAs: 'PodFeatureUnsupported' },
  PodLevelResources: { of: 'resources of the pod', rejectedAs: 'PodLevelResourcesNotSupported' },
  UserNamespacesSupport: { of: 'hostUsers: false', rejectedAs: null },
} as const satisfies Readonly<Record<string, PodFeature>>;

export type PodFeatureGate = keyof typeof POD_FEATURES;

/** The containers of a `spec`, those of its initialization first. */
export function containersOf(spec: JsonObject): readonly JsonObject[] {
  return [...objectsAt(spec, 'initContainers'), ...objectsAt(spec, 'containers')];
}

/** The features that a pod with this `spec` needs. */
export function podFeatures(spec: JsonObject): readonly PodFeatureGate[] {
  const { hostUsers, hostNetwork } = spec;
  const restartsAll = containersOf(spec).some((one) =>
    objectsAt(one, 'restartPolicyRules').some(({ action }) => action === 'RestartAllContainers'),
  );
  const isSet = (path: string): boolean => entriesAt(spec, path).length > 0;
  const needs: Readonly<Record<PodFeatureGate, boolean>> = {
    RestartAllContainersOnContainerExits: restartsAll,
    UserNamespacesHostNetworkSupport: hostUsers === false && hostNetwork === true,
    PodLevelResources: isSet('resources.requests') || isSet('resources.limits'),
    UserNamespacesSupport: hostUsers === false,
  };
  return (Object.keys(needs) as PodFeatureGate[]).filter((gate) => needs[gate]);
}
