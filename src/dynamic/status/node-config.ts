import type { Json } from '../../base/json.ts';
import { NAMESPACE_ANNOTATION } from '../../kube/agent-namespace.ts';
import type { Labels } from '../../kube/label-selector.ts';
import { conditionOf, isNodeReady, nodeIssues, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type Minor, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { type Assigner, readAssigner } from '../../kubelet/effective/node-source.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_REPORT_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  type ConfigStatus,
  type ParsedSource,
  parseConfigSource,
  parseConfigStatus,
  parseSourceAnnotation,
  parseStatusAnnotation,
} from '../../kubelet/layers/config-source.ts';
import { type ConfigReport, isConditionOf, parseReport } from '../agent/config-report.ts';
import { GROUP_LABEL } from '../agent/prepare-payload.ts';
import { CONFIG_CONDITION, GOOD_REASON, TRIAL_REASON } from '../agent/status.ts';
import { type AssignmentRecord, CONFIG_HISTORY_ANNOTATION, parseAssignmentHistory } from './assignment-history.ts';

/** The component that applies the configuration: the kubelet (up to 1.23) or the agent on its host. */
export type Backend = 'native' | 'agent';

/** The dynamic configuration of a Node. */
export interface NodeConfig {
  readonly name: string;
  readonly labels: Labels;
  /** e.g. `v1.21.0`; empty if the kubelet has not reported it. */
  readonly kubeletVersion: string;
  readonly minor: Minor | null;
  readonly backend: Backend;
  /** The namespace whose ConfigMaps its agent may read; null: unknown. */
  readonly agentNamespace: string | null;
  /** Assigned by an administrator. */
  readonly source: ParsedSource;
  /** The label with the group whose layer the node receives; null: none. */
  readonly group: string | null;
  /** The assignment that may end pods, as `describeSource` writes it; null: none. */
  readonly allowsPodLossOf: string | null;
  /** Author and time of the assignment; null if unknown. */
  readonly assigner: Assigner | null;
  /** Its last assignments by kubeletadm, the oldest first. */
  readonly history: readonly AssignmentRecord[];
  readonly resourceVersion: string;
  /** The reported status; null: never reported, so that neither kubelet nor agent reads the source. */
  readonly status: ConfigStatus | null;
  /** Whether the agent has observed a healthy kubelet with the configuration in trial. Always true for `native`. */
  readonly isTrialHealthy: boolean;
  /** Condition of the agent; null: native, or no condition. */
  readonly agentCondition: { readonly reason: string; readonly message: string; readonly since: Date | null } | null;
  /** Report of the agent; null: native, or an earlier version of the agent. */
  readonly report: ConfigReport | null;
  /** Condition and status do not belong together: the agent is about to write the other one. */
  readonly isReporting: boolean;
  readonly isReady: boolean;
  /** Reasons from its conditions, such as NotReady. */
  readonly issues: readonly string[];
  /** Last heartbeat of its kubelet; null if unknown. */
  readonly heartbeat: Date | null;
}

/**
 * Reads a Node. A Node with an agent report uses the agent; otherwise the kubelet version decides.
 * @param chosen value of `--backend`, which takes precedence
 */
export function readNodeConfig(node: KubeObject, chosen?: Backend): NodeConfig {
  const { spec = {}, status = {} } = node as {
    readonly spec?: { readonly configSource?: Json };
    readonly status?: { readonly nodeInfo?: { readonly kubeletVersion?: string }; readonly config?: Json };
  };
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
    labels: node.metadata.labels ?? {},
    kubeletVersion,
    minor,
    backend,
    agentNamespace: backend === 'agent' ? (annotations[NAMESPACE_ANNOTATION] ?? null) : null,
    source,
    group: node.metadata.labels?.[GROUP_LABEL] ?? null,
    allowsPodLossOf: annotations[ALLOW_POD_LOSS_ANNOTATION] ?? null,
    assigner: readAssigner(node, source.source),
    history: parseAssignmentHistory(annotations[CONFIG_HISTORY_ANNOTATION]),
    resourceVersion: node.metadata.resourceVersion ?? '',
    status: backend === 'native' ? parseConfigStatus(status.config) : parseStatusAnnotation(reported),
    // The agent writes the condition before the annotation.
    isTrialHealthy: backend === 'native' || [TRIAL_REASON, GOOD_REASON].includes(conditionOf(node, CONFIG_CONDITION)?.reason ?? ''),
    agentCondition: backend === 'agent' ? readAgentCondition(node) : null,
    report: backend === 'agent' ? report : null,
    isReporting: backend === 'agent' && report !== null && !isConditionOf(report, conditionOf(node, CONFIG_CONDITION) ?? {}),
    isReady: isNodeReady(node),
    issues: nodeIssues(node),
    heartbeat: Number.isNaN(heartbeat.getTime()) ? null : heartbeat,
  };
}

function readAgentCondition(node: KubeObject): NodeConfig['agentCondition'] {
  const condition = conditionOf(node, CONFIG_CONDITION);
  if (condition === null) return null;
  const since = new Date(condition.lastTransitionTime ?? Number.NaN);
  return { reason: condition.reason ?? '', message: condition.message ?? '', since: Number.isNaN(since.getTime()) ? null : since };
}
