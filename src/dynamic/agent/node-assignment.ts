import { isJsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigSource,
  describeSource,
  parseSourceAnnotation,
  RETRY_ANNOTATION,
} from '../../kubelet/config-source.ts';
import { GROUP_LABEL } from './prepare-payload.ts';
import type { SyncFailure } from './state.ts';

/** What a Node is assigned. */
export type NodeAssignment =
  | { readonly kind: 'nothing' }
  /** Nothing can be made of it, or it is not for this agent to read. */
  | { readonly kind: 'unusable'; readonly issue: SyncFailure }
  | { readonly kind: 'source'; readonly source: ConfigSource };

/**
 * Reads what a Node is assigned.
 * @param namespace the one whose ConfigMaps the agent reads
 */
export function readNodeAssignment(node: KubeObject, namespace: string): NodeAssignment {
  const { source, issue } = parseSourceAnnotation(node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]);
  if (issue !== null) return { kind: 'unusable', issue: { code: 'UNKNOWN_SOURCE', cause: `${CONFIG_SOURCE_ANNOTATION}: ${issue}` } };
  if (source === null) return { kind: 'nothing' };
  if (source.namespace === namespace) return { kind: 'source', source };
  const cause = `${describeSource(source)}: this agent reads ConfigMaps of ${namespace} only`;
  return { kind: 'unusable', issue: { code: 'DOWNLOAD_FAILED', cause } };
}

/** What else of a Node decides on what is made of a ConfigMap for it. */
export interface NodeTerms {
  readonly group: string | null;
  /** It takes no new pods. */
  readonly isCordoned: boolean;
  /** The word by which somebody asks for a rejected payload to be tried once more. */
  readonly retry: string | null;
}

/** Reads them. */
export function readNodeTerms({ metadata, spec }: KubeObject): NodeTerms {
  return {
    group: metadata.labels?.[GROUP_LABEL] ?? null,
    isCordoned: isJsonObject(spec) && spec.unschedulable === true,
    retry: metadata.annotations?.[RETRY_ANNOTATION] ?? null,
  };
}

/** Is the same for what comes to the same: a version of a ConfigMap, read for a Node on the same terms. */
export function preparationKey(source: ConfigSource, { metadata: { uid, resourceVersion } }: KubeObject, terms: NodeTerms): string {
  return JSON.stringify([describeSource(source), uid, resourceVersion, terms.group, terms.isCordoned, terms.retry]);
}
