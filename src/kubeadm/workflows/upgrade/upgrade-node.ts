import type { Arg } from '../../../base/arg.ts';
import { AppError, isAppError, type Problem } from '../../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import { documentOfValue } from '../../../codec/document-of-value.ts';
import { renderTemplate } from '../../../codec/render-template.ts';
import { parseSource, sourceToJson } from '../../../codec/source.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { NodeClaim } from '../../../host/node-claim.ts';
import { type ClusterContext, type PhaseContext, withCluster } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { Workflow } from '../../../host/run-workflow.ts';
import type { CommandLineWord } from '../../../host/systemd/exec-start.ts';
import { lastFlag } from '../../../host/systemd/try-drop-in.ts';
import { isNodeReady } from '../../../kube/node-conditions.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { FLAGS_ENV, INSTANCE_CONFIG, KUBEADM_TMP_DIR, KUBELET_CONF_D } from '../../../kube/well-known.ts';
import { type Catalogue, NEWEST_MINOR } from '../../../kubelet/catalogue/catalogue.ts';
import { registeredNode } from '../../../kubelet/facts/kubelet-identity.ts';
import { isSocketFlag, joinFlags, type UpgradedFlags, upgradeFlags } from '../../../kubelet/flags/flags-env.ts';
import type { KubeletPatch } from '../../../kubelet/layers/patch-files.ts';
import type { FieldSetting } from '../../../kubelet/layers/setting.ts';
import { decodeNodeSettings, NO_SETTINGS, NODE_SETTINGS_PATH, type NodeSettings } from '../../node-settings/node-settings.ts';
import { upgradeKubeletConfig } from '../../phases/kubelet-start.ts';
import type { OwnNodeCheck } from '../../phases/mark-node.ts';
import { hasSocketAnnotation, removeSocketAnnotation } from '../../phases/mark-node.ts';
import type { RestoredFiles } from '../../phases/restore-files.ts';
import { saveUpgradedNodeSettings } from '../../phases/save-node-settings.ts';
import type { NodeOverlay } from '../../render/config-drop-ins.ts';
import { backupTimestamp } from '../../upgrade/upgrade-record.ts';
import { readClusterBaseline, type UpgradedDocuments, unlessForbidden } from '../node/cluster-baseline.ts';
import { designObservedNode } from '../node/design-observed-node.ts';
import { identifyNode, type NodeTrust, ownNodeCheck } from '../node/identify-node.ts';
import { readJoinedConfig } from '../node/joined-config.ts';
import type { NodeOptions } from '../node/node-options.ts';
import { type ObservedNode, observeNode } from '../node/observe-node.ts';
import { observeLocalWords } from '../node/observe-setups.ts';
import { filesToWrite, restoreDesign, restoredInput } from '../node/restored-files.ts';

/** Options of this run replace the saved settings of the same kind; null: the saved settings are kept. */
export interface UpgradeNodeOptions extends Omit<NodeOptions, 'nodeRegistration' | 'overlays' | 'patches' | 'settings'> {
  readonly overlays: readonly NodeOverlay[] | null;
  readonly patches: readonly KubeletPatch[] | null;
  readonly settings: readonly string[] | null;
  readonly ignoreSavedSettings: boolean;
  /** Identifies the Node with the operator's credentials; null: the node's own credentials are used. */
  readonly trust: NodeTrust | null;
  /** Node name given by the operator; null: none. */
  readonly nodeName: string | null;
  /** Files of an earlier state, which replace those of the design. Absent: none. */
  readonly restore?: RestoredFiles | undefined;
}

export type UpgradeNodeInput = Awaited<ReturnType<typeof prepareUpgrade>>['input'];

/**
 * Updates the kubelet's files to the cluster's current kubelet-config and the settings of this node, and restarts the
 * kubelet.
 * @see kubeadm 1.36 upgrade node: phase kubelet-config (which neither saves settings nor restarts the kubelet)
 */
