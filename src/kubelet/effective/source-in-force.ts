import type { KubeObject } from '../../kube/object.ts';
import { parseMinor } from '../catalogue/catalogue.ts';
import {
  CONFIG_STATUS_ANNOTATION,
  type ConfigIdentity,
  type ConfigStatus,
  parseConfigStatus,
  parseStatusAnnotation,
} from '../layers/config-source.ts';
import { LAST_DYNAMIC_MINOR } from './dynamic-store.ts';

/**
 * The ConfigMap that an agent, or a kubelet up to 1.23, reports as active.
 * @returns null: the local configuration. The status of an earlier kubelet version on the Node is ignored.
 */
export function sourceInForce(node: KubeObject): ConfigIdentity | null {
  return reportedStatus(node)?.active ?? null;
}

/** The status that an agent, or a kubelet up to 1.23, reports; null: none. */
export function reportedStatus(node: KubeObject): ConfigStatus | null {
  const reported = node.metadata.annotations?.[CONFIG_STATUS_ANNOTATION];
  if (reported !== undefined) return parseStatusAnnotation(reported);
  const { status = {} } = node as { readonly status?: NodeStatus };
  const minor = parseMinor(status.nodeInfo?.kubeletVersion ?? '');
  if (minor === null || minor > LAST_DYNAMIC_MINOR) return null;
  return parseConfigStatus(status.config);
}

interface NodeStatus {
  readonly nodeInfo?: { readonly kubeletVersion?: string };
  readonly config?: Parameters<typeof parseConfigStatus>[0];
}
