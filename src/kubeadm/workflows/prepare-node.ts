import { AppError, aboutHost, type Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { identityOf, Memo } from '../../base/memo.ts';
import { revealText } from '../../base/text/secret.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { observe } from '../../host/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Taint } from '../../kube/taint.ts';
import { KUBELET_DIR } from '../../kube/well-known.ts';
import { type Catalogue, formatMinor, type Minor, NEWEST_MINOR, OLDEST_MINOR, parseMinor } from '../../kubelet/catalogue.ts';
import { checkExtraArgs } from '../../kubelet/check-extra-args.ts';
import { checkNodeFields } from '../../kubelet/check-node-fields.ts';
import { decodeKubeletConfiguration } from '../../kubelet/decode.ts';
import { type HostFacts, hostFacts } from '../../kubelet/facts/host-facts.ts';
import { flagsForQuery, kubeletAcceptance } from '../../kubelet/facts/kubelet-acceptance.ts';
import type { LayeredConfig } from '../../kubelet/layers.ts';
import { nodeIpOn } from '../../kubelet/node-ip.ts';
import type { KubeletPatch } from '../../kubelet/patch-files.ts';
import { type FieldSetting, parseSetting } from '../../kubelet/setting.ts';
import { otherMinorWarning } from '../../kubelet/validate/other-minor.ts';
import { applyNodeDefaults, type DefaultedNodeRegistration, withScheme } from '../config/defaults.ts';
import type { NodeRegistration } from '../config/model.ts';
import type { KubeletStartInput } from '../phases/kubelet-start.ts';
import { type Finding, validateFindings } from '../preflight/check.ts';
import { kubeletConfigAccepted } from '../preflight/kubelet-config-accepted.ts';
import { kubeletFlagFindings } from '../preflight/kubelet-flags.ts';
import { runNodeChecks } from '../preflight/node-checks.ts';
import type { ParsedConfig } from '../render/cluster-config.ts';
import { designNode, type NodeDesign } from '../render/node-design.ts';
import type { Templates } from '../render/template.ts';

/** What is declared for a node, by file and by flag, and how strictly to take what is found. */
export interface NodeOptions {
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  readonly nodeRegistration: NodeRegistration;
  /** KubeletConfigurations for this node alone. */
  readonly overlays: readonly SourceDocument[];
  /** Per-host flags such as `--resolv-conf`. */
  readonly declared: readonly FieldSetting[];
  /** `--set`, as given. */
  readonly settings: readonly string[];
  readonly patches: readonly KubeletPatch[];
  readonly ignorePreflightErrors: readonly string[];
  readonly skipPreflight: boolean;
  /** What is not there (kubelet, runtime, API server) is a warning. */
  readonly dryRun: boolean;
  /** Files go into a directory: nothing runs there. */
  readonly staged: boolean;
  readonly kubeletHealthCheckMs: number;
}

/** The host and what follows from it alone. */
export interface ObservedNode {
  readonly facts: HostFacts;
  readonly registration: DefaultedNodeRegistration;
  readonly criSocketSource: string;
  /** Of the kubelet found; null when there is none. */
  readonly kubeletMinor: Minor | null;
}

/**
 * Looks at a host and settles its node's name and runtime.
 * @throws AppError CONFIG_SEVERAL_RUNTIMES, CONFIG_INVALID_NAME, NODE_IP_NOT_FOUND, KUBELET_VERSION_UNSUPPORTED; what `host.ask` throws
 */
export async function observeNode(context: PhaseContext, options: NodeOptions): Promise<ObservedNode> {
  const { criSocket } = options.nodeRegistration;
  const declared = criSocket === undefined ? null : withScheme(criSocket);
  const facts = await observe(context.host, hostFacts(declared), context.signal);
  reportFacts(context, facts);
  const found = { hostname: facts.os.hostname ?? '', criSockets: facts.sockets };
  const registration = aboutHost(context.host.name, () => withNodeIp(applyNodeDefaults(options.nodeRegistration, found), facts.addresses));
  const criSocketSource =
    declared !== null
      ? 'nodeRegistration.criSocket'
      : facts.sockets.length > 0
        ? 'detected on the host'
        : "kubeadm's default, no runtime found";
  return { facts, registration, criSocketSource, kubeletMinor: kubeletMinorOf(facts, context.host.name) };
}

/** Of the subnets that were declared the addresses that the host has there. */
function withNodeIp(registration: DefaultedNodeRegistration, addresses: readonly string[] | null): DefaultedNodeRegistration {
  const kubeletExtraArgs = registration.kubeletExtraArgs.map((arg) =>
    arg.name === 'node-ip' ? { ...arg, value: nodeIpOn(arg.value, addresses) } : arg,
  );
  return { ...registration, kubeletExtraArgs };
}

