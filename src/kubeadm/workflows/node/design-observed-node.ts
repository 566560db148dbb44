import { type Problem, withHostInErrors } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { Taint } from '../../../kube/taint.ts';
import { KUBELET_CONF_D, KUBELET_CONFIG_FILE, KUBELET_DIR, KUBELET_PROGRAM } from '../../../kube/well-known.ts';
import { formatMinor, type Minor, NEWEST_MINOR, OLDEST_MINOR } from '../../../kubelet/catalogue/catalogue.ts';
import type { KubeletReading } from '../../../kubelet/effective/field-changes.ts';
import { checkExtraArgs } from '../../../kubelet/flags/check-extra-args.ts';
import { parseCommandLine } from '../../../kubelet/flags/command-line.ts';
import { isSocketFlag } from '../../../kubelet/flags/flags-env.ts';
import type { LayeredConfig } from '../../../kubelet/layers/layers.ts';
import { otherMinorWarning } from '../../../kubelet/minor-option.ts';
import { partialEviction } from '../../../kubelet/validate/startup-eviction.ts';
import { pauseImage } from '../../control-plane/images.ts';
import type { KubeletStartInput } from '../../phases/kubelet-start.ts';
import { nodeSettingsFile, type SaveNodeSettingsInput } from '../../phases/save-node-settings.ts';
import type { Finding } from '../../preflight/check.ts';
import type { GroupInput } from '../../render/group-design.ts';
import { designNode, type NodeDesign } from '../../render/node-design.ts';
import { unitFactOf } from '../../render/unit-files.ts';
import { hasIdentity } from './bootstrap-files.ts';
import { checkConfigSource } from './check-config-source.ts';
import { checkDirectoriesOfNode, checkHiddenFields, checkPodsOfNode } from './check-designed-node.ts';
import type { NodeOptions } from './node-options.ts';
import { type PreflightInput, preflightNode } from './node-preflight.ts';
import type { ObservedNode } from './observe-node.ts';
import { nodeSettingsOf } from './observe-node.ts';
import { observeSetups } from './observe-setups.ts';

interface DesignOptions extends PreflightInput {
  readonly node: ObservedNode;
  readonly cluster: LayeredConfig;
  /** The user declared the cluster's KubeletConfiguration in this run. */
  readonly clusterIsDeclared: boolean;
  readonly registerWithTaints: readonly Taint[];
  /** kubeadm's image repository of the cluster. */
  readonly imageRepository: string;
  /** kubeadm's feature gates of the cluster. */
  readonly featureGates: Readonly<Record<string, boolean>>;
  /** Lists the pods of the node; null: unknown. */
  readonly podsOf: Cluster | null;
  /** Drains the node before a change that needs it, if the run permits it; null: the node is not drained. */
  readonly drainedBy: Cluster | null;
  /** The files of a design that the run writes. Default: all. */
  readonly writes?: (design: NodeDesign) => readonly DesiredFile[];
  /** The existing instance-config.yaml, when it stays unchanged. */
  readonly instancePatch?: JsonObject | undefined;
  /** Replaces the files of the design by earlier ones, which are checked in their place. */
  readonly restored?: ((design: NodeDesign) => NodeDesign) | undefined;
}

export interface DesignedNode {
  readonly design: NodeDesign;
  /** Input of kubelet-start for an existing node; a new node also has credentials. */
  readonly start: KubeletStartInput;
  readonly save: SaveNodeSettingsInput;
  readonly warnings: readonly Warning[];
  readonly refusals: readonly Problem[];
}

/**
 * Computes the files of a node and runs the preflight checks on them.
 * @throws AppError with exit code 2: wrong fields in overlays, settings or patches, flags unknown to the kubelet, or
 * contradicting node names
 */
