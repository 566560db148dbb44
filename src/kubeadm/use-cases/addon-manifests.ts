import type { LocalFiles } from '../../base/local-files.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { KubeObject } from '../../kube/object.ts';
import { corednsObjects } from '../addons/coredns.ts';
import { kubeProxyObjects } from '../addons/kube-proxy.ts';
import { applyEndpointDefaults, DEFAULT_TIMEOUTS } from '../config/defaults.ts';
import type { ControlPlaneNode } from '../control-plane/model.ts';
import { type LocalHostConnections, observeLocalDefaultRoute, proxyEnvironment } from './control-plane-inputs.ts';
import { type DocumentPorts, type DocumentsRequest, resolveInitDocuments } from './resolve-init-documents.ts';

export const ADDONS = ['coredns', 'kube-proxy'] as const;

/**
 * The objects of addons in the order in which kubeadm prints them. Nothing is read from a cluster; without an address in
 * the configuration, kube-proxy gets that of the local host.
 * @throws AppError: problems of the configuration, all at once (exit code 2)
 * @see kubeadm 1.36 init phase addon --print-manifest
 */
export async function addonManifests(
  services: DocumentPorts & LocalHostConnections & Pick<LocalFiles, 'env'>,
  addons: readonly (typeof ADDONS)[number][],
  request: DocumentsRequest,
): Promise<{ readonly objects: readonly KubeObject[]; readonly warnings: readonly Warning[] }> {
  const { config, cluster, warnings } = await resolveInitDocuments(services, request);
  const objects: KubeObject[] = [];
  const found: Warning[] = [...warnings];
  if (addons.includes('coredns')) {
    const { deployment, configMap, service, clusterRole, clusterRoleBinding, serviceAccount } = corednsObjects({ cluster, patches: [] });
    objects.push(deployment, configMap, service, clusterRole, clusterRoleBinding, serviceAccount);
  }
  if (addons.includes('kube-proxy')) {
    const node: ControlPlaneNode = {
      cluster,
      nodeName: '',
      localAPIEndpoint: applyEndpointDefaults(config.init?.localAPIEndpoint ?? {}, {
        defaultRoute: await observeLocalDefaultRoute(services),
      }),
      timeouts: DEFAULT_TIMEOUTS,
      patches: [],
      caDirectories: [],
      etcdMembers: null,
      externalCA: false,
      proxyEnvironment: proxyEnvironment(services.env),
      kubeProxy: config.kubeProxy ?? null,
    };
    const proxy = kubeProxyObjects(node);
    const { serviceAccount, rbac, configMap, daemonSet } = proxy.objects;
    objects.push(serviceAccount, ...rbac, configMap, daemonSet);
    found.push(...proxy.warnings);
  }
  return { objects: objects.map(withoutStatus), warnings: found };
}

/** The status belongs to the API server. */
function withoutStatus({ status: _, ...object }: KubeObject & { readonly status?: unknown }): KubeObject {
  return object;
}