export const upgradeNodeWorkflow: Workflow<UpgradeNodeOptions, UpgradeNodeInput> = {
  name: 'upgrade node',
  // Phases of a control plane, which a configuration or a command line for kubeadm may skip.
  absentPhases: ['control-plane', 'kubeconfig', 'addon', 'addon/coredns', 'addon/kube-proxy', 'post-upgrade'],
  phases: [
    upgradeKubeletConfig.select((input) => input.kubeletConfig),
    saveUpgradedNodeSettings.select((input) => input.save),
    removeSocketAnnotation.select((input) => input.annotation),
  ],
  prepare: withCluster((context, options) => prepareUpgrade(context, options)),
};

/**
 * Prepares the upgrade of a node's kubelet configuration.
 * @param run.upgraded documents that the run uploads before; null: those of the cluster
 */
export async function prepareUpgrade(
  context: ClusterContext,
  options: UpgradeNodeOptions,
  run: { readonly upgraded: UpgradedDocuments | null } = { upgraded: null },
) {
  const { restore } = options;
  const { found, running } = await inspectHost(context, restore);
  const { nodeSettings, warnings: settingsWarnings } = readNodeSettings(found, options.ignoreSavedSettings);
  const instancePatch = readInstanceConfig(found(INSTANCE_CONFIG), context.host.name);
  const criSocket = socketInUse(found, instancePatch, { nodeSettings, running, catalogue: options.catalogue });
  const declared = { ...options, ...redeclared(nodeSettings, options), nodeRegistration: criSocket === null ? {} : { criSocket } };
  const observed = await observeNode(context, declared, { writesUnit: false });
  const baseline = await readClusterBaseline(context.cluster, options.catalogue, run.upgraded);
  const minor = observed.kubeletMinor ?? baseline.controlPlaneMinor;
  const moveSocket = instancePatch === null && !isSocketFlag({ kubeletMinor: minor, nodeLocalCRISocket: isSocketLocal(baseline) });
  const flags = withConfigDir(upgradeFlags(found(FLAGS_ENV) ?? '', { minor, catalogue: options.catalogue, moveSocket }), {
    before: readSavedConfigDir(found),
    after: declared.configDir === true,
  });
  const registration = { ...observed.registration, name: nameOf({ nodeSettings, flags, observed }), kubeletExtraArgs: flags.flags };
  const nodeOptions: NodeOptions = { ...declared, nodeRegistration: registration };
  const node: ObservedNode = { ...observed, registration };
  const flagsEnv = flags.changed ? [flagsFile(nodeOptions, flags)] : [];
  const identified = await identifyRegistered(context, options, registration.name);
  const { design, start, save, warnings, refusals } = await designObservedNode(context, nodeOptions, {
    node,
    writes: ({ files: { configYaml, configDropIns } }) =>
      restore ? filesToWrite(restore) : [...flagsEnv, configYaml, ...(configDropIns ?? [])],
    cluster: baseline.layered,
    clusterIsDeclared: false,
    controlPlaneMinor: baseline.controlPlaneMinor,
    registerWithTaints: [],
    serviceSubnets: baseline.serviceSubnets,
    featureGates: baseline.featureGates,
    imageRepository: baseline.imageRepository,
    podsOf: context.cluster,
    drainedBy: identified.claim === null ? null : context.cluster,
    instancePatch: instancePatch ?? undefined,
    restored: restore && ((design) => restoreDesign(design, restore)),
  });
  const instanceConfig = design.files.instanceConfig === null ? [] : [{ ...design.files.instanceConfig, onlyIfAbsent: true }];
  const designed = [...flagsEnv, ...instanceConfig, design.files.configYaml, ...(design.files.configDropIns ?? [])];
  return {
    input: {
      kubeletConfig: {
        ...start,
        ...(restore ? restoredInput(restore) : { files: designed, unitFiles: [] }),
        backupDir: `${KUBEADM_TMP_DIR}/kubeadm-kubelet-config-${backupTimestamp(context.clock.now())}`,
      },
      save: { ...save, nodeSettings: saved(nodeSettings, save.nodeSettings) },
      annotation: { nodeName: node.registration.name, check: identified.check },
      criSocket: node.registration.criSocket,
    },
    warnings: [...settingsWarnings, ...flagWarnings(flags), ...baseline.warnings, ...warnings],
    refusals: [...refusals, ...identified.refusals],
    node: identified.claim,
    isDown: identified.node !== null && !isNodeReady(identified.node),
    origins: design.origins,
  };
}

