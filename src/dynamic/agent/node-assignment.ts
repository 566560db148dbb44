import { isJsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  type ConfigSource,
  describeSource,
  parseSourceAnnotation,
  RETRY_ANNOTATION,
} from '../../kubelet/layers/config-source.ts';
import { GROUP_LABEL } from './prepare-payload.ts';
import type { SyncFailure } from './state.ts';

/** Assignment of a Node. */
type NodeAssignment =
  | { readonly kind: 'nothing' }
  /** Invalid, or in a namespace that this agent does not read. */
  | { readonly kind: 'unusable'; readonly issue: SyncFailure }
  | { readonly kind: 'source'; readonly source: ConfigSource };

/**
 * Reads the assignment of a Node.
 * @param namespace namespace whose ConfigMaps the agent reads
 */
export function readNodeAssignment(node: KubeObject, namespace: string): NodeAssignment {
  const { source, issue } = parseSourceAnnotation(node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]);
  if (issue !== null) return { kind: 'unusable', issue: { code: 'UNKNOWN_SOURCE', cause: `${CONFIG_SOURCE_ANNOTATION}: ${issue}` } };
  if (source === null) return { kind: 'nothing' };
  if (source.namespace === namespace) return { kind: 'source', source };
  const cause = `${describeSource(source)}: this agent reads only ConfigMaps of namespace ${namespace}`;
  return { kind: 'unusable', issue: { code: 'DOWNLOAD_FAILED', cause } };
}

/** Properties of a Node that affect how a ConfigMap is prepared for it. */
export interface NodeProperties {
  readonly group: string | null;
  /** Marked unschedulable. */
  readonly isCordoned: boolean;
  /** Value of the annotation that requests a retry of a rejected payload. */
  readonly retry: string | null;
  /** The assignment that may end pods, as `describeSource` writes it. */
  readonly allowsPodLossOf: string | null;
}

export function readNodeProperties({ metadata, spec }: KubeObject): NodeProperties {
  return {
    group: metadata.labels?.[GROUP_LABEL] ?? null,
    isCordoned: isJsonObject(spec) && spec.unschedulable === true,
    retry: metadata.annotations?.[RETRY_ANNOTATION] ?? null,
    allowsPodLossOf: metadata.annotations?.[ALLOW_POD_LOSS_ANNOTATION] ?? null,
  };
}

/** A key that is equal for equal results: a version of a ConfigMap, read for a Node with the same properties. */
export function preparationKey(
  source: ConfigSource,
  { metadata: { uid, resourceVersion } }: KubeObject,
  properties: NodeProperties,
): string {
  const { group, isCordoned, retry, allowsPodLossOf } = properties;
  return JSON.stringify([describeSource(source), uid, resourceVersion, group, isCordoned, retry, allowsPodLossOf]);
}
