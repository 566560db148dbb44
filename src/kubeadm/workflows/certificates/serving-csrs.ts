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
import { CLIENT_SIGNER, CSRS, type NodeCsr, readNodeCsr, SERVING_SIGNER } from '../../node-identity/node-csr.ts';
import type { ReservedNames } from '../../node-identity/reserved-names.ts';
import {
  type KnownNames,
  type ServingFacts,
  type ServingVerdict,
  servingFacts,
  servingNode,
  validateServingCsr,
} from '../../node-identity/validate-serving-csr.ts';
import { canonicalName } from '../../pki/san.ts';
import { decodeClusterConfiguration, KUBEADM_CONFIG_REF } from '../node/cluster-baseline.ts';

/** A CSR of a kubelet and the result of its checks. */
export interface ValidatedCsr {
  readonly csr: NodeCsr;
  readonly object: KubeObject;
  /** Of a CSR for a client certificate: no SANs, and the signer as the refusal. */
  readonly verdict: ServingVerdict;
}

export interface ServingSources {
  /** Names and addresses of nodes from sources other than their Nodes. */
  readonly known?: readonly KnownNames[];
  /** Further names of the API server; see `readReservedNames`. */
  readonly serverNames?: readonly string[];
}

/**
 * The CSRs of kubelets, oldest first. CSRs for serving certificates are checked against the reserved names of the
 * cluster and all Nodes, which are listed once.
 * @throws AppError CLUSTER_ANSWER_INVALID, and the errors of `Cluster` and `readReservedNames`
 */
export async function listKubeletCsrs(
  cluster: Cluster,
  { known = [], serverNames = [] }: ServingSources = {},
): Promise<readonly ValidatedCsr[]> {
  const { items } = await cluster.list(CSRS);
  const found = items.map((object) => ({ object: { ...CSRS, ...object }, csr: readNodeCsr(object) }));
  const ours = found.filter(({ csr }) => csr.signerName === SERVING_SIGNER || csr.signerName === CLIENT_SIGNER);
  const facts = ours.some(isPendingServing) ? await readFacts(cluster, { known, serverNames }) : NO_FACTS;
  const validated = ours.map((one) => ({ ...one, verdict: validateServingCsr(one.csr, facts) }));
  return validated.toSorted((a, b) => a.csr.created.getTime() - b.csr.created.getTime() || (a.csr.name < b.csr.name ? -1 : 1));
}

/** Whether a CSR is for a serving certificate and neither approved nor denied. */
export function isPendingServing({ csr }: Pick<ValidatedCsr, 'csr'>): boolean {
  return csr.signerName === SERVING_SIGNER && csr.state.kind === 'pending';
}

/** Used if no pending CSR for a serving certificate exists: the other CSRs are refused before their SANs are checked. */
const NO_FACTS = servingFacts({ clusterDomain: '', serviceSubnets: [], podSubnets: [], services: new Map(), apiServer: new Map() }, [], []);

async function readFacts(cluster: Cluster, { known, serverNames }: Required<ServingSources>): Promise<ServingFacts> {
  const [reserved, nodes] = await Promise.all([readReservedNames(cluster, serverNames), cluster.list({ apiVersion: 'v1', kind: 'Node' })]);
  return servingFacts(reserved, nodes.items.map(servingNode), known);
}

/** SANs that only the Node status confirms, which the requesting kubelet writes itself. */
export function unconfirmedSans({ verdict }: Pick<ValidatedCsr, 'verdict'>): readonly string[] {
  return verdict.sans.filter(({ independent }) => !independent).map(({ san }) => san);
}

/**
 * Approves the checked version of a CSR: the approval fails if the CSR has changed since.
 * @throws AppError CLUSTER_CONFLICT, CLUSTER_FORBIDDEN with the missing permissions
 */
export async function approveCsr(cluster: Cluster, { object, csr }: ValidatedCsr): Promise<void> {
  const { conditions = [] } = (object.status ?? {}) as { readonly conditions?: readonly object[] };
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'KubeletServingChecked',
    message: 'kubeletadm checked the requester, the subject, the usages and every SAN',
  };
  const { resourceVersion } = object.metadata;
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  const patch = { ...metadata, status: { conditions: [...conditions, approved] } };
  try {
    await cluster.patch({ ...CSRS, name: csr.name }, 'merge', patch as never, { subresource: 'approval' });
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    const hint = `Use credentials with these permissions: patch certificatesigningrequests/approval; approve for the signer ${SERVING_SIGNER}`;
    throw new AppError(
      error.problems.map((problem) => ({ ...problem, hint })),
      { cause: error },
    );
  }
}

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
