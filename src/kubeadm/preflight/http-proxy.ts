import type { Warning } from '../../host/plan/change.ts';
import { type ProxyEnvironment, proxyFor, showProxy } from '../../kube/proxy.ts';

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
