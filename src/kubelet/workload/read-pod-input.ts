import { unlessRefused } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { isTrue, listAt, objectAt, objectsAt, textAt, valueAt } from '../documents/values.ts';
import { ALIGNMENT_FIELDS, wantsFullCores } from './alignment-risks.ts';
import { drainKind } from './drain-kind.ts';
import { IMAGE_POLICY } from './image-risks.ts';
import { amountsOf, containersOf, isProbe, podFeatures, podsOfNode, readPod } from './pod.ts';
import { affects } from './pod-risk.ts';
import type { NodeOffer, RiskChange, RiskInput, RiskPod } from './risk-input.ts';

/** The pods and the resources of a node, and the DNS Services of the cluster. */
export interface PodInput extends Pick<RiskInput, 'pods' | 'node' | 'dnsServices'> {
  /** UIDs of the pods that a drain evicts before the change; they are not among `pods`. */
  readonly evicted: readonly string[];
}

/** Fields whose effect depends on the pods or the resources of the node. */
const POD_FIELDS = [
  'podsPerCore',
  'kubeReserved',
  'systemReserved',
  'reservedSystemCPUs',
  'evictionHard',
  'evictionSoft',
  'evictionSoftGracePeriod',
  'mergeDefaultEvictionSettings',
  'staticPodPath',
  'staticPodURL',
  'podPidsLimit',
  'allowedUnsafeSysctls',
  'featureGates',
  'userNamespaces',
  'containerRuntimeEndpoint',
  ...ALIGNMENT_FIELDS,
  ...IMAGE_POLICY,
];

/**
 * Reads from the API server what a change depends on: at most three requests, none for changes that affect no
 * pods. What may not be read or is unreachable is unknown (null).
 * @param options.services reads the DNS Services, which several nodes can share
 * @param options.isDrained whether the node is drained before the change; called if it has pods that a drain evicts
 */
export async function readPodInput(
  cluster: Cluster,
  nodeName: string,
  change: RiskChange,
  { services = () => readDnsServices(cluster), isDrained = async () => false }: PodInputOptions = {},
): Promise<PodInput> {
  const needsPods = lowersPodLimit(change) || affects(change, POD_FIELDS) || wantsFullCores(change.after);
  const [{ pods, evicted }, node, dnsServices] = await Promise.all([
    needsPods ? readPods(cluster, nodeName, isDrained) : NO_PODS,
    needsPods ? unlessRefused(cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) : null,
    affects(change, ['clusterDNS']) ? services() : null,
  ]);
  return { pods, evicted, node: node === null ? null : offerOf(node), dnsServices };
}

interface PodInputOptions {
  readonly services?: () => Promise<PodInput['dnsServices']>;
  readonly isDrained?: (() => Promise<boolean>) | undefined;
}

const NO_PODS: Pick<PodInput, 'pods' | 'evicted'> = { pods: null, evicted: [] };

/** A higher limit ends no pods, so that large fleets need no requests for it. */
function lowersPodLimit(change: RiskChange): boolean {
  const [before, after] = [change.before?.maxPods, change.after.maxPods];
  return affects(change, ['maxPods']) && !(typeof before === 'number' && typeof after === 'number' && after > before);
}

async function readPods(
  cluster: Cluster,
  nodeName: string,
  isDrained: () => Promise<boolean>,
): Promise<Pick<PodInput, 'pods' | 'evicted'>> {
  const found = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(nodeName) }));
  // An API server that ignores the selector also returns the pods of other nodes.
  const own = found?.items.filter((pod) => valueAt(pod, 'spec.nodeName') === nodeName && !isProbe(pod)) ?? null;
  if (own === null) return NO_PODS;
  const evictable = own.filter((pod) => drainKind(pod) === 'evictable');
  if (evictable.length === 0 || !(await isDrained())) return { pods: own.map(readRiskPod), evicted: [] };
  return {
    pods: own.filter((pod) => !evictable.includes(pod)).map(readRiskPod),
    evicted: evictable.flatMap(({ metadata }) => metadata.uid ?? []),
  };
}

/** Reads the cluster addresses of the Services with port 53 in kube-system; null: unknown. */
export async function readDnsServices(cluster: Cluster): Promise<readonly string[] | null> {
  const found = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Service', namespace: KUBE_SYSTEM }));
  return found?.items.flatMap((service) => addressesOf(objectAt(service, 'spec'))) ?? null;
}

function addressesOf(spec: JsonObject): readonly string[] {
  const isDns = objectsAt(spec, 'ports').some(({ port }) => port === 53);
  const all = [spec.clusterIP, ...listAt(spec, 'clusterIPs')];
  return isDns ? [...new Set(all.filter((address) => typeof address === 'string'))] : [];
}

/** Reads a Pod with the values that admission needs. */
function readRiskPod(object: KubeObject): RiskPod {
  const spec = objectAt(object, 'spec');
  return {
    ...readPod(object),
    priority: typeof spec.priority === 'number' ? spec.priority : 0,
    sysctls: objectsAt(spec, 'securityContext.sysctls').flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    features: podFeatures(spec),
    exclusiveCpus: textAt(object, 'status.qosClass') === 'Guaranteed' ? exclusiveCpusOf(spec) : undefined,
    images: imagesOf(spec),
  };
}

/** Of containers that request an integer of CPUs; undefined: the managers of the kubelet ignore pods with resources of their own. */
function exclusiveCpusOf(spec: JsonObject): readonly number[] | undefined {
  if (podFeatures(spec).includes('PodLevelResources')) return undefined;
  return containersOf(spec).flatMap((container) => {
    const cpus = amountsOf(objectAt(container, 'resources.requests')).cpuMillis / 1000;
    return cpus > 0 && Number.isInteger(cpus) ? [cpus] : [];
  });
}

function imagesOf(spec: JsonObject): NonNullable<RiskPod['images']> {
  return containersOf(spec).flatMap(({ image, imagePullPolicy }) =>
    typeof image === 'string' ? [{ image, pullPolicy: typeof imagePullPolicy === 'string' ? imagePullPolicy : 'IfNotPresent' }] : [],
  );
}

/** What a Node offers; null: its kubelet has reported nothing. */
function offerOf(node: KubeObject): NodeOffer | null {
  const { capacity, allocatable, runtimeHandlers } = objectAt(node, 'status');
  if (!isJsonObject(capacity) || !isJsonObject(allocatable)) return null;
  const pods = Number(allocatable.pods);
  return {
    capacity: amountsOf(capacity),
    allocatable: amountsOf(allocatable),
    pods: Number.isInteger(pods) ? pods : null,
    hasUserNamespaces: Array.isArray(runtimeHandlers)
      ? runtimeHandlers.some((handler) => isJsonObject(handler) && isTrue(handler, 'features.userNamespaces'))
      : undefined,
    declaredFeatures: listAt(node, 'status.declaredFeatures').filter((name) => typeof name === 'string'),
  };
}
