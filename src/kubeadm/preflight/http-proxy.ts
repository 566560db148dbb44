import type { Warning } from '../../host/plan/change.ts';
import { type ProxyEnvironment, proxyFor, showProxy } from '../../kube/proxy.ts';

/**
 * Says that the API server is reached through a proxy, which is seldom meant. The kubelet has an environment of its own: that of its unit.
 * @param server e.g. `https://10.0.0.1:6443`
 * @returns null when it is reached directly, or the variable holds no proxy (discovery says that)
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
