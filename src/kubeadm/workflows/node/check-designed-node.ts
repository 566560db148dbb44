import type { Arg } from '../../../base/arg.ts';
import { isAppError, type Problem, unlessRefused } from '../../../base/errors.ts';
import { type JsonObject, jsonEqual } from '../../../base/json.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { exceeds, highestImpact, needsDrain } from '../../../host/plan/impact.ts';
import type { CheckResult } from '../../../host/run-workflow.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { mayDrain } from '../../../kube/has-permission.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE } from '../../../kube/well-known.ts';
import { defaultKubeletConfiguration } from '../../../kubelet/defaults/effective-configuration.ts';
import {
  effectiveOf,
  type KubeletReading,
  kubeletFieldChanges,
  runningInput,
  type SetupChange,
} from '../../../kubelet/effective/field-changes.ts';
import type { KubeletSetup } from '../../../kubelet/effective/kubelet-setup.ts';
import type { RunningConfigInput } from '../../../kubelet/effective/running-config.ts';
import { isOwnConfigDropIn } from '../../../kubelet/facts/own-config-drop-ins.ts';
import { type LayeredConfig, leafPath, leavesOf } from '../../../kubelet/layers/layers.ts';
import { describeHidden, findHiddenFields, type HiddenField } from '../../../kubelet/layers/overridden-fields.ts';
import { withOrigin } from '../../../kubelet/validate/check-node-fields.ts';
import { UNSAFE_DIRECTORY } from '../../../kubelet/validate/directory-rules.ts';
import { checkDirectories } from '../../../kubelet/workload/check-directories.ts';
import type { PodRisk } from '../../../kubelet/workload/pod-risk.ts';
import { describeRisk, hintOfRisks } from '../../../kubelet/workload/pod-risks.ts';
import { findRisksOnHost } from '../../../kubelet/workload/risks-on-host.ts';
import { type IgnoredChecks, isIgnored } from '../../preflight/check.ts';
import type { NodeDesign } from '../../render/node-design.ts';
import type { NodeGroups } from '../../render/node-groups.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

const NOTHING: CheckResult = { warnings: [], refusals: [] };

/**
 * Finds what the new files of an existing node would end: pods, or the kubelet itself. Compares its present
 * config.yaml, flags and drop-in files with the new ones. A host without credentials of a kubelet or without a
 * config.yaml is not a node yet and is not checked. Facts that cannot be read cause no finding, and a change of
 * other fields costs no request.
 * @returns losses as refusals, or as warnings if they are permitted
 */
export async function checkPodsOfNode(
  context: PhaseContext,
  options: NodeOptions,
  checked: {
    readonly node: ObservedNode;
    readonly design: NodeDesign;
    /** Null: the pods of the node are unknown. */
    readonly podsOf: Cluster | null;
    /** Drains the node before a change that needs it, if the run permits it; null: the node is not drained. */
    readonly drainedBy: Cluster | null;
    readonly reading: KubeletReading;
    /** Paths that the run writes before the kubelet starts. */
    readonly written: readonly string[];
    readonly setups: SetupChange;
  },
): Promise<CheckResult> {
  const {
    run: { podLoss },
    skipPreflight,
    staged,
    catalogue,
  } = options;
  const { node, design, podsOf, drainedBy, reading, written, setups } = checked;
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
    isDrained: async () => {
      if (drainedBy === null || !isDrainedFor(setups, reading, options.run)) return false;
      return (await unlessRefused(mayDrain(drainedBy, nodeName))) === true;
    },
    signal,
  });
  const isRefused = ({ severity }: PodRisk): boolean => severity === 'loss' && podLoss === 'refuse';
  return {
    warnings: risks.filter((risk) => !isRefused(risk)).map(toWarning),
    refusals: risks.filter(isRefused).map((risk) => podsAtRisk(host.name, risk, { design, effective: change.after })),
  };
}

