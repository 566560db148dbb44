import type { JsonObject } from '../../json.ts';
import type { KubeObject } from '../../kubernetes/object.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;

/** Whose account it is, and what it may read. */
export interface AgentAccount {
  readonly nodeName: string;
  /** Where the ConfigMaps are, and the account itself. */
  readonly namespace: string;
}

/** The name of the account of one node's agent, and of all its roles. */
export function agentAccountName(nodeName: string): string {
  return `kubeletadm-agent-${nodeName}`;
}

/**
 * The account of the agent of one node with what it may do, and no more: read the ConfigMaps of one namespace; follow and annotate its own Node and write that
 * one's status; make Events about Nodes; read the configz of its own kubelet; and get itself its next token. What the API server calls `nodes/proxy` opens more of that kubelet than
 * configz, but the agent is root on the node it is of. A node's own credentials can do none of this to another node, nor can these.
 */
export function agentAccount({ nodeName, namespace }: AgentAccount): readonly KubeObject[] {
  const name = agentAccountName(nodeName);
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  const own = { apiGroups: [''], resourceNames: [nodeName] };
  const clusterRules: readonly JsonObject[] = [
    { ...own, resources: ['nodes'], verbs: ['get', 'list', 'watch', 'patch'] },
    { ...own, resources: ['nodes/status'], verbs: ['patch'] },
    { ...own, resources: ['nodes/configz', 'nodes/proxy'], verbs: ['get'] },
  ];
  const role = (kind: 'Role' | 'ClusterRole', at: JsonObject, rules: readonly JsonObject[]): readonly KubeObject[] => [
    { apiVersion: RBAC_VERSION, kind, metadata: { name, ...at }, rules },
    {
      apiVersion: RBAC_VERSION,
      kind: `${kind}Binding`,
      metadata: { name, ...at },
      roleRef: { apiGroup: RBAC_GROUP, kind, name },
      subjects,
    },
  ];
  const readConfigMaps = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] };
  const makeEvents = { apiGroups: [''], resources: ['events'], verbs: ['create'] };
  const ownToken = { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [name], verbs: ['create'] };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    ...role('ClusterRole', {}, clusterRules),
    ...(namespace === 'default'
      ? role('Role', { namespace }, [readConfigMaps, ownToken, makeEvents])
      : [...role('Role', { namespace }, [readConfigMaps, ownToken]), ...role('Role', { namespace: 'default' }, [makeEvents])]),
  ];
}