function reportFacts({ host, reporter }: PhaseContext, facts: HostFacts): void {
  const kubelet =
    facts.kubelet === null ? 'no kubelet' : 'version' in facts.kubelet ? `kubelet ${facts.kubelet.version}` : facts.kubelet.error;
  const runtimes = facts.sockets.length === 0 ? 'no container runtime' : facts.sockets.join(', ');
  const message = `${facts.os.prettyName ?? 'unknown system'}, ${kubelet}, ${runtimes}${facts.resolvedActive ? ', systemd-resolved' : ''}`;
  reporter.report({ level: 'info', code: 'HOST_FACTS', host: host.name, message, verbosity: 1 });
}

function kubeletMinorOf(facts: HostFacts, host: string): Minor | null {
  if (facts.kubelet === null || !('version' in facts.kubelet)) return null;
  const minor = parseMinor(facts.kubelet.version);
  if (minor !== null && minor >= OLDEST_MINOR) return minor;
  const message = `kubelet ${facts.kubelet.version} is older than ${formatMinor(OLDEST_MINOR)}, the oldest this program configures`;
  throw new AppError({ host, code: 'KUBELET_VERSION_UNSUPPORTED', message, hint: 'Install a newer kubelet' }, { exitCode: 3 });
}

export interface DesignOptions {
  readonly node: ObservedNode;
  readonly cluster: LayeredConfig;
  /** The user wrote the cluster's KubeletConfiguration for this run. */
  readonly clusterIsDeclared: boolean;
  readonly controlPlaneMinor: Minor;
  readonly registerWithTaints: readonly Taint[];
  readonly serviceSubnets: string | null;
  /** kubeadm's feature gates of the cluster. */
  readonly featureGates: Readonly<Record<string, boolean>>;
  /** instance-config.yaml of the host, where it stays as it is. */
  readonly instancePatch?: JsonObject;
  /** What the workflow found besides. */
  readonly findings?: readonly Finding[];
}

export interface DesignedNode {
  readonly design: NodeDesign;
  readonly warnings: readonly Warning[];
  readonly refusals: readonly Problem[];
}

/**
 * Works out the files of a node and asks preflight whether they may be written.
 * @throws AppError with exit code 2: wrong fields in overlays, settings or patches, flags the kubelet does not have, a name that contradicts itself
 */
export async function designObservedNode(
  context: PhaseContext,
  options: NodeOptions,
  { node, ...cluster }: DesignOptions,
): Promise<DesignedNode> {
  const { catalogue } = options;
  const { facts, registration } = node;
  const minor = catalogueMinor(node.kubeletMinor ?? cluster.controlPlaneMinor);
  const overlays = options.overlays.map((document) => readWritten(document, minor, catalogue));
  const kubelet = { minor, assumed: node.kubeletMinor === null, catalogue };
  const flagWarnings = checkExtraArgs(registration, kubelet);
  const design = designNode({
    ...options,
    ...cluster,
    nodeLocalCRISocket: cluster.featureGates.NodeLocalCRISocket ?? true,
    facts,
    minor,
    nodeName: registration.name,
    criSocket: registration.criSocket,
    criSocketSource: node.criSocketSource,
    extraArgs: registration.kubeletExtraArgs,
    overlays,
    settings: options.settings.map((setting) => parseSetting(setting, minor, catalogue)),
  });
  const fieldWarnings = checkNodeFields(design.layered, kubelet);
  const verdict = options.skipPreflight ? { errors: [], warnings: [] } : await preflight(context, options, node, design, cluster);
  const versions = versionWarnings(node.kubeletMinor, cluster.controlPlaneMinor);
  return {
    design,
    warnings: [...versions, ...flagWarnings, ...fieldWarnings, ...verdict.warnings.map(toWarning), ...design.warnings],
    refusals: verdict.errors,
  };
}

/** Beyond the newest minor we know, that one's fields are taken. */
function catalogueMinor(minor: Minor): Minor {
  return Math.min(Math.max(minor, OLDEST_MINOR), NEWEST_MINOR);
}

/**
 * Warnings about the version the files of a node are made for.
 * @param kubeletMinor of the kubelet on the host; null: the host has none
 */
export function versionWarnings(kubeletMinor: Minor | null, controlPlaneMinor: Minor): readonly Warning[] {
  const minor = kubeletMinor ?? controlPlaneMinor;
  const used = catalogueMinor(minor);
  const other = otherMinorWarning(minor);
  const rules: readonly Warning[] = other === null ? [] : [other];
  if (kubeletMinor !== null) return rules;
  const whose =
    used === controlPlaneMinor
      ? 'the version of the cluster'
      : `the nearest known version to that of the cluster, ${formatMinor(controlPlaneMinor)}`;
  return [
    { code: 'KUBELET_MISSING', message: `there is no kubelet: files are made for ${formatMinor(used)}, ${whose}` },
    ...(used < minor ? rules : []),
  ];
}

/** Decodes a KubeletConfiguration document. Throws all its problems at once, with exit code 2. */
export function readWritten(document: SourceDocument, minor: Minor, catalogue: Catalogue): ParsedConfig {
  return WRITTEN.get(document, `${minor} ${identityOf(catalogue)}`, () => decode(document, minor, catalogue));
}

