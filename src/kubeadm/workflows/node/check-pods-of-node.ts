import { isAppError, type Problem } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { runningInput, type SetupChange } from '../../../kubelet/effective/field-changes.ts';
import type { RunningConfigInput } from '../../../kubelet/effective/running-config.ts';
import { leafPath, leavesOf } from '../../../kubelet/layers/layers.ts';
import { withOrigin } from '../../../kubelet/validate/check-node-fields.ts';
import type { PodRisk } from '../../../kubelet/workload/pod-risk.ts';
import { describeRisk, hintOfRisks } from '../../../kubelet/workload/pod-risks.ts';
import { findRisksOnHost } from '../../../kubelet/workload/risks-on-host.ts';
import type { NodeDesign } from '../../render/node-design.ts';
import type { NodeGroups } from '../../render/node-groups.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

/** The node, its new files, and the cluster that knows its pods. */
interface CheckedNode {
  readonly node: ObservedNode;
  readonly design: NodeDesign;
  /** Null: the pods of the node are unknown. */
  readonly podsOf: Cluster | null;
  /** Paths that the run writes before the kubelet starts. */
  readonly written: readonly string[];
  readonly setups: SetupChange;
}

interface CheckedPods {
  readonly warnings: readonly Warning[];
  readonly refusals: readonly Problem[];
}

const NOTHING: CheckedPods = { warnings: [], refusals: [] };

/**
 * Finds what the new files of an existing node would end: pods, or the kubelet itself. Compares its present
 * config.yaml, flags and drop-in files with the new ones. A host without credentials of a kubelet or without a
 * config.yaml is not a node yet and is not checked. Facts that cannot be read cause no finding, and a change of
 * other fields costs no request.
 * @returns losses as refusals, or as warnings if they are permitted
 */
export async function checkPodsOfNode(context: PhaseContext, options: NodeOptions, checked: CheckedNode): Promise<CheckedPods> {
  const {
    run: { podLoss },
    skipPreflight,
    staged,
    catalogue,
  } = options;
  const { node, design, podsOf, written, setups } = checked;
  if (podLoss === 'ignore' || skipPreflight || staged || node.facts.identity.state === 'missing' || setups.before === null) return NOTHING;
  const { host, signal } = context;
  const { minor, nodeName } = design;
  const inputs = [runningInput(setups.before, { catalogue, minor }), runningInput(setups.after, { catalogue, minor })] as const;
  const change = changeOf(options.groups, ...inputs);
  if (change === null) return NOTHING;
  const [old, flags] = [setups.before.flags, setups.after.flags];
  const risks = await findRisksOnHost({
    ...change,
    host,
    cluster: podsOf,
    nodeName,
    minor,
    catalogue,
    flags,
    newFlags: flags.filter(({ name, value }) => !old.some((one) => one.name === name && one.value === value)),
    given: {},
    hidden: written,
    removesManagerStates: true,
    signal,
  });
  const isRefused = ({ severity }: PodRisk): boolean => severity === 'loss' && podLoss === 'refuse';
  return {
    warnings: risks.filter((risk) => !isRefused(risk)).map(toWarning),
    refusals: risks.filter(isRefused).map((risk) => podsAtRisk(host.name, risk, { design, effective: change.after })),
  };
}

/** Null: a kubelet does not start with one of the configurations. */
function changeOf(groups: NodeGroups, present: RunningConfigInput, desired: RunningConfigInput) {
  try {
    return { before: groups.effectiveOf(present), after: groups.effectiveOf(desired) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

function toWarning(risk: PodRisk): Warning {
  return { code: 'PODS_AT_RISK', message: describeRisk(risk), field: risk.path };
}

interface Values {
  readonly design: Pick<NodeDesign, 'layered'>;
  /** With flags and drop-in files, which may override the design. */
  readonly effective: JsonObject;
}

/** Names the layer of the value, if the kubelet would use the value of the design. */
function podsAtRisk(host: string, risk: PodRisk, { design: { layered }, effective }: Values): Problem {
  const found = { host, code: 'PODS_AT_RISK', path: risk.path, message: describeRisk(risk), hint: hintOfRisks([risk]) };
  const [used, designed] = [effective, layered.config].map((config) => JSON.stringify(leavesOf(config).get(leafPath(risk.path))));
  const { path, ...problem } = used !== undefined && used === designed ? withOrigin(found, layered) : found;
  // Most reasons begin with the field.
  return risk.why.startsWith(risk.path) ? problem : { ...problem, path };
}
