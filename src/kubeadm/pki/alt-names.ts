import { formatIp, parseIp } from '../../base/text/ip.ts';
import { apiServerServiceIp } from '../config/dns-ip.ts';
import { splitHostPort } from '../config/rules.ts';
import type { ControlPlaneNode } from '../control-plane/model.ts';

/** Input for the certificates and kubeconfigs of a control plane node. */
export type PkiConfiguration = Pick<ControlPlaneNode, 'cluster' | 'nodeName' | 'localAPIEndpoint'>;

/** Subject alternative names, without duplicates: DNS names sorted; addresses in input order, formatted as by Go. */
export interface AltNames {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
}

export const NO_NAMES: AltNames = { dnsNames: [], ipAddresses: [] };

/**
 * SANs of the API server: the node name, the `kubernetes` Service, the advertised address, the control plane
 * endpoint, and the names added by the user.
 * @throws AppError CONFIG_INVALID_SUBNET when the service subnet has no first address
 * @see kubeadm 1.36 certs/apiserver
 */
export function apiServerNames({ cluster, nodeName, localAPIEndpoint }: PkiConfiguration): AltNames {
  const { serviceSubnet, dnsDomain } = cluster.networking;
  const endpoint = cluster.controlPlaneEndpoint === undefined ? undefined : splitHostPort(cluster.controlPlaneEndpoint)?.host;
  return altNames([
    nodeName,
    ...['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', `kubernetes.default.svc.${dnsDomain}`],
    ...[apiServerServiceIp(serviceSubnet), localAPIEndpoint.advertiseAddress],
    ...(endpoint === undefined ? [] : [endpoint]),
    ...(cluster.apiServer.certSANs ?? []),
  ]);
}

/**
 * SANs of the local etcd member, for clients or for peers.
 * @param added `serverCertSANs` or `peerCertSANs`
 * @see kubeadm 1.36 certs/etcd-server, certs/etcd-peer
 */
export function etcdNames({ nodeName, localAPIEndpoint }: PkiConfiguration, added: readonly string[] = []): AltNames {
  return altNames([nodeName, 'localhost', localAPIEndpoint.advertiseAddress, '127.0.0.1', '::1', ...added]);
}

function altNames(names: readonly string[]): AltNames {
  const read = names.map((name) => ({ name, address: parseIp(name) }));
  return {
    dnsNames: [...new Set(read.filter(({ address }) => address === null).map(({ name }) => name))].toSorted(byBytes),
    ipAddresses: [...new Set(read.flatMap(({ address }) => (address === null ? [] : [formatIp(address)])))],
  };
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