/** Hosts of a group share its document. */
const WRITTEN = new Memo<SourceDocument, ParsedConfig>();

function decode(document: SourceDocument, minor: Minor, catalogue: Catalogue): ParsedConfig {
  const { value, fields, problems } = decodeKubeletConfiguration(document, { minor, catalogue });
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return { value, fields, source: document.file };
}

/** What a dry run can do without. */
const ABSENT_IS_FINE = new Set(['IsPrivilegedUser', 'KubeletVersion', 'CRI', 'ExternalEtcdClientCertificates']);

async function preflight(
  context: PhaseContext,
  options: NodeOptions,
  { facts, kubeletMinor, registration }: ObservedNode,
  design: NodeDesign,
  { controlPlaneMinor, serviceSubnets, findings: more = [] }: Omit<DesignOptions, 'node'>,
) {
  const nodeIPs = (registration.kubeletExtraArgs.findLast(({ name }) => name === 'node-ip')?.value ?? '').split(',').filter(Boolean);
  const addresses = [...nodeIPs, ...(serviceSubnets ?? '').split(',').filter(Boolean)];
  const findings = runNodeChecks({
    facts,
    nodeName: registration.name,
    nodeIPs,
    criSocket: registration.criSocket,
    config: design.layered.config,
    kubeletMinor,
    controlPlaneMinor,
    ipv4: addresses.length === 0 || addresses.some((address) => !address.includes(':')),
    ipv6: addresses.some((address) => address.includes(':')),
    unitRefusal: design.unit.refusal,
  });
  const flags = kubeletFlagFindings({
    flags: design.flags,
    hostWords: design.unit.extraArgs,
    hostFile: design.unit.extraArgsFile,
    nodeName: registration.name,
    minor: design.minor,
    assumed: kubeletMinor === null,
    catalogue: options.catalogue,
  });
  const accepted = await queryKubelet(context, options, facts, design);
  const applicable = [...findings, ...flags, ...accepted, ...more].filter(({ id }) => !(options.staged && id === 'IsPrivilegedUser'));
  const softened = applicable.map(
    (finding): Finding => (options.dryRun && softens(finding, facts) ? { ...finding, severity: 'warning' } : finding),
  );
  return validateFindings(softened, [...options.ignorePreflightErrors, ...registration.ignorePreflightErrors], context.host.name);
}

/** Lets the kubelet that is there read the configuration it is to get. One round trip. */
async function queryKubelet(
  context: PhaseContext,
  { catalogue, staged }: NodeOptions,
  facts: HostFacts,
  design: NodeDesign,
): Promise<readonly Finding[]> {
  const { kubelet } = facts;
  const { files, flags, unit, minor } = design;
  if (staged || kubelet === null || 'error' in kubelet) return [];
  if (await runsWith(design, facts, context)) return [];
  const { host, signal } = context;
  const words = [...flags.map(({ name, value }) => `--${name}=${value}`), ...unit.extraArgs];
  const acceptance = kubeletAcceptance({
    kubeletPath: kubelet.path,
    config: revealText(files.configYaml.content),
    flags: flagsForQuery(words, { catalogue, minor }),
  });
  return kubeletConfigAccepted(await observe(host, acceptance, signal), kubelet.version);
}

/** Whether the kubelet runs with these very files: it took them already, and nothing is going to be changed that it could refuse. */
async function runsWith(
  { files: { configYaml, flagsEnv, instanceConfig }, unit: { files } }: NodeDesign,
  { unit }: HostFacts,
  { host, signal }: PhaseContext,
): Promise<boolean> {
  if (unit?.activeState !== 'active' || unit.needsReload) return false;
  const desired = [configYaml, flagsEnv, ...(instanceConfig === null ? [] : [instanceConfig]), ...files];
  const found = await observe(host, fileFacts(desired.map(({ path }) => path)), signal);
  return desired.every(({ path, content }) => found.get(path)?.content === revealText(content));
}

function softens({ id }: Finding, facts: HostFacts): boolean {
  return ABSENT_IS_FINE.has(id) && (id !== 'KubeletVersion' || facts.kubelet === null);
}

function toWarning({ id, message }: Finding): Warning {
  return { code: id, message };
}

/** The part of the input of kubelet-start that a design settles. */
export function kubeletStartInput(design: NodeDesign, options: NodeOptions): KubeletStartInput {
  const { instanceConfig, configYaml, flagsEnv } = design.files;
  return {
    files: [...(instanceConfig === null ? [] : [instanceConfig]), configYaml, flagsEnv],
    unitFiles: design.unit.files,
    directories: [{ path: KUBELET_DIR, mode: 0o700 }],
    health: { url: design.healthzUrl, timeoutMs: options.kubeletHealthCheckMs },
    mayChown: !options.staged,
    proof: {
      nodeName: design.nodeName,
      minor: design.minor,
      catalogue: options.catalogue,
      flags: [...design.flags.map(({ name, value }) => `--${name}=${value}`), ...design.unit.extraArgs],
    },
  };
}
