import { revealText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Minor } from '../../../kubelet/catalogue/catalogue.ts';
import { effectiveConfiguration } from '../../../kubelet/defaults/effective-configuration.ts';
import { effectiveOf, type KubeletReading } from '../../../kubelet/effective/field-changes.ts';
import type { KubeletSetup } from '../../../kubelet/effective/kubelet-setup.ts';
import type { HostFacts } from '../../../kubelet/facts/host-facts.ts';
import { flagsForQuery, kubeletAcceptance } from '../../../kubelet/facts/kubelet-acceptance.ts';
import { managerStateTexts, unusableManagerStates } from '../../../kubelet/workload/manager-states.ts';
import { describeRisk } from '../../../kubelet/workload/pod-risks.ts';
import { findRisksOnHost } from '../../../kubelet/workload/risks-on-host.ts';
import { hostClock } from '../../facts/host-clock.ts';
import { type Finding, type PreflightVerdict, validateFindings } from '../../preflight/check.ts';
import { clockFindings } from '../../preflight/host-clock.ts';
import { kubeletConfigAccepted } from '../../preflight/kubelet-config-accepted.ts';
import { kubeletFlagFindings } from '../../preflight/kubelet-flags.ts';
import { runNodeChecks } from '../../preflight/node-checks.ts';
import type { NodeDesign } from '../../render/node-design.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

/** Input of the checks in addition to facts and files of the node. */
export interface PreflightInput {
  readonly controlPlaneMinor: Minor;
  readonly serviceSubnets: string | null;
  /** Paths that the run writes before the kubelet starts, in addition to the files of the design. */
  readonly written?: readonly string[];
  /** The kubelet gets a certificate in this run, and no other check compares the clock of the host. */
  readonly checksClock?: boolean;
  /** Further findings of the workflow. */
  readonly findings?: readonly Finding[];
}

interface DesignedKubelet {
  readonly design: NodeDesign;
  readonly reading: KubeletReading;
  /** What the kubelet will read. */
  readonly setup: KubeletSetup;
}

/**
 * Runs the preflight checks of a node: host, kubelet flags and, if a kubelet is installed, its acceptance of the files.
 * @returns errors and warnings of the checks that are not ignored
 */
