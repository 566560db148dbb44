import type { RunTime } from '../../base/clock.ts';
import { isJsonObject, type Json } from '../../base/json.ts';
import type { Reporter } from '../../base/reporter.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { ObjectChange } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  parseConfigSource,
  parseIdentity,
  parseSourceAnnotation,
  parseStatusAnnotation,
} from '../../kubelet/layers/config-source.ts';
import { CONFIG_HISTORY_ANNOTATION, parseAssignmentHistory } from '../status/assignment-history.ts';
import { PUSHED_LABEL } from '../workflows/push-config.ts';

export interface CollectRequest {
  readonly olderThan: { readonly ms: number };
  readonly namespace: string;
  readonly cluster: KubeconfigRequest;
}

/**
 * Plans to delete the ConfigMaps that no node uses.
 * @param use receives the plan, and how to apply it, which gives the names of the deleted ConfigMaps
 * @throws the errors of opening, reading and changing the cluster
 */
export async function collectConfigMaps<Result>(
  services: OpenClusterPorts & Pick<RunTime, 'clock'>,
  { olderThan, namespace, cluster: named }: CollectRequest,
  reporter: Reporter,
  use: (
    planned: { readonly changes: readonly ObjectChange[]; readonly cluster: Cluster },
    apply: () => Promise<readonly string[]>,
  ) => Promise<Result>,
): Promise<Result> {
  const collect = async (cluster: Cluster) => {
    const changes = await planGarbage(cluster, namespace, services.clock.now().getTime() - olderThan.ms);
    return use({ changes, cluster }, async () => {
      for (const change of changes) await applyClusterChange(cluster, change);
      return changes.flatMap((change) => (change.kind === 'delete-object' ? [change.ref.name] : []));
    });
  };
  return withCluster(services, named, collect, reporter);
}

/**
 * Plans the removal of ConfigMaps created by `dynamic push` that no Node names as assigned, active or last
 * known good, and that `dynamic undo` would not assign.
 * @param before creation time in milliseconds; later ConfigMaps are kept, because they may be about to be assigned
 * @returns in order of their names
 */
export async function planGarbage(cluster: Cluster, namespace: string, before: number): Promise<readonly ObjectChange[]> {
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace }, { labelSelector: `${PUSHED_LABEL}=true` });
  const nodes = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
  const used = new Set(nodes.items.flatMap(namedBy));
  const isOld = ({ metadata }: KubeObject): boolean => Date.parse(metadata.creationTimestamp ?? '') <= before;
  return items
    .filter((object) => !used.has(`${namespace}/${object.metadata.name}`) && isOld(object))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((object) => ({
      kind: 'delete-object',
      ref: { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: object.metadata.name },
      reason: 'not assigned, active, last known good or previous on any node',
    }));
}

/** `namespace/name` of every ConfigMap that a Node names. */
function namedBy(node: KubeObject): readonly string[] {
  const spec = (node.spec ?? {}) as { readonly configSource?: Json };
  const status = (node.status ?? {}) as { readonly config?: Json };
  const annotations = node.metadata.annotations ?? {};
  const reported = isJsonObject(status.config) ? status.config : {};
  const byAgent = parseStatusAnnotation(annotations[CONFIG_STATUS_ANNOTATION]);
  const sources = [
    parseConfigSource(spec.configSource).source,
    parseSourceAnnotation(annotations[CONFIG_SOURCE_ANNOTATION]).source,
    ...MEMBERS.map((member) => parseIdentity(reported[member])),
    ...MEMBERS.map((member) => byAgent?.[member] ?? null),
    parseAssignmentHistory(annotations[CONFIG_HISTORY_ANNOTATION]).at(-1)?.from.source ?? null,
  ];
  return sources.flatMap((source) => (source === null ? [] : [`${source.namespace}/${source.name}`]));
}

const MEMBERS = ['assigned', 'active', 'lastKnownGood'] as const;