/**
 * Verifies that the Node belongs to the host, before the operator's credentials remove an annotation from it or drain it.
 * A Node that is not proven or cannot be read is not drained; it is an error only if the annotation must be removed.
 */
async function identifyRegistered(
  context: ClusterContext,
  { trust, nodeName: named, run }: UpgradeNodeOptions,
  nodeName: string,
): Promise<{
  /** Null: it does not exist or cannot be read. */
  readonly node: KubeObject | null;
  readonly check: OwnNodeCheck | null;
  readonly refusals: readonly Problem[];
  /** Null: not proven. */
  readonly claim: NodeClaim | null;
}> {
  const node = await unlessForbidden(context.cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }));
  const unidentified = { node, check: null, refusals: [], claim: null };
  if (trust === null) return unidentified;
  const desired = { trust, named, expected: nodeName };
  const isAnnotated = hasSocketAnnotation(node);
  if (!isAnnotated && (run.drain === undefined || node === null)) return { ...unidentified, check: ownNodeCheck(desired) };
  const { claim, refusals } = await identifyNode(context, desired);
  const proven = refusals.length === 0 ? claim : null;
  return isAnnotated ? { node, check: null, refusals, claim: proven } : { node, check: ownNodeCheck(desired), refusals: [], claim: proven };
}

type FoundFiles = (path: string) => string | null;

/** Command line and configuration files of the kubelet, without an assigned ConfigMap. */
interface Running {
  readonly words: readonly CommandLineWord[];
  readonly config: JsonObject;
}

/** @throws AppError NODE_NOT_JOINED */
async function inspectHost(
  context: PhaseContext,
  restore: RestoredFiles | undefined,
): Promise<{ readonly found: FoundFiles; readonly running: Running }> {
  const { host, signal } = context;
  const files = await observe(host, fileFacts([NODE_SETTINGS_PATH, INSTANCE_CONFIG, FLAGS_ENV]), signal);
  const words = await observeLocalWords(host, signal);
  const found = (path: string): string | null => (restore?.has(path) ? restore.get(path) : files.get(path))?.content ?? null;
  return { found, running: { words, config: await readJoinedConfig(context, words) } };
}

function readNodeSettings(
  found: FoundFiles,
  forget: boolean,
): { readonly nodeSettings: NodeSettings; readonly warnings: readonly Warning[] } {
  const text = found(NODE_SETTINGS_PATH);
  if (forget) return { nodeSettings: NO_SETTINGS, warnings: [] };
  if (text !== null) return { nodeSettings: decodeNodeSettings(text), warnings: [] };
  const message = `${NODE_SETTINGS_PATH} does not exist, so the overlays, patches and settings of earlier runs are unknown. Pass all settings of this node with --overlay, --patches and --set`;
  return { nodeSettings: NO_SETTINGS, warnings: [{ code: 'NODE_MEMORY_MISSING', message }] };
}

/** Merges the options over the saved settings. */
function redeclared(
  nodeSettings: NodeSettings,
  options: UpgradeNodeOptions,
): Pick<NodeOptions, 'overlays' | 'declared' | 'settings' | 'patches' | 'configDir'> {
  const isGiven = (setting: FieldSetting): boolean => options.declared.some(({ path }) => path.join('.') === setting.path.join('.'));
  return {
    overlays: options.overlays ?? nodeSettings.overlays.map(readOverlay),
    declared: [...nodeSettings.declared.filter((setting) => !isGiven(setting)), ...options.declared],
    settings: options.settings ?? nodeSettings.settings,
    patches: options.patches ?? nodeSettings.patches,
    configDir: options.configDir ?? nodeSettings.configDir,
  };
}

/** A saved overlay as a parsed document. */
function readOverlay({ source, content, layer }: NodeSettings['overlays'][number]): NodeOverlay {
  const document = documentOfValue(content, source);
  return layer === undefined ? document : { ...document, layer };
}

/** Whether an earlier run set `--config-dir`, also for `--forget`. */
function readSavedConfigDir(found: FoundFiles): boolean {
  try {
    return decodeNodeSettings(found(NODE_SETTINGS_PATH) ?? '').configDir === true;
  } catch (error) {
    if (isAppError(error, 'NODE_MEMORY_INVALID')) return false;
    throw error;
  }
}

