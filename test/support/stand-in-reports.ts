import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/base/json.ts';
import { CONFIG_CONDITION, GOOD_REASON, TRIAL_REASON } from '../../src/dynamic/agent/status.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  formatConfigStatus,
  parseSourceAnnotation,
} from '../../src/kubelet/layers/config-source.ts';

/** Creates a Ready Node whose agent has reported the local configuration. */
export async function createAgentNode(cluster: Cluster, name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  const annotations = { [CONFIG_STATUS_ANNOTATION]: '{}' };
  await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, annotations, labels } });
  const status = { nodeInfo: { kubeletVersion: 'v1.36.2' }, conditions: [condition('Ready', 'KubeletReady')] };
  await cluster.patch({ apiVersion: 'v1', kind: 'Node', name }, 'strategic', { status }, { subresource: 'status' });
}

function condition(type: string, reason: string, at = new Date()): JsonObject {
  const time = at.toISOString().replace(/\.\d+/, '');
  return { type, status: 'True', reason, message: '', lastHeartbeatTime: time, lastTransitionTime: time };
}

/** In place of agents: each Node reports a healthy trial of its assignment, or that the trial has passed. */
export async function reportTrials(cluster: Cluster, signal: AbortSignal, { arePassed = false } = {}): Promise<void> {
  while (!signal.aborted) {
    const nodes = await cluster.list({ apiVersion: 'v1', kind: 'Node' }).catch(() => null);
    for (const node of nodes?.items ?? []) await reportTrial(cluster, node, arePassed).catch(() => undefined);
    await sleep(200);
  }
}

/** In place of the agent of a Node: reports a healthy trial of its assignment, or that the trial has passed. */
export async function reportTrial(cluster: Cluster, node: KubeObject, isPassed: boolean, at = new Date()): Promise<void> {
  const { name, annotations = {} } = node.metadata;
  const { source } = parseSourceAnnotation(annotations[CONFIG_SOURCE_ANNOTATION]);
  if (source === null) return;
  const { uid = '', resourceVersion = '' } = (await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', ...source }))?.metadata ?? {};
  const identity = { ...source, uid, resourceVersion };
  const reported = JSON.stringify(
    formatConfigStatus({ assigned: identity, active: identity, lastKnownGood: isPassed ? identity : null, error: null }),
  );
  if (annotations[CONFIG_STATUS_ANNOTATION] === reported) return;
  const ref = { apiVersion: 'v1', kind: 'Node', name };
  await cluster.patch(
    ref,
    'strategic',
    { status: { conditions: [condition(CONFIG_CONDITION, isPassed ? GOOD_REASON : TRIAL_REASON, at)] } },
    { subresource: 'status' },
  );
  await cluster.patch(ref, 'merge', { metadata: { annotations: { [CONFIG_STATUS_ANNOTATION]: reported } } });
}
