import { AppError, isAppError } from '../../../base/errors.ts';
import { type Cidr, parseCidr } from '../../../base/text/ip.ts';
import {
  API_SERVER_SERVICE,
  addressesOfEndpointSlice,
  addressesOfEndpoints,
  clusterIpsOfService,
  externalAddressesOfService,
  subnetsOfServiceCidr,
} from '../../../kube/api-server-addresses.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { parseKubeconfig } from '../../../kube/kubeconfig.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { CLUSTER_INFO, CLUSTER_INFO_KUBECONFIG, dataOf } from '../../cluster-objects/cluster-info.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { splitHostPort } from '../../config/rules.ts';
import type { ReservedNames } from '../../node-identity/reserved-names.ts';
import { canonicalName } from '../../pki/san.ts';
import { decodeClusterConfiguration, KUBEADM_CONFIG_REF } from './cluster-baseline.ts';

const SERVICES = { apiVersion: 'v1', kind: 'Service' } as const;
const SERVICE = { ...SERVICES, ...API_SERVER_SERVICE } as const;
const ENDPOINTS = { apiVersion: 'v1', kind: 'Endpoints', ...API_SERVER_SERVICE } as const;
const SLICES = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', namespace: API_SERVER_SERVICE.namespace } as const;
const SERVICE_CIDRS = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR' } as const;
const CLUSTER_INFO_REF = { apiVersion: 'v1', kind: 'ConfigMap', ...CLUSTER_INFO } as const;
const DEFAULT_DNS_DOMAIN = 'cluster.local';

/**
 * Reads the names and addresses that no kubelet may serve with: those of the API server (controlPlaneEndpoint and certSANs of kubeadm-config, the servers of
 * cluster-info and of the kubeconfig in use, the endpoints of Service default/kubernetes), the cluster domain, and the subnets of Services and pods. Where
 * neither kubeadm-config nor a ServiceCIDR gives the service subnet, the addresses of all Services are read.
 * @param serverNames further names of the API server by which this client verifies it, for instance tls-server-name of the kubeconfig
 * @throws AppError CLUSTER_FORBIDDEN with the permissions required: a source that cannot be read is never taken for an empty one
 */
export async function readReservedNames(cluster: Cluster, serverNames: readonly string[] = []): Promise<ReservedNames> {
  try {
    return await read(cluster, serverNames);
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    throw new AppError(
      error.problems.map((problem) => ({ ...problem, hint: PERMISSIONS })),
      { cause: error },
    );
  }
}

const PERMISSIONS =
  'Use credentials with these permissions: get ConfigMaps kube-system/kubeadm-config and kube-public/cluster-info; get Service and Endpoints default/kubernetes; list nodes, services, endpointslices.discovery.k8s.io and servicecidrs.networking.k8s.io';

async function read(cluster: Cluster, serverNames: readonly string[]): Promise<ReservedNames> {
  const [kubeadmConfig, clusterInfo, service, endpoints, slices, serviceCidrs] = await Promise.all([
    cluster.get(KUBEADM_CONFIG_REF),
    cluster.get(CLUSTER_INFO_REF),
    cluster.get(SERVICE),
    cluster.get(ENDPOINTS),
    listIfServed(cluster, SLICES, { labelSelector: `kubernetes.io/service-name=${API_SERVER_SERVICE.name}` }),
    listIfServed(cluster, SERVICE_CIDRS),
  ]);
  const { networking = {}, ...configuration } = decodeClusterConfiguration(kubeadmConfig).model ?? {};
  const serviceSubnets = [...subnets(networking.serviceSubnet), ...serviceCidrs.flatMap(subnetsOfServiceCidr)];
  const all = serviceSubnets.length > 0 ? [] : (await cluster.list(SERVICES)).items;
  const services = [...(service === null ? [] : [service]), ...all];
  return {
    clusterDomain: canonicalName(networking.dnsDomain ?? DEFAULT_DNS_DOMAIN),
    serviceSubnets,
    podSubnets: subnets(networking.podSubnet),
    services: new Map(
      services.flatMap((object) =>
        [...clusterIpsOfService(object), ...externalAddressesOfService(object)].map((address) => [
          canonicalName(address),
          `Service ${object.metadata.namespace ?? ''}/${object.metadata.name}`,
        ]),
      ),
    ),
    apiServer: named([
      ['the kubeconfig in use', [hostOfUrl(cluster.server), ...serverNames]],
      ['ConfigMap kube-public/cluster-info', serversOf(clusterInfo)],
      ['Endpoints default/kubernetes', endpoints === null ? [] : addressesOfEndpoints(endpoints)],
      ['EndpointSlice of default/kubernetes', slices.flatMap(addressesOfEndpointSlice)],
      ['apiServer.certSANs of kubeadm-config', configuration.apiServer?.certSANs ?? []],
      ['controlPlaneEndpoint of kubeadm-config', hostOfEndpoint(configuration)],
    ]),
  };
}

/** Lists objects of a kind; empty if an older API server does not serve the kind. */
async function listIfServed(
  cluster: Cluster,
  kind: { readonly apiVersion: string; readonly kind: string; readonly namespace?: string },
  options: { readonly labelSelector?: string } = {},
): Promise<readonly KubeObject[]> {
  try {
    return (await cluster.list(kind, options)).items;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_NO_SUCH_KIND')) return [];
    throw error;
  }
}

function subnets(text: string | undefined): readonly Cidr[] {
  return (text ?? '').split(',').flatMap((cidr) => parseCidr(cidr.trim()) ?? []);
}

function hostOfEndpoint({ controlPlaneEndpoint }: ClusterConfiguration): readonly string[] {
  if (controlPlaneEndpoint === undefined) return [];
  return [splitHostPort(controlPlaneEndpoint)?.host ?? controlPlaneEndpoint.replace(/^\[|\]$/g, '')];
}

function serversOf(clusterInfo: KubeObject | null): readonly string[] {
  const text = clusterInfo === null ? undefined : dataOf(clusterInfo)[CLUSTER_INFO_KUBECONFIG];
  if (text === undefined) return [];
  const { clusters } = parseKubeconfig(text, 'ConfigMap kube-public/cluster-info');
  return clusters.flatMap(({ server, tlsServerName }) => [
    ...(URL.canParse(server) ? [hostOfUrl(server)] : []),
    ...(tlsServerName === undefined ? [] : [tlsServerName]),
  ]);
}

function hostOfUrl(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** Names with their source: the last of several sources wins. */
function named(places: readonly (readonly [place: string, names: readonly string[]])[]): ReadonlyMap<string, string> {
  return new Map(places.flatMap(([place, names]) => names.map((name) => [canonicalName(name), place])));
}
