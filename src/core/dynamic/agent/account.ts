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

/** What it may do besides what every agent may. */
export interface AgentRights extends AgentAccount {
  /** It may have the API server ask the kubelet. What it asks for itself takes less. */
  readonly isProxied: boolean;
}

/** The name of the account of one node's agent, and of all its roles. */
export function agentAccountName(nodeName: string): string {
  return `kubeletadm-agent-${nodeName}`;
}

/**
 * The account of the agent of one node with what it may do, and no more: read the ConfigMaps of one namespace; follow and annotate its own Node and write that
 * one's status; make Events about Nodes; read the configz of its own kubelet; and get itself its next token. A node's own credentials can do none of this to another
 * node, nor can these. `nodes/proxy`, which opens all that a kubelet serves, commands in its pods among it, is part of it only where that can't be done without.
 */
export function agentAccount({ nodeName, namespace, isProxied }: AgentRights): readonly KubeObject[] {
  const name = agentAccountName(nodeName);
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  const own = { apiGroups: [''], resourceNames: [nodeName] };
  const clusterRules: readonly JsonObject[] = [
    { ...own, resources: ['nodes'], verbs: ['get', 'list', 'watch', 'patch'] },
    { ...own, resources: ['nodes/status'], verbs: ['patch'] },
    { ...own, resources: isProxied ? ['nodes/configz', 'nodes/proxy'] : ['nodes/configz'], verbs: ['get'] },
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
