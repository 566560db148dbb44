import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { isJsonObject } from '../../base/json.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Impact } from '../../host/plan/impact.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { agentNamespaceProblem } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBE_SYSTEM, KUBELET_CONF, KUBELET_CONFIG_FILE, KUBELET_DIR } from '../../kube/well-known.ts';
import { type AgentRightsInput, agentFormerAccount, agentRightsPhase, type FormerAccountInput } from '../../kubeadm/phases/agent-rights.ts';
import { type ChangeUnitsInput, changeUnits } from '../../kubeadm/phases/change-units.ts';
import { parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { AGENT_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import {
  AGENT_SERVICE,
  AGENT_UNIT,
  AGENT_WANTS_LINK,
  DROP_IN_DIRECTORY,
  type InstalledAgent,
  POINTER_DROP_IN,
  readInstalledAgent,
  renderAgentUnit,
} from '../../kubelet/node-agent/agent-units.ts';
import { signersFile } from '../../kubelet/node-agent/layout.ts';
import { NATIVE_DROP_IN, nativeFlags } from '../../kubelet/node-agent/native-flags.ts';
import { canReplaceManagerState } from '../agent/agent-options.ts';
import {
  type AgentProgramInput,
  agentDirectory,
  agentOldPrograms,
  agentProgram,
  agentSigners,
  signatureProblem,
} from '../phases/agent-program.ts';
import { configSourceDropped } from '../status/dynamic-problems.ts';
import type { Backend } from '../status/node-config.ts';
import { type AgentAssignmentInput, agentAssignment, moveAssignment } from './move-assignment.ts';
import { type DynamicHost, type DynamicHostOptions, observeDynamicHost, planPointerDropIn } from './observe-dynamic-host.ts';
import { type InstalledProgram, prepareProgram } from './prepare-program.ts';

/** Options of `dynamic enable` that reach each host as they are given. */
export interface EnableSettings {
  /** Null: chosen by the version of the kubelet. */
  readonly backend: Backend | null;
  /** Options of `agent` as given on the command line. */
  readonly agentOptions: readonly string[];
  /** The highest class of changes that the agent applies. */
  readonly allow: Impact;
  /** Null: the agent serves no endpoints. */
  readonly agentAddress: string | null;
}

export interface EnableOptions extends DynamicHostOptions, EnableSettings {
  /** The namespace of node configurations. */
  readonly namespace: string;
  readonly program: InstalledProgram;
  /** Whether the agent accepts only signed ConfigMaps. `text`: the file of signers. */
  readonly signers: { readonly kind: 'unchanged' | 'not-required' } | { readonly kind: 'required'; readonly text: string };
  /** Directory for kubelets up to 1.23. */
  readonly nativeDirectory: string;
}

/** The inputs of the phases; null or absent: the phase changes nothing. */
interface EnableInput {
  readonly program?: AgentProgramInput;
  readonly rights?: AgentRightsInput;
  readonly directory?: string;
  readonly signers?: { readonly text: string | null } | null;
  readonly agent?: ChangeUnitsInput;
  readonly assignment?: AgentAssignmentInput | null;
  readonly formerAccount?: FormerAccountInput;
  readonly oldPrograms?: { readonly directory: string; readonly keep: string | null };
  readonly kubelet?: ChangeUnitsInput;
}

/** Starts the agent. The running kubelet is not restarted; it reads the agent's pointer at its next start. */
const startAgent = changeUnits('agent-start', 'Start the agent and let the kubelet unit read the configuration that the agent selects', [
  AGENT_WANTS_LINK,
]);
const startKubelet = changeUnits('kubelet-flags', 'Start the kubelet with --dynamic-config-dir');

/** Enables the configuration of a node from ConfigMaps: by an agent, or up to 1.23 by the kubelet itself. */
export const enableWorkflow: Workflow<EnableOptions, EnableInput> = {
  name: 'dynamic enable',
  phases: [
    agentProgram.select((input) => input.program ?? null),
    agentRightsPhase.select((input) => input.rights ?? null),
    agentDirectory.select((input) => input.directory ?? null),
    agentSigners.select((input) => input.signers ?? null),
    startAgent.select((input) => input.agent ?? null),
    agentAssignment.select((input) => input.assignment ?? null),
    agentFormerAccount.select((input) => input.formerAccount ?? null),
    agentOldPrograms.select((input) => input.oldPrograms ?? null),
    startKubelet.select((input) => input.kubelet ?? null),
  ],
  prepare: prepareEnable,
};

async function prepareEnable(context: PhaseContext, options: EnableOptions): Promise<Prepared<EnableInput>> {
  const found = await observeDynamicHost(context, options, { backend: options.backend, needsNode: true });
  const { backend } = found;
  const prepared = backend === 'native' ? await prepareNative(context, options, found) : await prepareAgent(context, options, found);
  return { ...prepared, node: found.node, isDown: found.isDown, refusals: [...found.refusals, ...prepared.refusals] };
}

async function isMissing({ host, signal }: PhaseContext, path: string): Promise<boolean> {
  return (await observe(host, fileFacts([path]), signal)).get(path)?.content === undefined;
}

/** The agent that an earlier run installed. Without its unit: whether the drop-in directory existed before the agent. */
async function installedAgent({ host, signal }: PhaseContext): Promise<Pick<InstalledAgent, 'signersFile' | 'keepsDropInDirectory'>> {
  const names = defineFact({ names: { kind: 'list', path: DROP_IN_DIRECTORY } }, (answers) => answers.names as readonly string[] | null);
  const found = await observe(host, combineFacts({ unit: fileFacts([AGENT_UNIT]), names }), signal);
  const unit = found.unit.get(AGENT_UNIT)?.content;
  if (unit !== undefined) return readInstalledAgent(unit);
  const isOwn = found.names?.some((name) => [POINTER_DROP_IN, NATIVE_DROP_IN].includes(`${DROP_IN_DIRECTORY}/${name}`)) ?? true;
  return { signersFile: null, keepsDropInDirectory: !isOwn };
}

async function prepareAgent(context: PhaseContext, options: EnableOptions, found: DynamicHost): Promise<Prepared<EnableInput>> {
  const { nodeName, unitTexts } = found;
  const host = context.host.name;
  const refusals: Problem[] = [];
  const refuse = (code: string, message: string, hint: string): void => void refusals.push({ host, code, message, hint });
  const program = await prepareProgram(context, { ...options, machine: found.machine, subject: 'the agent' }, refuse);
  const dropIn = unitTexts === null ? null : planPointerDropIn(options.templates, unitTexts, AGENT_DIRECTORY);
  if (dropIn?.kind === 'impossible') refuse('KUBELET_UNIT_UNSUITABLE', dropIn.why, dropIn.hint);
  if (dropIn?.kind === 'drop-in' && (await isMissing(context, dropIn.localConfig)))
    refuse(
      'HOST_FILE_MISSING',
      `${dropIn.localConfig}, the local configuration of the kubelet, does not exist`,
      'Rerun kubeletadm init or kubeletadm join on the host',
    );
  const kubeconfig = found.flag('kubeconfig') ?? KUBELET_CONF;
  if (await isMissing(context, kubeconfig))
    refuse(
      'NODE_NO_CREDENTIALS',
      `${kubeconfig} does not exist, but the agent needs this kubeconfig of the kubelet`,
      'Join the host to the cluster first (kubeletadm init or kubeletadm join)',
    );
  const { namespace } = options;
  const shared = agentNamespaceProblem(namespace);
  if (shared !== null) refusals.push({ host, ...shared });
  const move = nodeName === null || context.cluster === null ? null : await moveAssignment(context.cluster, nodeName, namespace);
  if (move?.refusal != null) refusals.push({ host, ...move.refusal });
  if (dropIn?.kind !== 'drop-in' || program === null || nodeName === null) return { input: {}, warnings: [], refusals };
  const { signers } = options;
  const words = ['--kubeconfig', kubeconfig, '--node-name', nodeName, '--namespace', namespace];
  const localConfig = dropIn.localConfig === KUBELET_CONFIG_FILE ? [] : ['--local-config', dropIn.localConfig];
  const agentUnit = await agentUnitOf(context, options, found, [...program.command, 'agent', ...words, ...localConfig]);
  if (agentUnit.problem !== null) refusals.push(agentUnit.problem);
  return {
    input: {
      program,
      rights: { nodeName, namespace },
      directory: AGENT_DIRECTORY,
      signers: signers.kind === 'unchanged' ? null : { text: signers.kind === 'required' ? signers.text : null },
      agent: {
        ...unitsWith(found, [unitFile(AGENT_UNIT, agentUnit.text), unitFile(POINTER_DROP_IN, dropIn.text)]),
        running: AGENT_SERVICE,
        readyUrl: options.agentAddress === null ? null : `http://${options.agentAddress}/readyz`,
      },
      assignment: move?.input ?? null,
      formerAccount: { nodeName, directory: AGENT_DIRECTORY },
      oldPrograms: { directory: options.program.directory, keep: program.path },
    },
    warnings: [],
    refusals,
  };
}

/** The unit of the agent, and the problem of a host that cannot verify the required signatures. */
async function agentUnitOf(
  context: PhaseContext,
  { signers, ...options }: EnableOptions,
  { flag }: DynamicHost,
  command: readonly string[],
) {
  const installed = await installedAgent(context);
  const isSigned = signers.kind === 'required' || (signers.kind === 'unchanged' && installed.signersFile !== null);
  const text = renderAgentUnit(options.templates, {
    command: [...command, ...(isSigned ? ['--require-signature', signersFile(AGENT_DIRECTORY)] : []), ...options.agentOptions],
    directory: AGENT_DIRECTORY,
    kubeletDirectory: canReplaceManagerState(options.allow) ? (flag('root-dir') ?? KUBELET_DIR) : null,
    keepsDropInDirectory: installed.keepsDropInDirectory,
  });
  return { text, problem: isSigned ? await signatureProblem(context.host, context.signal) : null };
}

async function prepareNative(context: PhaseContext, options: EnableOptions, found: DynamicHost): Promise<Prepared<EnableInput>> {
  const { unitTexts, minor, nodeName } = found;
  const host = context.host.name;
  const refusals: Problem[] = [];
  const warnings: Warning[] = [];
  const flags = unitTexts === null ? null : nativeFlags(options.templates, unitTexts, { directory: options.nativeDirectory, minor });
  if (flags?.kind === 'impossible') refusals.push({ host, code: 'KUBELET_UNIT_UNSUITABLE', message: flags.why, hint: flags.hint });
  if (options.signers.kind === 'required')
    refusals.push({
      host,
      code: 'SIGNATURES_NOT_SUPPORTED',
      message: 'the kubelet itself (up to 1.23) reads the assigned ConfigMaps and cannot verify signatures',
      hint: 'Install the agent, which verifies signatures, with --backend agent',
    });
  if (nodeName !== null && context.cluster !== null && refusals.length + found.refusals.length === 0) {
    const { problem, warning } = await keepsConfigSource(context.cluster, nodeName);
    if (problem !== null) refusals.push({ ...problem, host });
    if (warning !== null) warnings.push(warning);
  }
  if (flags === null || flags.kind === 'impossible') return { input: {}, warnings, refusals };
  const units = unitsWith(found, flags.kind === 'up-to-date' ? [] : [unitFile(NATIVE_DROP_IN, flags.text)]);
  const when = found.runsWith('dynamic-config-dir') ? 'changed' : 'always';
  const kubelet: ChangeUnitsInput = { ...units, kubelet: { when, reason: 'the flags of the kubelet change' } };
  return { input: { kubelet }, warnings, refusals };
}

function unitFile(path: string, content: string): DesiredFile {
  return { path, content, mode: 0o644, owner: 'root:root' };
}

/** Only these files are written; no unit is started or stopped. */
function unitsWith({ health, verification }: DynamicHost, files: readonly DesiredFile[]): ChangeUnitsInput {
  return { files, removed: [], running: null, stopped: null, readyUrl: null, kubelet: null, health, verification };
}

/** The first API server with dry runs. */
const FIRST_DRY_RUN_MINOR = 13;

/**
 * Checks with a dry run that an API server keeps `spec.configSource`: an API server that drops the field
 * returns 200 as well.
 * @returns the problem, or a warning if the check is not possible
 */
async function keepsConfigSource(
  cluster: Cluster,
  nodeName: string,
): Promise<{ readonly problem: Problem | null; readonly warning: Warning | null }> {
  const version = await cluster.version();
  if ((parseMinor(version) ?? 0) < FIRST_DRY_RUN_MINOR) return { problem: null, warning: null };
  const configMap = { namespace: KUBE_SYSTEM, name: 'kubeletadm-probe', kubeletConfigKey: 'kubelet' };
  try {
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const { spec } = await cluster.patch(ref, 'merge', { spec: { configSource: { configMap } } }, { dryRun: true });
    const isKept = isJsonObject(spec) && isJsonObject(spec.configSource);
    return { problem: isKept ? null : configSourceDropped(nodeName, cluster.server, version), warning: null };
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN') && !(error instanceof AppError)) throw error;
    const message = `cannot check whether the API server keeps the field spec.configSource of Nodes: ${error.problems[0]?.message ?? ''}`;
    return { problem: null, warning: { code: 'DYNAMIC_GATE_UNKNOWN', message } };
  }
}
