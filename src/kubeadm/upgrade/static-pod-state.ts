import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { printable } from '../../base/text/printable.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readYaml } from '../../kube/same-yaml.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { objectAt, objectOf, objectsAt, valueAt } from '../../kubelet/documents/values.ts';
import type { EnvVar } from '../config/model.ts';
import { splitHostPort } from '../config/rules.ts';
import { commandOf, flagValue } from '../control-plane/component-endpoints.ts';
import { imageTag } from '../control-plane/images.ts';
import { manifestPath, type StaticPodName } from '../control-plane/paths.ts';

/** The static Pods of Kubernetes itself, which every control plane has. */
export const KUBERNETES_COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

/** The error for manifests of `KUBERNETES_COMPONENTS` that do not exist; null: all exist. */
export function missingManifests(exists: (path: string) => boolean): { readonly message: string; readonly hint: string } | null {
  const missing = KUBERNETES_COMPONENTS.map(manifestPath).filter((path) => !exists(path));
  if (missing.length === 0) return null;
  return { message: `static Pod manifests do not exist: ${missing.join(', ')}`, hint: 'Run the command for a control plane host' };
}

/** Annotation of mirror Pods: the kubelet's hash of the static Pod. */
const HASH_ANNOTATION = 'kubernetes.io/config.hash';

/** The mirror Pod of a static Pod. */
export function mirrorPodRef(component: StaticPodName, nodeName: string) {
  return { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM, name: `${component}-${nodeName}` } as const;
}

/** The parts of a mirror Pod that show which manifest it runs, and whether it works. */
export type MirrorPod = NonNullable<ReturnType<typeof readMirrorPod>>;

/** @param pod null: the Pod does not exist */
export function readMirrorPod(pod: KubeObject | null, component: StaticPodName) {
  if (pod === null) return null;
  const status = objectOf(pod.status);
  const container = named(status, 'containerStatuses', component);
  const conditions = objectsAt(status, 'conditions');
  const isReady = conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');
  const isRunning = status.phase === 'Running' && container.ready === true && isJsonObject(valueAt(container, 'state.running'));
  return {
    /** Changes with every change of the manifest. */
    hash: pod.metadata.annotations?.[HASH_ANNOTATION] ?? null,
    image: imageOf(named(pod as JsonObject, 'spec.containers', component)),
    isReady: isReady && isRunning,
    /** Of the container, for messages: `running`, `CrashLoopBackOff, 4 restarts`. */
    state: stateOf(container, typeof status.phase === 'string' ? status.phase : 'Pending'),
  };
}

function stateOf({ state, restartCount }: JsonObject, phase: string): string {
  const { waiting, terminated, running } = objectOf(state);
  const restarts = typeof restartCount === 'number' && restartCount > 0 ? `, ${restartCount} restarts` : '';
  const reason = [waiting, terminated].flatMap((each) => (isJsonObject(each) && typeof each.reason === 'string' ? [each.reason] : []));
  return `${printable(reason[0] ?? (isJsonObject(running) ? 'running, not ready' : phase), 200)}${restarts}`;
}

/** The parts of a static Pod manifest that a running Pod is compared with. */
export type ManifestFacts = ReturnType<typeof readManifest>;

/** @param text the manifest; a text that is no Pod has neither an image nor a health endpoint */
export function readManifest(text: string, component: StaticPodName) {
  const pod = readYaml(text);
  const container = named(objectOf(pod), 'spec.containers', component);
  const probe = [container.readinessProbe, container.livenessProbe]
    .map((each) => objectAt(objectOf(each), 'httpGet'))
    .find(({ port }) => port);
  return { image: imageOf(container), healthUrl: probe === undefined ? null : urlOf(probe, container) };
}

/** The annotation of kubeadm's API servers: `10.0.0.1:6443`. */
const ENDPOINT_ANNOTATION = 'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint';

/**
 * The endpoint of an API server in its manifest: kubeadm's annotation, otherwise its flags.
 * @returns null for a text without an address
 */
export function apiEndpointOf(text: string): { readonly advertiseAddress: string; readonly bindPort: number } | null {
  const pod = objectOf(readYaml(text));
  const annotation = objectAt(pod, 'metadata.annotations')[ENDPOINT_ANNOTATION];
  const known = typeof annotation === 'string' ? splitHostPort(annotation) : null;
  if (known !== null) return { advertiseAddress: known.host, bindPort: Number(known.port) };
  const words = commandOf(pod, 'kube-apiserver');
  const advertiseAddress = flagValue(words, 'advertise-address');
  return advertiseAddress === undefined ? null : { advertiseAddress, bindPort: Number(flagValue(words, 'secure-port') ?? 6443) };
}

/** The URL on the host at which the API server of a manifest reports its version; null: no health endpoint is known. */
export function versionUrl(text: string): string | null {
  const { healthUrl } = readManifest(text, 'kube-apiserver');
  return healthUrl === null || !URL.canParse(healthUrl) ? null : new URL('/version', healthUrl).href;
}

/** The variables of a component whose names end in `_proxy`, sorted by name. */
export function proxyVariablesOf(text: string): readonly EnvVar[] {
  const containers = objectsAt(objectOf(readYaml(text)), 'spec.containers');
  return containers
    .flatMap((container) => objectsAt(container, 'env'))
    .flatMap(({ name, value }) =>
      typeof name === 'string' && /_proxy$/i.test(name) && typeof value === 'string' ? [{ name, value }] : [],
    );
}

/** The image tag of etcd in its manifest: `3.6.8-0`; empty without a tag. */
export function etcdTagOf(text: string): string {
  return imageTag(readManifest(text, 'etcd').image ?? '');
}

/** Whether an etcd tag is older than another, by its numbers; false for tags without a version. */
export function isOlderTag(tag: string, other: string): boolean {
  const [a, b] = [tag, other].map((each) =>
    /^v?(\d+)\.(\d+)\.(\d+)(?:-(\d+))?$/
      .exec(each)
      ?.slice(1)
      .map((part) => Number(part ?? 0)),
  );
  if (a === undefined || b === undefined) return false;
  const first = a.findIndex((part, i) => part !== b[i]);
  return first >= 0 && (a[first] ?? 0) < (b[first] ?? 0);
}

function urlOf({ host, path, port, scheme }: JsonObject, container: JsonObject): string | null {
  const number = typeof port === 'string' ? named(container, 'ports', port).containerPort : port;
  if (typeof number !== 'number') return null;
  const address = typeof host === 'string' && host !== '' ? host : '127.0.0.1';
  const name = address.includes(':') ? `[${address}]` : address;
  return `${scheme === 'HTTPS' ? 'https' : 'http'}://${name}:${number}/${String(path ?? '').replace(/^\//, '')}`;
}

function imageOf({ image }: JsonObject): string | null {
  return typeof image === 'string' ? image : null;
}

function named(object: JsonObject, path: string, name: string): JsonObject {
  return objectsAt(object, path).find((each) => each.name === name) ?? {};
}
