import { groupBy } from '../../../base/group-by.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { imageTag } from '../../control-plane/images.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import type { VersionsByNode } from '../../upgrade/available-upgrades.ts';

/**
 * The versions of a control plane component on all control planes, from the images of its Pods.
 * @see kubeadm 1.36 phases/upgrade/versiongetter.go ComponentVersions
 */
export async function componentVersions(cluster: Cluster, name: StaticPodName): Promise<VersionsByNode> {
  const pods = { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM };
  const { items } = await cluster.list(pods, { labelSelector: `component=${name},tier=control-plane` });
  const specs = items.map(({ spec }) => spec as PodSpec | undefined);
  const byVersion = groupBy(specs, (spec) => imageTag(spec?.containers?.[0]?.image ?? '').replaceAll('_', '+'));
  return new Map([...byVersion].map(([version, found]) => [version, found.map((spec) => spec?.nodeName ?? '')]));
}

/** The image tag of the CoreDNS Deployment; null: no Deployment; `several`: the version is ambiguous. */
export async function deployedCorednsVersion(cluster: Cluster): Promise<string | null> {
  const deployments = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: KUBE_SYSTEM };
  const { items } = await cluster.list(deployments, { labelSelector: 'k8s-app=kube-dns' });
  const [only, another] = items as readonly (KubeObject & { readonly spec?: { readonly template?: { readonly spec?: PodSpec } } })[];
  if (only === undefined) return null;
  return another === undefined ? imageTag(only.spec?.template?.spec?.containers?.[0]?.image ?? '') : 'several';
}

interface PodSpec {
  readonly nodeName?: string;
  readonly containers?: readonly { readonly image?: string }[];
}