/** Whether a run drains a node for this change, if its credentials may. */
function isDrainedFor({ before, after }: SetupChange, reading: KubeletReading, { drain, allow = 'unsafe' }: NodeOptions['run']): boolean {
  const fields = before === null || drain?.isAllowed !== true ? null : kubeletFieldChanges(before, after, reading);
  const impact = fields === null ? null : highestImpact([...fields.ofConfig, ...fields.ofFlags].map((field) => field.impact));
  return needsDrain(impact) && !exceeds(impact, allow);
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

/**
 * Checks the directories that the new files of a node name, also of a new node: the kubelet deletes the content of
 * `podLogsDir` and runs the programs in `volumePluginDir`. The default directories and unchanged ones cost no request.
 * @returns refusals
 */
export async function checkDirectoriesOfNode(
  { host, signal }: PhaseContext,
  { skipPreflight, staged }: NodeOptions,
  { setups, reading, isNew }: { readonly setups: SetupChange; readonly reading: KubeletReading; readonly isNew: boolean },
): Promise<readonly Problem[]> {
  if (skipPreflight || staged) return [];
  const after = effectiveOf(setups.after, reading);
  const defaults = defaultKubeletConfiguration(reading.minor, reading.catalogue);
  const isDefault = (name: string): boolean => after?.[name] === undefined || after[name] === defaults[name];
  if (after === null || (isDefault('podLogsDir') && isDefault('volumePluginDir'))) return [];
  const before = setups.before === null || isNew ? null : effectiveOf(setups.before, reading);
  const issues = await checkDirectories(host, { before: before ?? defaults, after, hidden: [] }, signal);
  return issues.map(({ path, why }) => ({
    host: host.name,
    code: UNSAFE_DIRECTORY,
    path,
    message: why,
    hint: `Use another directory for ${path}`,
  }));
}

/** The preflight check, and the code of its problems. */
const FIELD_NOT_IN_FORCE = 'FieldNotInForce';

interface HiddenFieldsInput {
  readonly host: string;
  readonly design: NodeDesign;
  readonly setups: SetupChange;
  readonly reading: KubeletReading;
  /** The user declared the cluster's KubeletConfiguration in this run. */
  readonly clusterIsDeclared: boolean;
  readonly ignores: IgnoredChecks;
  /** Flags of the host's own unit, which are not declared for the node. */
  readonly kept: readonly Arg[];
}

/**
 * Compares the configuration that the kubelet will read with the one that the plan writes. Another file of `--config`, and a
 * field that this run changes for this node but that a flag or drop-in file overrides, are refused: the change would have
 * no effect. A flag declared for the node may override the configuration of the cluster or of a group, as in kubeadm.
 */
export function checkHiddenFields(input: HiddenFieldsInput): CheckResult {
  const { host, reading, ignores, kept } = input;
  const { after } = input.setups;
  const refuses = !isIgnored(FIELD_NOT_IN_FORCE, ignores);
  const elsewhere = otherConfigFile(after);
  if (elsewhere !== null) {
    const { message, hint } = elsewhere;
    return refuses
      ? { warnings: [], refusals: [refusal(host, message, hint)] }
      : { warnings: [{ code: FIELD_NOT_IN_FORCE, message }], refusals: [] };
  }
  const layers = layersOf(after, reading);
  if (layers === null) return NOTHING;
  const hidden = findHiddenFields(layers.written, layers.actual);
  const refused = refuses ? hidden.filter(isSetNow(input)) : [];
  const warned = hidden.filter((field) => !refused.includes(field));
  const names = [...new Set(refused.map(({ path }) => path))];
  return {
    warnings: warned.map((field) => ({
      code: field.by.layer === 'flag' ? 'FLAG_SHADOWS_FIELD' : 'DROP_IN_SHADOWS_FIELD',
      field: field.path,
      message: describeHidden(field),
    })),
    refusals:
      refused.length === 0
        ? []
        : [
            refusal(
              host,
              `the change of ${names.join(', ')} would have no effect: ${refused.map(describeHidden).join('; ')}`,
              refused.some((field) => isKept(field, kept))
                ? 'Drop the flag of the host with --kubelet-extra-args NAME-, or remove the field'
                : 'Remove the flag or the field where it is set',
            ),
          ],
  };
}

/** Whether this run changes a field, other than by a default, and the flag that hides it is not declared for the node. */
function isSetNow({ design, setups: { before }, reading, clusterIsDeclared, kept }: HiddenFieldsInput): (field: HiddenField) => boolean {
  const old = before === null ? null : layersOf(before, reading);
  const oldLeaves = old === null ? new Map() : leavesOf(old.written.config);
  return (field) => {
    if (jsonEqual(oldLeaves.get(field.path), field.desired)) return false;
    const layer = design.layered.history.get(field.path)?.at(-1)?.origin.layer;
    if (layer === 'set') return true;
    const isSet = layer === 'node' || layer === 'patch' || (layer === 'cluster' && clusterIsDeclared);
    return isSet && (!isDeclaredFlag(field) || isKept(field, kept));
  };
}

function isKept({ by }: HiddenField, kept: readonly Arg[]): boolean {
  return kept.some(({ name }) => name === by.flag?.name);
}

/** A flag of kubeadm-flags.env is declared for the node. */
function isDeclaredFlag({ by }: HiddenField): boolean {
  return by.flag?.file === FLAGS_ENV;
}

/** Null: the kubelet reads the file that the plan writes. */
function otherConfigFile({ flags }: KubeletSetup): { readonly message: string; readonly hint: string } | null {
  const flag = flags.findLast(({ name }) => name === 'config');
  if (flag?.value === KUBELET_CONFIG_FILE) return null;
  return {
    message:
      flag === undefined
        ? `the kubelet would not read ${KUBELET_CONFIG_FILE}: its unit starts it without --config`
        : `the kubelet would not read ${KUBELET_CONFIG_FILE}: ${flag.source} sets --config=${flag.value}`,
    hint:
      flag === undefined
        ? 'Take over the host with kubeletadm join --ignore-preflight-errors=NodeExists, which writes a drop-in of the unit'
        : `Move the fields of ${flag.value} to an overlay (--overlay), then remove --config from ${flag.source}, or take over the host with kubeletadm join --ignore-preflight-errors=NodeExists, which replaces ExecStart of its unit`,
  };
}

function refusal(host: string, message: string, hint: string): Problem {
  const route = `${hint}. To continue anyway, use --ignore-preflight-errors=${FIELD_NOT_IN_FORCE}`;
  return { host, code: FIELD_NOT_IN_FORCE, message: `preflight: ${message}`, hint: route };
}

/** The configuration of the written files alone, and of all files and flags; null: no kubelet starts with them. */
function layersOf(
  setup: KubeletSetup,
  reading: KubeletReading,
): { readonly written: LayeredConfig; readonly actual: LayeredConfig } | null {
  const input = runningInput(setup, reading);
  const own = { ...input, flags: [], dropIns: input.dropIns.filter(({ path }) => isOwnConfigDropIn(path)) };
  try {
    return { written: reading.layersOf(own), actual: reading.layersOf(input) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}
