import type { DefaultedCluster } from './defaults.ts';
import { splitHostPort } from './rules.ts';

/**
 * What the runtime and the kubelet of a host must reach without a proxy: Services, Pods, the names of Services and the
 * API endpoint. The network of the hosts is known on each host only.
 */
export function proxyExceptions({
  networking,
  controlPlaneEndpoint,
}: Pick<DefaultedCluster, 'networking' | 'controlPlaneEndpoint'>): readonly string[] {
  const { serviceSubnet, podSubnet, dnsDomain } = networking;
  const subnets = [serviceSubnet, podSubnet].flatMap((list) => (list ?? '').split(',')).map((each) => each.trim());
  const endpoint = splitHostPort(controlPlaneEndpoint ?? '')?.host ?? '';
  return [...new Set([...subnets, '.svc', `.${dnsDomain}`, endpoint])].filter((each) => each !== '');
}

/** The DNS name or IP address in the URL of an API server; null: not a URL. */
export function apiServerHost(server: string): string | null {
  return URL.canParse(server) ? new URL(server).hostname.replace(/^\[|\]$/g, '') : null;
}
