import { AppError, usageError } from '../../base/errors.ts';
import type { Secret } from '../../base/text/secret.ts';
import { isSinglePhase } from '../../host/run-settings.ts';
import { planWorkflow } from '../../host/run-workflow.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import { PHASES_WITH_KUBECONFIG } from '../../kubeadm/config/kubeconfig-phases.ts';
import { controlPlaneInputs, releaseOf } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { checksOf, initTokens } from '../../kubeadm/use-cases/init-phases.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { type NodeRequest, readNodeOptions } from '../../kubeadm/use-cases/node-options.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { type InitOptions, initWorkflow } from '../../kubeadm/workflows/init.ts';
import { initWaitWorkflow, onlyWaits } from '../../kubeadm/workflows/wait-on-host.ts';
import { type HostTarget, isLocalHost, targetName } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface InitRequest extends HostsSettings {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  /** The cluster in which a phase alone creates its objects; default: that of the host's admin.conf. */
  readonly cluster: KubeconfigRequest;
  readonly node: NodeRequest;
  readonly hosts: HostsRequest;
  readonly uploadCerts: boolean;
  readonly skipCertificateKeyPrint: boolean;
  readonly skipTokenPrint: boolean;
  readonly forceUpload: boolean;
  /** Directory for the kubeconfigs that `init phase kubeconfig` generates. Undefined: /etc/kubernetes. */
  readonly kubeconfigDir: string | undefined;
}

/** Join commands, each with the kind of node that it adds. */
export type JoinCommands = ReadonlyMap<string, 'worker' | 'control-plane'>;

export interface OpenedInit extends HostsCommand {
  /** The join commands of the run; empty before its last phase. */
  readonly joinCommands: JoinCommands;
  /** The key of the certificates that the run uploaded; null: none were uploaded. */
  certificateKey(): Secret | null;
}

const INIT_KINDS = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;

/**
 * Prepares `init` and `init phase NAME...`. As in kubeadm, only some phases have `--kubeconfig`: with it they create their
 * objects in that cluster.
 * @throws AppError: problems of the configuration, all at once (exit code 2); USAGE for several hosts; errors of the
 * kubeconfig and the API server
 */
export async function openInit(services: NodeCommandPorts, request: InitRequest, scope: CommandScope): Promise<OpenedInit> {
  const { reporter } = scope;
  const { onlyPhase } = request.run;
  const { kubeconfig, context } = request.cluster;
  const hasKubeconfig = isSinglePhase(request.run, PHASES_WITH_KUBECONFIG);
  if (!hasKubeconfig && (kubeconfig ?? context) !== undefined) throw existingCluster(request);
  const isGiven = isKubeconfigGiven(request.cluster);
  const { kubelet = null, ...loaded } = await loadConfigFile(services, request.config, INIT_KINDS);
  const config = mergeInitFlags(loaded, request.flags);
  const warnings = requireValid(config);
  const staged = request.hosts.rootDir !== undefined;
  const node = await readNodeOptions(services, { config, kind: 'init', node: request.node, run: request.run, staged, reporter });
  const { run } = node;
  const targets = await readHostTargets(services, request.hosts);
  if (targets.length > 1) throw oneHost(targets, onlyPhase);
  const given = isGiven ? await openCluster(services, request.cluster, { ...run, staged, writes: reporter }) : null;
  const cluster = given?.cluster ?? null;
  if (cluster !== null) scope.opened(cluster);
  const joinCommands = new Map<string, 'worker' | 'control-plane'>();
  let certificateKey: Secret | null = null;
  const init = config.init ?? {};
  const options: InitOptions = {
    ...node,
    ...checksOf(initWorkflow, run),
    cluster: config.cluster ?? {},
    kubelet,
    kubeProxy: config.kubeProxy ?? null,
    configOrigins: config.origins,
    localAPIEndpoint: init.localAPIEndpoint ?? {},
    timeouts: init.timeouts ?? {},
    ...(await controlPlaneInputs(services, { isLocal: isLocalHost(targets[0]), staged })),
    given,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    kubeconfigDir: request.kubeconfigDir,
    ...(await initTokens(services, init, run)),
    withholdToken: request.skipTokenPrint,
    showJoinCommand: (command, joins) => joinCommands.set(command.reveal(), joins),
    forceUpload: request.forceUpload,
    uploadCerts: request.uploadCerts,
    certificateKey: init.certificateKey ?? null,
    showCertificateKey: (key) => {
      certificateKey = key;
    },
    withholdCertificateKey: request.skipCertificateKeyPrint,
    opened: scope.opened,
  };
  return {
    planHost: (context, own) =>
      onlyWaits(request.run) ? planWorkflow(initWaitWorkflow, context, options, own) : planWorkflow(initWorkflow, context, options, own),
    targets,
    cluster,
    run,
    warnings: [...warnings, ...(given?.warnings ?? [])],
    joinCommands,
    certificateKey: () => certificateKey,
  };
}

function existingCluster({ cluster: { kubeconfig, context }, run: { onlyPhase } }: InitRequest): AppError {
  const option = kubeconfig === undefined ? '--context' : '--kubeconfig';
  if (onlyPhase !== undefined) {
    const message = `${phaseWords(onlyPhase)} has no option ${option}`;
    const join = 'To join hosts to an existing cluster, run kubeletadm cluster adopt, then kubeletadm join for each host';
    return usageError(message, `Only these phases of init have --kubeconfig: ${PHASES_WITH_KUBECONFIG.join(', ')}. ${join}`);
  }
  const options = `--kubeconfig ${kubeconfig ?? 'FILE'}${context === undefined ? '' : ` --context ${context}`}`;
  const hint = `To join hosts to ${kubeconfig === undefined ? 'an existing cluster' : `the cluster of ${kubeconfig}`}, run kubeletadm cluster adopt ${options}, then kubeletadm join for each host`;
  return usageError(`init creates a new control plane, so it has no option ${option}`, hint);
}

/** `init phase certs ca`. */
function phaseWords(phase: string): string {
  return `init phase ${phase.replace('/', ' ')}`;
}

function oneHost(targets: readonly HostTarget[], onlyPhase: string | undefined): AppError {
  const given = `but ${targets.length} hosts were given: ${targets.map(targetName).join(', ')}`;
  const [message, hint] =
    onlyPhase === undefined
      ? [
          `init bootstraps the first control plane of a cluster on one host, ${given}`,
          'Run kubeletadm init with one --host, then join the other hosts: kubeletadm join --control-plane',
        ]
      : [`${phaseWords(onlyPhase)} runs on one host, ${given}`, 'Pass one --host'];
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}
