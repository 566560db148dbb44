import { isAppError, type Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { upTo } from '../../base/text/up-to.ts';
import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import type { NodeClaim } from '../../host/node-claim.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { execStartWords, type UnitTexts } from '../../host/systemd/exec-start.ts';
import { observeUnitTexts } from '../../host/systemd/observe-unit-texts.ts';
import { commandLineWithDropIn, lastFlag, withoutDropIn, writtenCommand } from '../../host/systemd/try-drop-in.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { ChangeUnitsInput } from '../../kubeadm/phases/change-units.ts';
import { challengeHost, identifyBy, type NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import { type Catalogue, formatMinor, type Minor } from '../../kubelet/catalogue/catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { healthzOf } from '../../kubelet/effective/healthz-url.ts';
import { type ObservedFlags, observeKubeletFlags } from '../../kubelet/effective/observe-kubelet.ts';
import { layerRunningConfig } from '../../kubelet/effective/running-config.ts';
import type { HealthTarget } from '../../kubelet/health/wait-healthy.ts';
import { POINTER_DROP_IN, renderPointerDropIn } from '../../kubelet/node-agent/agent-units.ts';
import { formatPointer, hashInPath, pointerFile } from '../../kubelet/node-agent/layout.ts';
import { noSuchNode } from '../status/dynamic-problems.ts';
import type { Backend } from '../status/node-config.ts';

export interface DynamicHostOptions {
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  /** Named by the operator; null: the host must prove its Node. */
  readonly nodeName: string | null;
  readonly trust: NodeTrust;
}

export interface DynamicHost {
  readonly backend: Backend;
  readonly minor: Minor;
  /** The Node that the host proved to be, or that the operator named; null: refused. */
  readonly node: NodeClaim | null;
  /** The Node is registered, and not Ready. */
  readonly isDown: boolean;
  readonly nodeName: string | null;
  readonly machine: string | null;
  readonly unitTexts: UnitTexts | null;
  /** The kubelet's configuration from its file and flags; null: unreadable. */
  readonly config: JsonObject | null;
  /** Flag of the running kubelet, or of the next one. */
  flag(name: string): string | undefined;
  runsWith(name: string): boolean;
  /** The agent's payload that the kubelet was started with; null: the local configuration. */
  readonly payload: string | null;
  readonly health: HealthTarget;
  readonly verification: ChangeUnitsInput['verification'];
  readonly refusals: readonly Problem[];
}

const HEALTH_MS = 120_000;

/**
 * Observes a host and its Node.
 * @param use.backend null: by the version of the kubelet
 * @param use.needsNode an installation requires the Node to exist; a removal does not
 */
export async function observeDynamicHost(
  context: PhaseContext,
  options: DynamicHostOptions,
  use: { readonly backend: Backend | null; readonly needsNode: boolean },
): Promise<DynamicHost> {
  const { host, signal, cluster } = context;
  const observed = await observeKubeletFlags(host, options.catalogue, signal);
  const flag = (name: string): string | undefined => observed.flags.findLast((one) => one.name === name)?.value;
  const desired = { trust: options.trust, named: options.nodeName, kubeconfig: flag('kubeconfig') };
  const { challenge, fact } = await challengeHost(desired);
  const { os, init, evidence } = await observe(host, combineFacts({ os: operatingSystem, init: initSystem, evidence: fact }), signal);
  const unitTexts = await observeUnitTexts(host, observed.unit, { signal });
  const identified = await identifyBy(context, { challenge, evidence }, desired);
  const nodeName = identified.claim?.nodeName ?? null;
  const { minor } = observed;
  const backend = use.backend ?? (minor <= LAST_DYNAMIC_MINOR ? 'native' : 'agent');
  const refusals = [...refusalsOf(host.name, { uid: os.uid, init, unitTexts, observed, backend }), ...identified.refusals];
  if (nodeName !== null && cluster !== null && identified.node === null && use.needsNode)
    refusals.push({
      ...noSuchNode(nodeName, cluster.server),
      host: host.name,
      message: `the API server ${cluster.server} has no Node ${nodeName}`,
    });
  const configPath = flag('config') ?? null;
  const configText = configPath === null ? null : ((await observe(host, fileFacts([configPath]), signal)).get(configPath)?.content ?? null);
  return {
    backend,
    minor,
    node: identified.claim,
    isDown: identified.node !== null && !isNodeReady(identified.node),
    nodeName,
    machine: os.machine,
    unitTexts,
    config: configOf(configPath, configText, observed, options.catalogue),
    flag,
    runsWith: (name) =>
      observed.kubelet?.argv.some((word) => upTo(word, '=').replace(/^--?/, '') === name && word.startsWith('-')) === true,
    payload: observed.kubelet === null ? null : hashInPath(observed.kubelet.argv.join('\n')),
    health: { url: await healthzOf(host, configPath, signal), timeoutMs: HEALTH_MS },
    verification:
      nodeName === null || configText === null
        ? null
        : { nodeName, minor, catalogue: options.catalogue, before: configText, after: configText },
    refusals,
  };
}

/** The reasons to change nothing on a host that do not concern its Node. */
function refusalsOf(
  host: string,
  {
    uid,
    init,
    unitTexts,
    observed,
    backend,
  }: Pick<DynamicHost, 'unitTexts' | 'backend'> & {
    readonly uid: number | null;
    readonly init: string | null;
    readonly observed: ObservedFlags;
  },
): readonly Problem[] {
  const refusals: Problem[] = [];
  const refuse = (code: string, message: string, hint: string): void => void refusals.push({ host, code, message, hint });
  if (uid !== null && uid !== 0)
    refuse('IsPrivilegedUser', 'the user on the host is not root', 'Connect as root, or use privilege escalation (sudo)');
  if (init !== 'systemd') refuse('SYSTEMD_MISSING', 'systemd is not running on the host', 'Run the kubelet as a systemd unit');
  else if (unitTexts === null)
    refuse(
      'KUBELET_UNIT_MISSING',
      'the unit kubelet.service does not exist',
      'Join the host to the cluster with kubeletadm init or kubeletadm join',
    );
  if (backend === 'native' && observed.minor > LAST_DYNAMIC_MINOR)
    refuse(
      'DYNAMIC_NOT_NATIVE',
      `kubelet ${observed.version} has no built-in dynamic configuration; only kubelets up to ${formatMinor(LAST_DYNAMIC_MINOR)} have one`,
      'Omit --backend, so that the kubeletadm agent applies configurations',
    );
  return refusals;
}

function configOf(path: string | null, text: string | null, { minor, flags }: ObservedFlags, catalogue: Catalogue): JsonObject | null {
  if (path === null || text === null) return null;
  try {
    return layerRunningConfig({ catalogue, minor, flags, configFile: { path, text }, dropIns: [], dynamicConfig: null }).layered.config;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** The variable with the kubelet's --config flag in kubeadm's drop-in. */
const VARIABLE = 'KUBELET_CONFIG_ARGS';
const SAMPLE = '0'.repeat(64);

/**
 * Plans the drop-in that makes a kubelet read the configuration named by the pointer, or its own
 * configuration without a pointer. Existing files are not changed: if the unit uses `KUBELET_CONFIG_ARGS`, as
 * kubeadm's does, the pointer sets that variable; otherwise the variable is appended to the unit's command
 * line, where it takes precedence. The result is verified on the texts before the host is changed.
 * @returns `localConfig` is the configuration without a pointer
 */
export function planPointerDropIn(
  templates: Templates,
  texts: UnitTexts,
  directory: string,
):
  | { readonly kind: 'drop-in'; readonly text: string; readonly localConfig: string }
  | { readonly kind: 'impossible'; readonly why: string; readonly hint: string } {
  const own = withoutDropIn(texts, POINTER_DROP_IN);
  const [words, command] = [execStartWords(own.unitFiles, own.environmentFiles), writtenCommand(own)];
  if (words === null || command === null)
    return {
      kind: 'impossible',
      why: 'the unit kubelet.service does not exist or has no ExecStart',
      hint: 'Join the host to the cluster first (kubeletadm init or kubeletadm join)',
    };
  const local = lastFlag(words, 'config')?.value ?? '';
  if (local === '')
    return {
      kind: 'impossible',
      why: 'the kubelet runs without --config, so a rollback would have no local configuration',
      hint: 'Start the kubelet with --config FILE, as kubeletadm init and kubeletadm join do',
    };
  const pointer = { path: pointerFile(directory), text: formatPointer(directory, SAMPLE) };
  let shadow = '';
  for (const appended of [null, command]) {
    const text = renderPointerDropIn(templates, directory, appended);
    const found = lastFlag(commandLineWithDropIn(own, { path: POINTER_DROP_IN, text }, [pointer]), 'config');
    if (hashInPath(found?.value ?? '') === SAMPLE) return { kind: 'drop-in', text, localConfig: local };
    shadow = found?.source ?? '';
  }
  return {
    kind: 'impossible',
    why: `${shadow} sets --config, which overrides the configuration that the agent selects`,
    hint: `Remove --config from that file, or make the unit read $${VARIABLE} last`,
  };
}
