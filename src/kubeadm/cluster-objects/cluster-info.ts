import type { JsonObject } from '../../base/json.ts';
import { isLoopback, parseIp } from '../../base/text/ip.ts';
import type { ClusterChange, Warning } from '../../host/plan/change.ts';
import { type ClusterServer, clusterInfoKubeconfig } from '../../kube/kubeconfig-render.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readYaml, sameYaml } from '../../kube/same-yaml.ts';
import { CLUSTER_INFO_NAME, KUBE_PUBLIC } from '../../kube/well-known.ts';
import { objectAt, objectOf, objectsAt } from '../../kubelet/documents/values.ts';
import { ANONYMOUS, namespacedBinding, readConfigMapRole } from './bootstrap-rbac.ts';

/** Public ConfigMap with the address and the CA of the cluster. */
export const CLUSTER_INFO = { namespace: KUBE_PUBLIC, name: CLUSTER_INFO_NAME } as const;
/** Key of its kubeconfig, which contains no credentials. */
export const CLUSTER_INFO_KUBECONFIG = 'kubeconfig';
/** Prefix of the signature keys; the token id follows. */
const SIGNATURE_PREFIX = 'jws-kubeconfig-';

/**
 * The ConfigMap cluster-info without signatures, which the bootstrapsigner of kube-controller-manager adds.
 * @see kubeadm 1.36 phases/bootstraptoken/clusterinfo
 */
export function clusterInfoMap(apiServer: ClusterServer): KubeObject {
  const data = { [CLUSTER_INFO_KUBECONFIG]: clusterInfoKubeconfig(apiServer) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: CLUSTER_INFO, data };
}

/** Role and RoleBinding that grant read access without credentials. */
export function clusterInfoRbac(): readonly [role: KubeObject, binding: KubeObject] {
  const at = { namespace: CLUSTER_INFO.namespace, name: 'kubeadm:bootstrap-signer-clusterinfo' };
  return [readConfigMapRole(at, CLUSTER_INFO.name), namespacedBinding(at, [ANONYMOUS])];
}

export function dataOf(configMap: KubeObject): Readonly<Record<string, string>> {
  return (configMap.data as Readonly<Record<string, string>> | undefined) ?? {};
}

/**
 * The change from the existing cluster-info to the desired one. A server address that differs is kept with a
 * warning when the CA is the same: it may belong to a load balancer.
 * @param declared the user declared the desired address, so it replaces the existing one
 */
export function diffClusterInfo(
  found: KubeObject | null,
  desired: KubeObject,
  declared: boolean,
): { readonly change: ClusterChange | null; readonly warnings: readonly Warning[] } {
  if (found === null) {
    return {
      change: { kind: 'create-object', object: desired, reason: 'does not exist' },
      warnings: declared ? [] : loopbackWarnings(desired),
    };
  }
  const [before, after] = [kubeconfigOf(found), kubeconfigOf(desired)];
  if (sameYaml(before, after)) return { change: null, warnings: [] };
  const [existing, ours] = [clusterOf(before), clusterOf(after)];
  const sameCa = existing['certificate-authority-data'] === ours['certificate-authority-data'];
  if (sameCa && typeof existing.server === 'string' && !declared) {
    const message = `ConfigMap kube-public/cluster-info is kept: it names the server ${existing.server} instead of ${String(ours.server)}. If ${existing.server} is right, set controlPlaneEndpoint to it. Otherwise replace the ConfigMap with --force-upload`;
    return { change: null, warnings: [{ code: 'CLUSTER_INFO_KEPT', message }] };
  }
  // The signatures belong to the old content: kube-controller-manager signs the new content.
  const others = Object.entries(dataOf(found)).filter(([key]) => !key.startsWith(SIGNATURE_PREFIX));
  const object = { ...found, data: { ...Object.fromEntries(others), ...dataOf(desired) } };
  const reason = sameCa ? 'the server address differs' : 'the CA differs';
  return { change: { kind: 'update-object', object, before: found, reason }, warnings: declared ? [] : loopbackWarnings(desired) };
}

/** Nodes cannot use a loopback address, such as the one of an administrator's tunnel. */
function loopbackWarnings(clusterInfo: KubeObject): readonly Warning[] {
  const server = String(clusterOf(kubeconfigOf(clusterInfo)).server);
  const host = URL.canParse(server) ? new URL(server).hostname.replace(/^\[|\]$/g, '') : '';
  const address = parseIp(host);
  if (host !== 'localhost' && !(address !== null && isLoopback(address))) return [];
  const message = `ConfigMap kube-public/cluster-info names the server ${server}, a loopback address that joining nodes cannot reach. Set controlPlaneEndpoint (--control-plane-endpoint) to an address that nodes can reach`;
  return [{ code: 'CLUSTER_INFO_LOOPBACK', message }];
}

function kubeconfigOf(clusterInfo: KubeObject): string {
  return dataOf(clusterInfo)[CLUSTER_INFO_KUBECONFIG] ?? '';
}

/** The first cluster of a kubeconfig; empty when the text contains none. */
function clusterOf(kubeconfig: string): JsonObject {
  const [first = {}] = objectsAt(objectOf(readYaml(kubeconfig)), 'clusters');
  return objectAt(first, 'cluster');
}
