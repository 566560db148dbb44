import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { Json, JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { itemsOf, memberOf, textOf, textsOf } from '../api-server/members.ts';
import { timestamp } from '../api-server/timestamp.ts';
import type { Refusal } from './stand-in-admission.ts';

const HASH = 'kubernetes.io/config.hash';
const MIRROR = 'kubernetes.io/config.mirror';

/** The hash of the file of a static pod or of its mirror pod; empty for other pods. */
export function staticHash({ metadata }: KubeObject): string {
  return metadata.annotations?.[HASH] ?? '';
}

/**
 * The mirror pod of a static pod.
 * @param manifest the Pod in the file
 * @see kubernetes/kubernetes pkg/kubelet/config/common.go, pkg/kubelet/pod/mirror_client.go (1.36)
 */
export function mirrorPod(
  manifest: JsonObject,
  { path, nodeName, nodeUid }: { readonly path: string; readonly nodeName: string; readonly nodeUid: string },
): KubeObject {
  const metadata = memberOf(manifest, 'metadata');
  const spec = memberOf(manifest, 'spec');
  const hash = createHash('md5')
    .update(`host:${nodeName}file:${path}${JSON.stringify(manifest)}`)
    .digest('hex');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${textOf(metadata, 'name')}-${nodeName.toLowerCase()}`,
      namespace: textOf(metadata, 'namespace') || 'default',
      labels: memberOf(metadata, 'labels') as Readonly<Record<string, string>>,
      annotations: {
        ...(memberOf(metadata, 'annotations') as Readonly<Record<string, string>>),
        [HASH]: hash,
        [MIRROR]: hash,
        'kubernetes.io/config.source': 'file',
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeUid, controller: true }],
    },
    spec: {
      ...spec,
      nodeName,
      tolerations: [...itemsOf(spec, 'tolerations'), { effect: 'NoExecute', operator: 'Exists' }],
    },
  };
}

/** How a kubelet starts the containers of a new pod. */
export type PodStart =
  | { readonly kind: 'running' }
  | { readonly kind: 'no-sandbox'; readonly why: string }
  | { readonly kind: 'no-image'; readonly why: string }
  | { readonly kind: 'no-container'; readonly why: string };

/** Threads of a container's first process and its runtime: with fewer, the container does not start. */
const FEWEST_PIDS = 16;

/** No registry has a name of this top-level domain (RFC 2606). */
const NO_REGISTRY = /^[^/]+\.invalid(?::\d+)?\//;

/**
 * How a kubelet with this configuration starts the containers of a new pod.
 * @param exists whether the host has a file
 */
export function podStart(pod: KubeObject, config: JsonObject, exists: (path: string) => boolean): PodStart {
  const resolvConf = textOf(config, 'resolvConf');
  if (resolvConf !== '' && !exists(resolvConf)) return { kind: 'no-sandbox', why: `open ${resolvConf}: no such file or directory` };
  const images = itemsOf(memberOf(pod, 'spec'), 'containers').map((container) => textOf(container, 'image'));
  const missing = images.find((image) => NO_REGISTRY.test(image));
  if (missing !== undefined) return { kind: 'no-image', why: `Back-off pulling image "${missing}"` };
  const { podPidsLimit } = config;
  if (typeof podPidsLimit === 'number' && podPidsLimit > 0 && podPidsLimit < FEWEST_PIDS)
    return { kind: 'no-container', why: 'failed to create task: OCI runtime create failed: resource temporarily unavailable' };
  return { kind: 'running' };
}

/** The Event of a new pod whose containers would use the cluster's DNS; null: the kubelet knows its address. */
export function missingClusterDns(pod: KubeObject, config: JsonObject): Refusal | null {
  const { dnsPolicy = 'ClusterFirst', hostNetwork } = memberOf(pod, 'spec');
  const usesCluster = dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && hostNetwork !== true);
  if (!usesCluster || textsOf(config, 'clusterDNS').some((address) => isIP(address) !== 0)) return null;
  const { name, namespace, uid } = pod.metadata;
  const why =
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.';
  return { reason: 'MissingClusterDNS', message: `pod: "${name}_${namespace}(${uid})". ${why}` };
}

/** A pod whose status is written. */
export interface StatusInput {
  readonly pod: KubeObject;
  readonly now: Date;
  readonly hostIp: string;
  readonly podIp: string;
}

/** The status of a new pod after the start of its containers. */
export function startedStatus({ pod, now, hostIp, podIp }: StatusInput, start: PodStart): JsonObject {
  const time = timestamp(now);
  const isRunning = start.kind === 'running';
  const containers = itemsOf(memberOf(pod, 'spec'), 'containers');
  const names = containers.map((container) => textOf(container, 'name'));
  const unready = { reason: 'ContainersNotReady', message: `containers with unready status: [${names.join(' ')}]` };
  const condition = (type: string, is: boolean, more: JsonObject = {}): JsonObject => ({
    type,
    status: is ? 'True' : 'False',
    lastProbeTime: null,
    lastTransitionTime: time,
    ...(is ? {} : more),
  });
  const ip = memberOf(pod, 'spec').hostNetwork === true ? hostIp : podIp;
  return {
    phase: isRunning ? 'Running' : 'Pending',
    startTime: time,
    hostIP: hostIp,
    hostIPs: [{ ip: hostIp }],
    ...(start.kind === 'no-sandbox' ? {} : { podIP: ip, podIPs: [{ ip }] }),
    conditions: [
      condition('PodReadyToStartContainers', start.kind !== 'no-sandbox'),
      condition('Initialized', true),
      condition('Ready', isRunning, unready),
      condition('ContainersReady', isRunning, unready),
      condition('PodScheduled', true),
    ],
    containerStatuses: containers.map((container) => ({
      name: textOf(container, 'name'),
      image: textOf(container, 'image'),
      imageID: '',
      ready: isRunning,
      started: isRunning,
      restartCount: 0,
      state: containerState(start, time),
      lastState: {},
    })),
  };
}

function containerState(start: PodStart, startedAt: string): JsonObject {
  if (start.kind === 'running') return { running: { startedAt } };
  if (start.kind === 'no-sandbox') return { waiting: { reason: 'ContainerCreating' } };
  return { waiting: { reason: start.kind === 'no-image' ? 'ImagePullBackOff' : 'RunContainerError', message: start.why } };
}

/** The status of a pod that the kubelet ends or does not admit. */
export function failedStatus({ pod, now }: Pick<StatusInput, 'pod' | 'now'>, { reason, message }: Refusal): JsonObject {
  const startTime: Json = memberOf(pod, 'status').startTime ?? timestamp(now);
  return { phase: 'Failed', reason, message, startTime, conditions: null, containerStatuses: null };
}

/** An Event about a pod. Events about a static pod have the hash of its file as uid. */
export function podEvent(
  pod: KubeObject,
  { reason, message }: Refusal,
  { nodeName, now }: { readonly nodeName: string; readonly now: Date },
): KubeObject {
  const { name, namespace = 'default', uid = '' } = pod.metadata;
  const time = timestamp(now);
  const id = createHash('sha256').update(`${uid}${reason}${now.toISOString()}`).digest('hex').slice(0, 16);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${id}`, namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid: staticHash(pod) || uid },
    type: 'Warning',
    reason,
    message,
    source: { component: 'kubelet', host: nodeName },
    reportingComponent: 'kubelet',
    reportingInstance: nodeName,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}
