import { addressAt, formatCidr, formatIp } from '../../base/text/ip.ts';
import type { Warning } from '../../host/plan/change.ts';
import { type ProxyEnvironment, proxyFor, showProxy } from '../../kube/proxy.ts';
import { parseSubnets } from '../config/dns-ip.ts';
import type { EnvVar } from '../config/model.ts';
import type { Finding } from './check.ts';

/**
 * Warns if the API server is reached through a proxy, which is rarely intended. The kubelet uses the
 * environment of its unit instead.
 * @param server e.g. `https://10.0.0.1:6443`
 * @returns null without a proxy, or with an invalid proxy variable (reported by the discovery)
 * @see kubeadm 1.36 preflight HTTPProxy
 */
export function httpProxyWarning(server: string, env: ProxyEnvironment): Warning | null {
  try {
    const proxy = proxyFor(new URL(server), env);
    if (proxy === null) return null;
    const message = `the API server ${server} is reached through the proxy ${showProxy(proxy)}. If this is not intended, add the API server to NO_PROXY`;
    return { code: 'HTTPProxy', message };
  } catch {
    return null;
  }
}

/**
 * Warns if the components of a control plane reach Services or Pods through the proxy of their environment.
 * @param subnets of Services and Pods, each comma-separated or undefined
 * @see kubeadm 1.36 preflight HTTPProxyCIDRCheck
 */
export function proxyOfSubnets(subnets: readonly (string | undefined)[], environment: readonly EnvVar[]): readonly Finding[] {
  const env = Object.fromEntries(environment.map(({ name, value }) => [name, value]));
  return subnets
    .flatMap((text = '') => parseSubnets(text) ?? [])
    .flatMap((subnet): readonly Finding[] => {
      const address = addressAt(subnet, 1);
      const host = address === null ? '' : formatIp(address);
      const warning = host === '' ? null : httpProxyWarning(`https://${host.includes(':') ? `[${host}]` : host}:1234`, env);
      if (warning === null) return [];
      const message = `the control plane would reach the subnet ${formatCidr(subnet)} of Services or Pods through the proxy of its environment. Add the subnet to NO_PROXY`;
      return [{ id: 'HTTPProxyCIDR', severity: 'warning', message }];
    });
}
