import { fileFacts } from '../../host/facts/file-facts.ts';
import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ObjectRef } from '../../kube/object.ts';
import { formerAgentAccount, formerAgentBinding } from '../node-agent/agent-rights.ts';
import { FORMER_KUBECONFIG } from '../node-agent/agent-units.ts';
import { formerTokenFile } from '../node-agent/layout.ts';

export interface FormerAccountInput {
  readonly nodeName: string;
  /** Of the agent, on the host. */
  readonly directory: string;
}

interface Facts {
  readonly objects: readonly ObjectRef[];
  readonly files: readonly string[];
}

/**
 * Deletes the account that earlier versions made for the agent, with its roles, and its token and kubeconfig on the host. The agent runs with the credential of
 * the kubelet by then.
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
      // A token has no place in a plan or a journal.
      ...files.map((path) => ({ kind: 'remove-file', path, before: null, reason }) as const),
    ];
    return changes.length === 0 ? { changes, noop: 'no account of an earlier version exists' } : { changes };
  },
});

/** What exists of the account that earlier versions made for the agent of a node, in the order of its deletion. */
export async function findFormerAccount(cluster: Cluster, nodeName: string): Promise<readonly ObjectRef[]> {
  return existing(cluster, formerAgentAccount(nodeName, await cluster.get(formerAgentBinding(nodeName))));
}

/** Those of some objects that exist, in their order. */
export async function existing(cluster: Cluster, refs: readonly ObjectRef[]): Promise<readonly ObjectRef[]> {
  const found = await Promise.all(refs.map((ref) => cluster.get(ref)));
  return refs.filter((_, i) => found[i] !== null);
}