export async function designObservedNode(
  context: PhaseContext,
  options: NodeOptions,
  { node, restored = (design) => design, ...cluster }: DesignOptions,
): Promise<DesignedNode> {
  const { templates, catalogue } = options;
  const { facts, registration } = node;
  const { criSocket } = registration;
  const minor = catalogueMinor(node.kubeletMinor ?? cluster.controlPlaneMinor);
  const assumed = node.kubeletMinor === null;
  const nodeLocalCRISocket = cluster.featureGates.NodeLocalCRISocket ?? true;
  const flagWarnings = checkExtraArgs(registration, { minor, assumed, catalogue });
  const groupInput = groupInputOf(options, { node, ...cluster }, { minor, nodeLocalCRISocket });
  const group =
    options.configDir === true
      ? withHostInErrors(context.host.name, () => options.groups.designOf(groupInput))
      : options.groups.designOf(groupInput);
  const design = withHostInErrors(context.host.name, () =>
    restored(
      designNode({
        group,
        templates,
        catalogue,
        minor,
        nodeName: registration.name,
        hostname: facts.os.hostname,
        criSocket,
        extraArgs: registration.kubeletExtraArgs,
        kept: node.hostFlags.kept,
        registerWithTaints: cluster.registerWithTaints,
        nodeLocalCRISocket,
      }),
    ),
  );
  const reading = { ...kubeletReading(options, design), hasIdentity: hasIdentity(facts) };
  const isNew = facts.identity.state === 'missing';
  const start = startInput(design, options, cluster);
  const files = cluster.writes?.(design) ?? [...start.files, ...start.unitFiles];
  const setups = await observeSetups(context, { facts, files, usual: usualCommand(design), catalogue, minor: design.minor });
  const verdict = options.skipPreflight
    ? { errors: [], warnings: [] }
    : await preflightNode(context, options, node, { design, reading, setup: setups.after }, cluster);
  const { podsOf, drainedBy, written = [] } = cluster;
  const pods = await checkPodsOfNode(context, options, { node, design, podsOf, drainedBy, reading, written, setups });
  const directories = await checkDirectoriesOfNode(context, options, { setups, reading, isNew });
  const source = await checkConfigSource(context, options, { node, design, cluster: podsOf, setups });
  const { clusterIsDeclared } = cluster;
  const hidden = options.skipPreflight
    ? { warnings: [], refusals: [] }
    : checkHiddenFields({
        host: context.host.name,
        design,
        setups,
        reading,
        clusterIsDeclared,
        ignores: [options.run, registration],
        kept: node.hostFlags.kept,
      });
  const versions = versionWarnings(node.kubeletMinor, cluster.controlPlaneMinor);
  const nodeSettings = nodeSettingsOf(node, options);
  const { isTakeover } = node.hostFlags;
  return {
    design,
    start: { ...start, reading, setups, ...(isTakeover && { settings: nodeSettingsFile(nodeSettings) }) },
    save: { nodeSettings, mayChown: start.mayChown, isStored: isTakeover },
    warnings: [
      ...versions,
      ...flagWarnings,
      ...node.hostFlags.warnings,
      ...group.fieldWarnings,
      ...(isNew ? evictionWarnings(design) : []),
      ...verdict.warnings.map(toWarning),
      ...design.warnings,
      ...hidden.warnings,
      ...source.warnings,
      ...pods.warnings,
    ],
    refusals: [...node.hostFlags.refusals, ...verdict.errors, ...directories, ...hidden.refusals, ...source.refusals, ...pods.refusals],
  };
}

/** Hosts with equal inputs share the files of a group. */
function groupInputOf(
  { templates, catalogue, declared, patches, settings, overlays, configDir }: NodeOptions,
  { node, cluster, clusterIsDeclared, instancePatch }: DesignOptions,
  { minor, nodeLocalCRISocket }: { readonly minor: Minor; readonly nodeLocalCRISocket: boolean },
): GroupInput {
  const { facts, criSocketSource, kubeletMinor } = node;
  const { criSocket } = node.registration;
  return {
    templates,
    catalogue,
    cluster,
    overlays,
    clusterIsDeclared,
    minor,
    assumed: kubeletMinor === null,
    criSocket,
    criSocketSource,
    instanceConfig: !isSocketFlag({ kubeletMinor: minor, nodeLocalCRISocket }),
    instancePatch,
    declared,
    patches,
    settings,
    ...(configDir === true ? { configDir: true } : {}),
    resolvedActive: facts.resolvedActive,
    runtimeCgroupDriver: facts.cgroupDrivers.get(criSocket) ?? null,
    kubeletPath: facts.kubelet !== null && 'path' in facts.kubelet ? facts.kubelet.path : KUBELET_PROGRAM,
    unitFiles: [...facts.unitFiles].map(([path, file]) => [path, file === null ? null : unitFactOf(file)]),
    unit: facts.unit === null ? null : { unitFileState: facts.unit.unitFileState },
    packageFamily: facts.os.packageFamily,
  };
}

