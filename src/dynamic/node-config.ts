import { NAMESPACE_ANNOTATION } from '../kube/agent-namespace.ts';
import { conditionOf, isNodeReady, nodeIssues, readyHeartbeat } from '../kube/node-conditions.ts';
import type { KubeObject } from '../kube/object.ts';
import { type Minor, parseMinor } from '../kubelet/catalogue.ts';
import {
  CONFIG_REPORT_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  type ConfigStatus,
  type ParsedSource,
  parseConfigSource,
  parseConfigStatus,
  parseSourceAnnotation,
  parseStatusAnnotation,
} from '../kubelet/config-source.ts';
import { LAST_DYNAMIC_MINOR } from '../kubelet/effective/dynamic-store.ts';
import { type ConfigReport, describes, parseReport } from './agent/config-report.ts';
import { CONFIG_CONDITION, GOOD_REASON, TRIAL_REASON } from './agent/status.ts';
import { type Assigner, readAssigner } from './assigned-by.ts';

/** What puts the configuration into force: the kubelet itself (up to 1.23), or the agent beside it. */
export type Backend = 'native' | 'agent';

/** What a Node says about its dynamic configuration. */
export interface NodeConfig {
  readonly name: string;
  /** e.g. `v1.21.0`; empty where the kubelet has not said it. */
  readonly kubeletVersion: string;
  readonly minor: Minor | null;
  readonly backend: Backend;
  /** The namespace whose ConfigMaps its agent may read, as the Node says; null: it does not say. */
  readonly agentNamespace: string | null;
  /** Assigned by an administrator. */
  readonly source: ParsedSource;
  /** Who assigned that, and when; null where the Node does not tell. */
  readonly assigner: Assigner | null;
  readonly resourceVersion: string;
  /** What was reported; null: nothing ever was, so nobody on the node reads the source. */
  readonly status: ConfigStatus | null;
  /** The agent has seen the kubelet healthy with what is in trial. True of native ones: they report when they are up. */
  readonly isTrialHealthy: boolean;
  /** What the agent says in its condition; null: native, or it says nothing. */
  readonly word: { readonly reason: string; readonly message: string; readonly since: Date | null } | null;
  /** Of the agent; null: native, or the agent is of an earlier version. */
  readonly report: ConfigReport | null;
  /** The condition and the status were not written together: the agent is about to write the other one. */
  readonly isReporting: boolean;
  readonly isReady: boolean;
  /** What its conditions say against it. */
  readonly issues: readonly string[];
  /** When its kubelet was last heard of; null where that is not told. */
  readonly heartbeat: Date | null;
}

/**
 * Reads a Node. Where an agent has reported it is the agent's; else the version of the kubelet decides.
 * @param chosen what `--backend` says, in place of that
 */
export function readNodeConfig(node: KubeObject, chosen?: Backend): NodeConfig {
  const { spec = {}, status = {} } = node as { readonly spec?: NodeSpec; readonly status?: NodeStatus };
  const annotations = node.metadata.annotations ?? {};
  const kubeletVersion = status.nodeInfo?.kubeletVersion ?? '';
  const minor = parseMinor(kubeletVersion);
  const reported = annotations[CONFIG_STATUS_ANNOTATION];
  const report = parseReport(annotations[CONFIG_REPORT_ANNOTATION]);
  const backend = chosen ?? (reported !== undefined || (minor ?? LAST_DYNAMIC_MINOR + 1) > LAST_DYNAMIC_MINOR ? 'agent' : 'native');
  const source = backend === 'native' ? parseConfigSource(spec.configSource) : parseSourceAnnotation(annotations[CONFIG_SOURCE_ANNOTATION]);
  const heartbeat = new Date(readyHeartbeat(node) ?? Number.NaN);
  return {
    name: node.metadata.name,
    kubeletVersion,
    minor,
    backend,
    agentNamespace: backend === 'agent' ? (annotations[NAMESPACE_ANNOTATION] ?? null) : null,
    source,
    assigner: readAssigner(node, source.source),
    resourceVersion: node.metadata.resourceVersion ?? '',
    status: backend === 'native' ? parseConfigStatus(status.config) : parseStatusAnnotation(reported),
    // The condition is written before the annotation: it may be ahead.
    isTrialHealthy: backend === 'native' || [TRIAL_REASON, GOOD_REASON].includes(conditionOf(node, CONFIG_CONDITION)?.reason ?? ''),
    word: backend === 'agent' ? wordOf(node) : null,
    report: backend === 'agent' ? report : null,
    isReporting: backend === 'agent' && report !== null && !describes(report, conditionOf(node, CONFIG_CONDITION) ?? {}),
    isReady: isNodeReady(node),
    issues: nodeIssues(node),
    heartbeat: Number.isNaN(heartbeat.getTime()) ? null : heartbeat,
  };
}

function wordOf(node: KubeObject): NodeConfig['word'] {
  const condition = conditionOf(node, CONFIG_CONDITION);
  if (condition === null) return null;
  const since = new Date(condition.lastTransitionTime ?? Number.NaN);
  return { reason: condition.reason ?? '', message: condition.message ?? '', since: Number.isNaN(since.getTime()) ? null : since };
}

interface NodeSpec {
  readonly configSource?: Parameters<typeof parseConfigSource>[0];
}

interface NodeStatus {
  readonly nodeInfo?: { readonly kubeletVersion?: string };
  readonly config?: Parameters<typeof parseConfigStatus>[0];
}
