import type { CertificateAuthority } from '../../lab/api-server/pki.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { LabHosts } from './lab-hosts.ts';

const CLIENT_PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';

/**
 * Registers Nodes in place of the stand-in kubelets of lab hosts, which cannot reach the API server: once one
 * runs with a kubelet.conf, it gets a client certificate of the cluster and a Ready Node. The Node is deleted
 * when the host has no kubelet.conf. Pods of the Nodes are reported as running.
 * @returns a function that stops the registration
 */
export function registerNodes(lab: LabHosts, cluster: Cluster, ca: CertificateAuthority): () => Promise<void> {
  let ended = false;
  const registered = new Set<string>();
  const visit = async (host: string): Promise<void> => {
    const answer = lab.run(host, 'test -s /etc/kubernetes/kubelet.conf && systemctl is-active kubelet || true').trim();
    const ref = { apiVersion: 'v1', kind: 'Node', name: host };
    if (answer === 'active' && !registered.has(host)) {
      const { certPem, keyPem } = await ca.issueClient({ commonName: `system:node:${host}`, organizations: ['system:nodes'] });
      lab.run(host, `umask 077; cat > ${CLIENT_PEM}.new <<'EOF'\n${certPem}${keyPem}EOF\nmv ${CLIENT_PEM}.new ${CLIENT_PEM}`);
      await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: host } });
      await cluster.patch(ref, 'merge', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }, { subresource: 'status' });
      registered.add(host);
    } else if (answer === '' && registered.has(host)) {
      await cluster.delete(ref);
      registered.delete(host);
    }
  };
  const startPods = async (): Promise<void> => {
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod' });
    for (const { metadata, spec, status } of items) {
      const { nodeName, containers } = spec as { readonly nodeName?: string; readonly containers: readonly { readonly name: string }[] };
      if (nodeName === undefined || !registered.has(nodeName) || (status as { phase?: string } | undefined)?.phase === 'Running') continue;
      const ref = { apiVersion: 'v1', kind: 'Pod', namespace: metadata.namespace ?? '', name: metadata.name };
      const containerStatuses = containers.map(({ name }) => ({ name, state: { running: {} } }));
      await cluster.patch(ref, 'merge', { status: { phase: 'Running', containerStatuses } }, { subresource: 'status' });
    }
  };
  const loop = (async () => {
    while (!ended) {
      // A pod may be deleted in the meantime.
      await startPods().catch(() => undefined);
      // A host that is being reset does not answer: it is queried again.
      for (const host of lab.names) await visit(host).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  })();
  return async () => {
    ended = true;
    await loop;
  };
}