/** How the kubelet reads the files of a design. */
function kubeletReading({ catalogue, groups }: NodeOptions, { flags, unit, minor }: NodeDesign): KubeletReading {
  const words = [...flags.map(({ name, value }) => `--${name}=${value}`), ...unit.extraArgs];
  const rootDir = parseCommandLine(words, { catalogue, minor }).flags.findLast(({ name }) => name === 'root-dir')?.value || KUBELET_DIR;
  const layersOf: KubeletReading['layersOf'] = (input) => groups.layersOf(input);
  const changesOf: KubeletReading['changesOf'] = (before, after) => groups.fieldChangesOf(before, after, { catalogue, minor });
  return { catalogue, minor, rootDir, layersOf, changesOf };
}

/** The command line of kubeadm's unit, for a host whose unit is unknown. */
function usualCommand({ flags, unit }: NodeDesign): readonly string[] {
  return [KUBELET_PROGRAM, `--config=${KUBELET_CONFIG_FILE}`, ...flags.map(({ name, value }) => `--${name}=${value}`), ...unit.extraArgs];
}

function startInput(
  design: NodeDesign,
  { catalogue, kubeletHealthCheckMs, run, staged }: NodeOptions,
  cluster: Pick<DesignOptions, 'imageRepository'>,
): KubeletStartInput {
  const { instanceConfig, configYaml, flagsEnv, configDropIns } = design.files;
  return {
    files: [...(instanceConfig === null ? [] : [instanceConfig]), configYaml, ...(configDropIns ?? []), flagsEnv],
    unitFiles: design.unit.files,
    directories: [{ path: KUBELET_DIR, mode: 0o700 }, ...(configDropIns === null ? [] : [{ path: KUBELET_CONF_D, mode: 0o755 }])],
    health: { url: design.healthzUrl, timeoutMs: kubeletHealthCheckMs },
    mayChown: !staged,
    verification: {
      nodeName: design.nodeName,
      minor: design.minor,
      catalogue,
      probeImage: pauseImage(cluster),
      mayLosePods: run.podLoss === 'warn',
    },
  };
}

/** A running node shows the changed thresholds in its plan. */
function evictionWarnings({ layered, minor }: NodeDesign): readonly Warning[] {
  return partialEviction(layered.config, minor).map(({ path, message, hint }) => ({
    code: 'KUBELET_EVICTION_PARTIAL',
    message: `${path} ${message}. ${hint}`,
    field: path,
  }));
}

/** A finding as a warning of the plan. */
export function toWarning({ id, message }: Finding): Warning {
  return { code: id, message };
}

/** The nearest minor in the catalogue; a newer kubelet gets the fields of the newest known minor. */
function catalogueMinor(minor: Minor): Minor {
  return Math.min(Math.max(minor, OLDEST_MINOR), NEWEST_MINOR);
}

/**
 * Warnings about the version that a node's files are generated for.
 * @param kubeletMinor of the kubelet on the host; null: no kubelet is installed
 */
export function versionWarnings(kubeletMinor: Minor | null, controlPlaneMinor: Minor): readonly Warning[] {
  const minor = kubeletMinor ?? controlPlaneMinor;
  const used = catalogueMinor(minor);
  const other = otherMinorWarning(minor);
  const rules: readonly Warning[] = other === null ? [] : [other];
  if (kubeletMinor !== null) return rules;
  const whose =
    used === controlPlaneMinor
      ? 'the version of the control plane'
      : `the known version nearest to cluster version ${formatMinor(controlPlaneMinor)}`;
  return [
    { code: 'KUBELET_MISSING', message: `no kubelet is installed: files are generated for ${formatMinor(used)}, ${whose}` },
    ...(used < minor ? rules : []),
  ];
}
