import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { ObjectChange } from '../../host/plan/change.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import { NAMESPACE_ANNOTATION } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { hasPermission } from '../../kube/has-permission.ts';
import { type KubeObject, type ObjectRef, refOf } from '../../kube/object.ts';
import { FORMER_KUBECONFIG } from '../../kubelet/node-agent/agent-units.ts';
import { formerTokenFile } from '../../kubelet/node-agent/layout.ts';
import { agentRights, agentRightsName, formerAgentAccount, formerAgentBinding } from '../node-agent/agent-rights.ts';
import { findObjects } from './find-objects.ts';

export interface AgentRightsInput {
  readonly nodeName: string;
  readonly namespace: string;
}

interface Facts {
  readonly node: KubeObject | null;
  readonly namespace: KubeObject | null;
  readonly rights: readonly { readonly desired: KubeObject; readonly found: KubeObject | null }[];
}

/**
 * Grants the user of one node's kubelet the permissions that its agent needs, and records the agent's
 * namespace in the Node.
 */
export const agentRightsPhase = definePhase<AgentRightsInput | null, Facts | null>({
  name: 'agent-rights',
  short: 'Create the namespace of node configurations and grant the kubelet credential read access',
  observe: async ({ cluster }, input) => (input === null || cluster === null ? null : findRights(cluster, input)),
  plan: (facts, input) => {
    if (facts === null || input === null) return { changes: [] };
    const changes = rightsChanges(facts, input);
    return changes.length === 0
      ? { changes, noop: `the RBAC rules of the agent are unchanged (the agent uses the credential of the kubelet of ${input.nodeName})` }
      : { changes };
  },
});

/**
 * The changes that give an agent its permissions, in the order of their execution.
 * @throws the errors of `Cluster`
 */
export async function planAgentRights(cluster: Cluster, input: AgentRightsInput): Promise<readonly ObjectChange[]> {
  return rightsChanges(await findRights(cluster, input), input);
}

async function findRights(cluster: Cluster, input: AgentRightsInput): Promise<Facts> {
  const [node, namespace] = await Promise.all([
    cluster.get({ apiVersion: 'v1', kind: 'Node', name: input.nodeName }),
    cluster.get(namespaceRef(input.namespace)),
  ]);
  const desired = agentRights({ ...input, nodeUid: node?.metadata.uid ?? null });
  const found = await findObjects(cluster, desired);
  return { node, namespace, rights: desired.map((object, i) => ({ desired: object, found: found[i] ?? null })) };
}

function rightsChanges({ node, namespace, rights }: Facts, input: AgentRightsInput): readonly ObjectChange[] {
  return [
    ...(namespace === null ? [createNamespace(input.namespace)] : []),
    ...rights.flatMap(({ desired, found }) => diffRbac(found, desired)),
    ...annotate(node, input.namespace),
  ];
}

export function createNamespace(name: string): ObjectChange {
  return {
    kind: 'create-object',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    reason: 'for the node configurations',
  };
}

export function namespaceRef(name: string): ObjectRef {
  return { apiVersion: 'v1', kind: 'Namespace', name };
}

function annotate(node: KubeObject | null, namespace: string): readonly ObjectChange[] {
  if (node === null || node.metadata.annotations?.[NAMESPACE_ANNOTATION] === namespace) return [];
  const patch = { metadata: { annotations: { [NAMESPACE_ANNOTATION]: namespace } } };
  return [{ kind: 'patch-object', ref: refOf(node), patch, reason: `the agent of this Node reads ConfigMaps of namespace ${namespace}` }];
}

/** Deletes the RBAC objects of one node's agent, and the account that earlier versions created for it. */
export const agentRightsRemoval = definePhase<
  {
    readonly nodeName: string;
    readonly namespace: string;
    /**
     * The RBAC objects are deleted with their Node anyway, so missing permission to delete them is no error.
     */
    readonly isOptional: boolean;
  } | null,
  {
    readonly found: readonly ObjectRef[];
    readonly mayDelete: boolean;
  }
>({
  name: 'agent-rights',
  short: 'Delete the RBAC rules of the kubeletadm agent of this node',
  observe: async ({ cluster }: PhaseContext, input) => {
    if (input === null || cluster === null) return { found: [], mayDelete: true };
    const { nodeName, namespace } = input;
    if (input.isOptional && !(await mayDeleteRights(cluster, nodeName))) return { found: [], mayDelete: false };
    const own = agentRights({ nodeName, nodeUid: null, namespace }).map(refOf);
    const [rights, former] = await Promise.all([filterExisting(cluster, own), findFormerAccount(cluster, nodeName)]);
    return { found: [...rights, ...former], mayDelete: true };
  },
  plan: ({ found, mayDelete }, input) => {
    if (input === null) return { changes: [] };
    if (!mayDelete) return { changes: [], noop: 'the RBAC objects of the agent, if any, are deleted with the Node' };
    const changes = found.map((ref) => ({ kind: 'delete-object', ref, reason: 'the agent is removed' }) as const);
    return changes.length === 0 ? { changes, noop: 'the agent has no RBAC objects' } : { changes };
  },
});

function mayDeleteRights(cluster: Cluster, nodeName: string): Promise<boolean> {
  return hasPermission(cluster, {
    verb: 'delete',
    group: 'rbac.authorization.k8s.io',
    resource: 'clusterrolebindings',
    name: agentRightsName(nodeName),
  });
}

export interface FormerAccountInput {
  readonly nodeName: string;
  /** State directory of the agent on the host. */
  readonly directory: string;
}

/**
 * Deletes the account that earlier versions created for the agent, with its roles, and its token and
 * kubeconfig on the host. At this point the agent already uses the kubelet credential.
 */
export const agentFormerAccount = definePhase<
  FormerAccountInput | null,
  { readonly objects: readonly ObjectRef[]; readonly files: readonly string[] }
>({
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
async function findFormerAccount(cluster: Cluster, nodeName: string): Promise<readonly ObjectRef[]> {
  return filterExisting(cluster, formerAgentAccount(nodeName, await cluster.get(formerAgentBinding(nodeName))));
}

/** The existing objects among the given ones, in their order. */
async function filterExisting(cluster: Cluster, refs: readonly ObjectRef[]): Promise<readonly ObjectRef[]> {
  const found = await Promise.all(refs.map((ref) => cluster.get(ref)));
  return refs.filter((_, i) => found[i] !== null);
}