/** Adds the flag of the drop-in files, or removes that of an earlier run. An administrator's own flag is kept. */
function withConfigDir(flags: UpgradedFlags, { before, after }: { readonly before: boolean; readonly after: boolean }): UpgradedFlags {
  const isOwn = ({ name, value }: Arg): boolean => name === 'config-dir' && value === KUBELET_CONF_D;
  const isSet = flags.flags.some(isOwn);
  if (after && !flags.flags.some(({ name }) => name === 'config-dir'))
    return { ...flags, flags: [...flags.flags, { name: 'config-dir', value: KUBELET_CONF_D }], changed: true };
  return !after && before && isSet ? { ...flags, flags: flags.flags.filter((flag) => !isOwn(flag)), changed: true } : flags;
}

/**
 * The socket that the kubelet uses: of instance-config.yaml, the flag, the configuration files, or the saved settings. kubeadm
 * only reads the flag, and writes an empty socket without one.
 */
function socketInUse(
  found: FoundFiles,
  instancePatch: JsonObject | null,
  { nodeSettings, running, catalogue }: { nodeSettings: NodeSettings; running: Running; catalogue: Catalogue },
): string | null {
  const { criSocket } = upgradeFlags(found(FLAGS_ENV) ?? '', { minor: NEWEST_MINOR, catalogue, moveSocket: false });
  const flag = lastFlag(running.words, 'container-runtime-endpoint')?.value;
  const [inPatch, inFiles] = [instancePatch, running.config].map((config) => config?.containerRuntimeEndpoint);
  const candidates = [inPatch, criSocket, flag, inFiles, nodeSettings.nodeRegistration.criSocket];
  return candidates.find((socket): socket is string => typeof socket === 'string' && socket !== '') ?? null;
}

/** The Node name: of the flag, the client certificate, the saved settings, or the hostname. */
function nameOf({ nodeSettings, flags, observed }: { nodeSettings: NodeSettings; flags: UpgradedFlags; observed: ObservedNode }): string {
  const overridden = flags.flags.findLast(({ name }) => name === 'hostname-override')?.value;
  return overridden ?? registeredNode(observed.facts.identity) ?? nodeSettings.nodeRegistration.name ?? observed.registration.name;
}

/** kubeadm's feature gate NodeLocalCRISocket, enabled by default. */
function isSocketLocal({ featureGates }: { readonly featureGates: Readonly<Record<string, boolean>> }): boolean {
  return featureGates.NodeLocalCRISocket ?? true;
}

/** @throws AppError INSTANCE_CONFIG_INVALID: the file must not be ignored, because kubeadm merges it over all other settings */
function readInstanceConfig(text: string | null, host: string): JsonObject | null {
  if (text === null) return null;
  const config = jsonOf(text);
  if (config !== null) return config;
  const hint = 'Fix the file, or delete it: the next run creates it again';
  throw new AppError(
    { host, code: 'INSTANCE_CONFIG_INVALID', message: `${INSTANCE_CONFIG} contains no YAML mapping`, hint },
    { exitCode: 3 },
  );
}

function jsonOf(text: string): JsonObject | null {
  const { documents, problems } = parseSource(text, 'file');
  const root = documents[0]?.root ?? null;
  const value = problems.length > 0 || root === null ? null : sourceToJson(root);
  return isJsonObject(value) ? value : null;
}

function flagsFile({ templates }: NodeOptions, { flags }: UpgradedFlags): DesiredFile {
  return { path: FLAGS_ENV, content: renderTemplate(templates, FLAGS_ENV, { args: joinFlags(flags) }), mode: 0o644, owner: 'root:root' };
}

/** Keeps the saved registration of init or join: an upgrade does not change it. */
function saved(before: NodeSettings, now: NodeSettings): NodeSettings {
  return { ...now, nodeRegistration: Object.keys(before.nodeRegistration).length === 0 ? now.nodeRegistration : before.nodeRegistration };
}

function flagWarnings({ dropped }: UpgradedFlags): readonly Warning[] {
  return dropped.map(({ name, value }) => ({
    code: 'KUBELET_FLAG_DROPPED',
    message: `--${name}=${value} is removed from kubeadm-flags.env: this kubelet does not know the flag and would not start`,
  }));
}
