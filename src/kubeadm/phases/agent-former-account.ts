import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { definePhase } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ObjectRef } from '../../kube/object.ts';
import { FORMER_KUBECONFIG } from '../../kubelet/node-agent/agent-units.ts';
import { formerTokenFile } from '../../kubelet/node-agent/layout.ts';
import { formerAgentAccount, formerAgentBinding } from '../node-agent/agent-rights.ts';

export interface FormerAccountInput {
  readonly nodeName: string;
  /** State directory of the agent on the host. */
  readonly directory: string;
}

interface Facts {
  readonly objects: readonly ObjectRef[];
  readonly files: readonly string[];
}

/**
 * Deletes the account that earlier versions created for the agent, with its roles, and its token and
 * kubeconfig on the host. At this point the agent already uses the kubelet credential.
 */
export const agentFormerAccount = definePhase<FormerAccountInput | null, Facts>({
  name: 'agent-former-account',
  short: 'Delete the ServiceAccount, token and kubeconfig that earlier versions created for the agent',
  observe: async ({ host, cluster, signal }, input) => {
    if (input === null || cluster === null) return { objects: [], files: [] };
    const paths = [formerTokenFile(input.directory), FORMER_KUBECONFIG];
    const [files, objects] = await Promise.all([observe(host, fileFacts(paths), signal), findFormerAccount(cluster, input.nodeName)]);
    return { objects, files: paths.filter((path) => files.get(path) != null) };
  },
  plan: ({ objects, files }, input) => {
    if (input === null) return { changes: [] };
    const reason = 'the agent uses the kubelet credential';
    const changes = [
      ...objects.map((ref) => ({ kind: 'delete-object', ref, reason }) as const),
      // The content is not read: a token must not appear in a plan or journal.
      ...files.map((path) => ({ kind: 'remove-file', path, before: null, reason }) as const),
    ];
    return changes.length === 0 ? { changes, noop: 'no ServiceAccount of an earlier kubeletadm version exists' } : { changes };
  },
});

/**
 * Existing objects of the account that earlier versions created for the agent of a node, in deletion order.
 */
export async function findFormerAccount(cluster: Cluster, nodeName: string): Promise<readonly ObjectRef[]> {
  return filterExisting(cluster, formerAgentAccount(nodeName, await cluster.get(formerAgentBinding(nodeName))));
}

/** The existing objects among the given ones, in their order. */
export async function filterExisting(cluster: Cluster, refs: readonly ObjectRef[]): Promise<readonly ObjectRef[]> {
  const found = await Promise.all(refs.map((ref) => cluster.get(ref)));
  return refs.filter((_, i) => found[i] !== null);
}
