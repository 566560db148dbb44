import type { Problem } from '../base/errors.ts';
import { KUBE_PUBLIC, KUBE_SYSTEM } from './well-known.ts';

export const AGENT_NAMESPACE = 'kubeletadm-system';

/**
 * On a Node: the namespace whose ConfigMaps its agent may read. A node can change it, so it may only cause a
 * rejection.
 */
export const NAMESPACE_ANNOTATION = 'kubeletadm.dev/config-namespace';

/** Namespaces that hold data of other components. */
const SHARED_NAMESPACES: readonly string[] = [KUBE_SYSTEM, KUBE_PUBLIC, 'kube-node-lease', 'default'];

/** The agent may read every ConfigMap in its namespace. @returns null for a valid namespace */
export function agentNamespaceProblem(namespace: string): Problem | null {
  if (!SHARED_NAMESPACES.includes(namespace)) return null;
  return {
    code: 'AGENT_NAMESPACE_SHARED',
    message: `the agent cannot use namespace ${namespace}: nodes would be allowed to read all ConfigMaps of other components in this namespace`,
    hint: `Omit --namespace (default: ${AGENT_NAMESPACE}) or use a namespace that holds only node configurations`,
  };
}