export async function preflightNode(
  context: PhaseContext,
  options: NodeOptions,
  node: ObservedNode,
  designed: DesignedKubelet,
  { controlPlaneMinor, serviceSubnets, written = [], checksClock = false, findings: more = [] }: PreflightInput,
) {
  const { facts, kubeletMinor, registration } = node;
  const { design } = designed;
  const words = designed.setup.flags;
  const nodeIPs = (words.findLast(({ name }) => name === 'node-ip')?.value ?? '').split(',').map((one) => one.trim());
  const addresses = [...nodeIPs, ...(serviceSubnets ?? '').split(',').filter(Boolean)];
  const findings = options.singlePhase
    ? []
    : runNodeChecks({
        facts,
        nodeName: registration.name,
        nodeIPs: nodeIPs.filter(Boolean),
        hasHostnameLabel: words.some(({ name, value }) => name === 'node-labels' && /(?:^|,)kubernetes\.io\/hostname=/.test(value)),
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
  const [accepted, ofHost] = await Promise.all([
    queryKubelet(context, options, facts, designed, checksClock && !options.staged && !options.singlePhase),
    newNodeFindings(context, options, node, designed, written),
  ]);
  return preflightVerdict(context, options, node, [...findings, ...flags, ...accepted, ...ofHost, ...more]);
}

/**
 * Sorts the findings of a node into errors and warnings, by the options of the run and of the node.
 * @returns nothing if the run skips preflight
 */
export function preflightVerdict(
  { host }: Pick<PhaseContext, 'host'>,
  options: Pick<NodeOptions, 'run' | 'skipPreflight' | 'staged'>,
  { facts, registration }: Pick<ObservedNode, 'facts' | 'registration'>,
  findings: readonly Finding[],
): PreflightVerdict {
  if (options.skipPreflight) return { errors: [], warnings: [] };
  const applicable = findings.filter(({ id }) => !(options.staged && id === 'IsPrivilegedUser'));
  const softened = applicable.map(
    (finding): Finding => (options.run.dryRun && softens(finding, facts) ? { ...finding, severity: 'warning' } : finding),
  );
  return validateFindings(softened, [options.run, registration], host.name);
}

/** Checks whose errors are warnings in a dry run. */
const ABSENT_IS_FINE = new Set(['IsPrivilegedUser', 'KubeletVersion', 'CRI', 'ExternalEtcdClientCertificates']);

/** Runs the installed kubelet on the new configuration, and reads its state files and the clock. One round trip. */
async function queryKubelet(
  context: PhaseContext,
  { catalogue, staged }: NodeOptions,
  facts: HostFacts,
  { design, reading }: DesignedKubelet,
  checksClock: boolean,
): Promise<readonly Finding[]> {
  const { host, signal, clock } = context;
  const clockFact = checksClock ? hostClock : NO_CLOCK;
  const clockOf = (seconds: number | null): readonly Finding[] => clockFindings(seconds, clock.now().getTime());
  const { kubelet } = facts;
  const { files, mergedYaml, flags, unit, minor } = design;
  if (staged || kubelet === null || 'error' in kubelet || (await runsWith(design, facts, context)))
    return checksClock ? clockOf(await observe(host, clockFact, signal)) : [];
  const words = [...flags.map(({ name, value }) => `--${name}=${value}`), ...unit.extraArgs];
  // The drop-in files are not on the host yet, so the kubelet reads their fields in one file.
  const isSplit = files.configDropIns !== null;
  const queried = flagsForQuery(words, { catalogue, minor }).filter(({ name }) => !isSplit || name !== 'config-dir');
  const acceptance = kubeletAcceptance(kubelet.path, isSplit ? mergedYaml : revealText(files.configYaml.content), queried);
  const states = managerStateTexts(reading.rootDir);
  const found = await observe(host, combineFacts({ acceptance, states, seconds: clockFact }), signal);
  return [
    ...kubeletConfigAccepted(found.acceptance, kubelet.version),
    ...stateFindings(design, reading, found.states),
    ...clockOf(found.seconds),
  ];
}

/** State files with which the kubelet exits when this run restarts it, also after a rollback. */
function stateFindings({ layered }: NodeDesign, { rootDir }: KubeletReading, texts: ReadonlyMap<string, string>): readonly Finding[] {
  const change = { before: null, after: layered.config };
  const unusable = unusableManagerStates(change, rootDir, texts, { removesOutdated: true });
  return unusable.map((state) => ({ id: 'KubeletState', severity: 'error', ...state }));
}

const NO_CLOCK = defineFact({}, (): number | null => null);

/**
 * Whether the kubelet already runs with exactly these files, so that it need not validate them again. A kubelet that systemd
 * restarted may be active between two crashes.
 */
async function runsWith(
  { files: { configYaml, flagsEnv, instanceConfig, configDropIns }, unit: { files } }: NodeDesign,
  { unit }: HostFacts,
  { host, signal }: PhaseContext,
): Promise<boolean> {
  if (unit?.activeState !== 'active' || unit.restarts > 0 || unit.needsReload) return false;
  const desired = [configYaml, ...(configDropIns ?? []), flagsEnv, ...(instanceConfig === null ? [] : [instanceConfig]), ...files];
  const found = await observe(host, fileFacts(desired.map(({ path }) => path)), signal);
  return desired.every(({ path, content }) => found.get(path)?.content === revealText(content));
}

function softens({ id }: Finding, facts: HostFacts): boolean {
  return ABSENT_IS_FINE.has(id) && (id !== 'KubeletVersion' || facts.kubelet === null);
}

/** Fields of a new node with checks of their own (CRI), or whose files this run writes. */
const CHECKED_ELSEWHERE = ['containerRuntimeEndpoint', 'imageServiceEndpoint', 'staticPodPath'] as const;

/**
 * Finds what a host without a node lacks for its configuration: files, directories and programs that fields and flags
 * name, ports, addresses, CPUs, space. A running node has the same checks, which also consider its pods. Only fields
 * that differ from the defaults of the kubelet are checked.
 */
async function newNodeFindings(
  { host, signal }: PhaseContext,
  { catalogue, staged }: NodeOptions,
  { facts: { identity } }: ObservedNode,
  { design, reading, setup }: DesignedKubelet,
  written: readonly string[],
): Promise<readonly Finding[]> {
  if (staged || identity.state !== 'missing') return [];
  const { minor, nodeName } = design;
  const { flags } = setup;
  const after = effectiveOf(setup, reading);
  if (after === null) return [];
  const before = {
    ...effectiveConfiguration({}, { catalogue, minor }),
    ...Object.fromEntries(CHECKED_ELSEWHERE.map((field) => [field, after[field] ?? null])),
  };
  const risks = await findRisksOnHost({
    host,
    cluster: null,
    nodeName,
    minor,
    catalogue,
    before,
    after,
    flags,
    newFlags: flags,
    given: {},
    hidden: written,
    removesManagerStates: true,
    signal,
  });
  return risks.map((risk): Finding => {
    const severity = risk.severity === 'loss' ? 'error' : 'warning';
    const hint =
      risk.fix === undefined ? `Change ${risk.path}` : `${risk.fix[0]?.toUpperCase()}${risk.fix.slice(1)}, or change ${risk.path}`;
    return { id: 'ConfigOnHost', severity, message: describeRisk(risk), hint };
  });
}
