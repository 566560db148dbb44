import { usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Impact } from '../../host/plan/impact.ts';
import { phaseSelection, planWorkflow, skipsPreflight } from '../../host/run-workflow.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeUpgradeFlags } from '../../kubeadm/config/flags.ts';
import { upgradeKubeletConfig } from '../../kubeadm/phases/kubelet-start.ts';
import { NodeGroups } from '../../kubeadm/render/node-groups.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { nodeCluster } from '../../kubeadm/use-cases/node-cluster.ts';
import { durationMs, type FieldsRequest, isForKubelet, readOverlay, readPatches } from '../../kubeadm/use-cases/node-options.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster, trustOf } from '../../kubeadm/use-cases/open-cluster.ts';
import type { PodLoss } from '../../kubeadm/workflows/node-options.ts';
import { type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../kubeadm/workflows/upgrade-node.ts';
import { loadCatalogue } from '../../kubelet/catalogue.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { RulesRequest } from './fleet-rules.ts';
import { type HostsRequest, readHostTargets } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import type { OpenedCommand } from './run-workflow-on-hosts.ts';

export interface UpgradeNodeRequest {
  /** Undefined: all phases. */
  readonly onlyPhase: string | undefined;
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the document of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly hosts: HostsRequest;
  readonly fields: FieldsRequest;
  readonly plan: { readonly dryRun: boolean; readonly skipPhases: readonly string[] };
  readonly rules: RulesRequest;
  readonly writing: WritingRequest;
  /** Null: the Node name in the client certificate of the host. */
  readonly nodeName: string | null;
  readonly podLoss: PodLoss;
  /** The most disruptive impact on a running kubelet that is applied. */
  readonly allow: Impact;
  /** Ignore the settings stored on the host. */
  readonly forget: boolean;
}

/**
 * Prepares `upgrade node` and `upgrade node phase NAME...`.
 * @throws AppError: problems of the configuration, all at once (exit code 2); errors of the kubeconfig
 */
export async function openUpgradeNode(services: NodeCommandPorts, request: UpgradeNodeRequest, reporter: Reporter): Promise<OpenedCommand> {
  const { onlyPhase, plan, nodeName } = request;
  const { overlay, settings, declared, configDir } = request.fields;
  const config = mergeUpgradeFlags(await loadConfigFile(services, request.config, ['UpgradeConfiguration']), 'node', request.flags);
  const warnings = requireValid(config);
  const { node = {}, timeouts } = config.upgrade ?? {};
  const directory = node.patches?.directory;
  const skipPhases = [...plan.skipPhases, ...(node.skipPhases ?? [])];
  const dryRun = plan.dryRun || node.dryRun === true;
  const workflowOptions: Omit<UpgradeNodeOptions, 'trust' | 'nodeName'> = {
    templates: await services.templates(),
    catalogue: await loadCatalogue(),
    groups: new NodeGroups(),
    overlays: overlay === undefined ? null : await readOverlay(services, overlay),
    declared,
    settings: settings.length === 0 ? null : settings,
    patches: directory === undefined ? null : (await readPatches(services, directory, reporter)).filter(isForKubelet),
    configDir,
    forget: request.forget,
    ignorePreflightErrors: node.ignorePreflightErrors ?? [],
    skipPreflight: skipsPreflight(skipPhases),
    podLoss: phaseSelection(skipPhases, onlyPhase)(upgradeKubeletConfig.name) ? request.podLoss : 'ignore',
    dryRun,
    staged: false,
    kubeletHealthCheckMs: durationMs(timeouts?.kubeletHealthCheck, 240_000),
  };
  const targets = await readHostTargets(services, request.hosts);
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Upgrade the hosts one by one');
  const admin = isKubeconfigGiven(request.cluster)
    ? await openCluster(services, request.cluster, { dryRun: false, staged: false, writes: reporter })
    : null;
  const options = { ...workflowOptions, trust: admin === null ? null : trustOf(services, admin), nodeName };
  return {
    workflow: {
      targets,
      cluster: admin?.cluster ?? null,
      ...(admin === null ? { clusterOf: (host) => nodeCluster(services, host) } : {}),
      planHost: (context, run) => planWorkflow(upgradeNodeWorkflow, context, options, run),
      rules: request.rules,
      writing: request.writing,
      dryRun,
      skipPhases,
      allow: request.allow,
      ...(onlyPhase === undefined ? {} : { onlyPhase }),
    },
    warnings,
    close: async () => admin?.cluster?.close(),
  };
}
