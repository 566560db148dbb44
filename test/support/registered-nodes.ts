import type { Cluster } from '../../src/ports/cluster.ts';
import type { LabHosts } from './lab-hosts.ts';

/**
 * Does for the stand-in kubelets of lab hosts, which have no way to the API server, what kubelets do there: while one runs with an identity of its own, there is a
 * Ready Node of its name; once it has none any more, there is none.
 * @returns what ends it
 */
export function registerNodes(lab: LabHosts, cluster: Cluster): () => Promise<void> {
  let ended = false;
  const registered = new Set<string>();
  const visit = async (host: string): Promise<void> => {
    const answer = lab.run(host, 'test -s /etc/kubernetes/kubelet.conf && systemctl is-active kubelet || true').trim();
    const ref = { apiVersion: 'v1', kind: 'Node', name: host };
    if (answer === 'active' && !registered.has(host)) {
      await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: host } });
      await cluster.patch(ref, 'merge', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }, { subresource: 'status' });
      registered.add(host);
    } else if (answer === '' && registered.has(host)) {
      await cluster.delete(ref);
      registered.delete(host);
    }
  };
  const loop = (async () => {
    while (!ended) {
      // A host that is being reset does not answer: it is asked again.
      for (const host of lab.names) await visit(host).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  })();
  return async () => {
    ended = true;
    await loop;
  };
}
