import type { Problem } from '../base/errors.ts';
import { KUBE_PUBLIC, KUBE_SYSTEM } from './well-known.ts';

/** The namespace of node configurations unless another one is named. */
export const AGENT_NAMESPACE = 'kubeletadm-system';

/** On a Node: the namespace whose ConfigMaps its agent may read. Written by `dynamic enable`; a node can change it, so it only ever leads to a refusal. */
export const NAMESPACE_ANNOTATION = 'kubeletadm.dev/config-namespace';

/** Other components keep their data there. */
const SHARED_NAMESPACES: readonly string[] = [KUBE_SYSTEM, KUBE_PUBLIC, 'kube-node-lease', 'default'];

/**
 * Why a namespace can't be the one of an agent: the agent may read every ConfigMap in it.
 * @returns null when it can be
 */
export function agentNamespaceProblem(namespace: string): Problem | null {
  if (!SHARED_NAMESPACES.includes(namespace)) return null;
  return {
    code: 'AGENT_NAMESPACE_SHARED',
    message: `the agent can't use namespace ${namespace}: nodes would be allowed to read all ConfigMaps of other components in it`,
    hint: `Leave --namespace out (${AGENT_NAMESPACE}) or name a namespace that holds node configurations only`,
  };
}
