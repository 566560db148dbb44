import { usageError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { withDocument } from '../../host/run-settings.ts';
import { hasPhase, planWorkflow, type Workflow } from '../../host/run-workflow.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeUpgradeFlags } from '../../kubeadm/config/flags.ts';
import { manifestPath } from '../../kubeadm/control-plane/paths.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { nodeCluster } from '../../kubeadm/use-cases/node-cluster.ts';
import { readPatches } from '../../kubeadm/use-cases/node-options.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import { upgradeControlPlaneNodeWorkflow } from '../../kubeadm/workflows/upgrade/control-plane-upgrade.ts';
import { type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../kubeadm/workflows/upgrade/upgrade-node.ts';
import type { Selectable } from '../file/select.ts';
import { type HostTarget, targetName } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { hostPlaces } from './host-places.ts';
import { readNamedTargets } from './named-hosts.ts';
import { openControlPlaneUpgrades } from './open-control-plane-upgrade.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';
import { type UpgradedKubeletRequest, upgradeNodeOptions } from './upgrade-node-options.ts';

export interface UpgradeNodeRequest extends UpgradedKubeletRequest, HostsSettings {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the document of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
  /** Null: the Node name in the client certificate of the host. */
  readonly nodeName: string | null;
}

/**
 * Prepares `upgrade node` and `upgrade node phase NAME...`.
 * @throws AppError: problems of the configuration, all at once (exit code 2); errors of the kubeconfig
 */
export async function openUpgradeNode(
  services: NodeCommandPorts,
  request: UpgradeNodeRequest,
  { reporter, opened }: CommandScope,
): Promise<HostsCommand> {
  const { nodeName } = request;
  const config = mergeUpgradeFlags(await loadConfigFile(services, request.config, ['UpgradeConfiguration']), 'node', request.flags);
  const warnings = requireValid(config);
  const { node = {}, timeouts } = config.upgrade ?? {};
  const directory = node.patches?.directory;
  const run = withDocument(request.run, node);
  const { onlyPhase } = run;
  const patches = directory === undefined ? null : await readPatches(services, directory, reporter);
  const workflowOptions = await upgradeNodeOptions(services, request, { timeouts, patches, run });
  const named = await readNamedTargets(services, request.hosts);
  const targets = named.map(({ target }) => target);
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Upgrade the hosts one by one');
  const admin = isKubeconfigGiven(request.cluster) ? await openCluster(services, request.cluster, { writes: reporter }) : null;
  const options = { ...workflowOptions, trust: admin === null ? null : operatorNodeTrust(services, admin), nodeName };
  const given = admin?.cluster ?? null;
  if (given !== null) opened(given);
  const upgrade = { node: options, settings: node, timeouts, patches, targets, given };
  const controlPlane = (await openControlPlaneUpgrades(services, upgrade, opened))(upgradeControlPlaneNodeWorkflow, (common) => common);
  const hosts = named.map(({ target, member }) => member ?? unknownHost(target));
  const placeOf = await hostPlaces(request.rules?.order === undefined ? null : given, hosts);
  return {
    targets,
    hosts,
    zoneOf: (host) => placeOf(host).zone,
    hasCanaryPerStage: true,
    cluster: given,
    ...(admin === null ? { clusterOf: (host) => nodeCluster(services, host) } : {}),
    planHost: async (context, own) => {
      if (await isControlPlane(context)) return { ...(await controlPlane(context, own)), isExclusive: true, stage: CONTROL_PLANES };
      const isAbsent =
        onlyPhase !== undefined && !hasPhase(upgradeNodeWorkflow, onlyPhase) && hasPhase(upgradeControlPlaneNodeWorkflow, onlyPhase);
      const workflow = isAbsent ? skippedOnWorkers(onlyPhase) : upgradeNodeWorkflow;
      return { ...(await planWorkflow(workflow, context, options, own)), stage: WORKERS };
    },
    run,
    inspectsFirst: true,
    warnings,
  };
}

/** A kubelet must not be newer than the API servers, so control planes are upgraded first. */
const CONTROL_PLANES = 0;
const WORKERS = 1;

/** A host that no fleet file names. */
function unknownHost(target: HostTarget): Selectable {
  return { name: targetName(target), role: 'worker', groups: [], nodeRegistration: {} };
}

const API_SERVER = manifestPath('kube-apiserver');

/** @see kubeadm 1.36 util/staticpod IsControlPlaneNode */
async function isControlPlane({ host, signal }: PhaseContext): Promise<boolean> {
  return (await observe(host, fileFacts([API_SERVER]), signal)).get(API_SERVER) !== null;
}

/** A phase of control planes on a worker: nothing is changed, as with kubeadm. */
function skippedOnWorkers(name: string): Workflow<UpgradeNodeOptions, null> {
  const phase = definePhase<null, null>({
    name,
    short: 'Skipped on workers',
    observe: async () => null,
    plan: () => ({ changes: [], noop: 'skipped: the host is not a control plane' }),
  });
  return { name: 'upgrade node', phases: [phase], prepare: async () => ({ input: null, warnings: [], refusals: [] }) };
}
