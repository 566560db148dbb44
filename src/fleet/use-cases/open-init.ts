import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Secret } from '../../base/text/secret.ts';
import { hasPhase, phaseSelection, planWorkflow } from '../../host/run-workflow.ts';
import { countMissingTokens } from '../../kubeadm/config/defaults.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import { checksOf, freshTokens, placeholderTokens } from '../../kubeadm/use-cases/init-phases.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { durationMs, type NodeRequest, readNodeOptions } from '../../kubeadm/use-cases/node-options.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { type InitOptions, initWorkflow } from '../../kubeadm/workflows/init.ts';
import { initWaitWorkflow, onlyWaits } from '../../kubeadm/workflows/wait-on-host.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';
import type { ControlPlaneRequest, openInitControlPlane } from './open-init-control-plane.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface InitRequest extends ControlPlaneRequest, HostsSettings {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly node: NodeRequest;
  readonly hosts: HostsRequest;
  readonly skipTokenPrint: boolean;
  readonly forceUpload: boolean;
}

/** Join commands, each with the kind of node that it adds. */
export type JoinCommands = ReadonlyMap<string, 'worker' | 'control-plane'>;

interface OpenedInit extends HostsCommand {
  /** The join commands of the run; empty before its last phase. */
  readonly joinCommands: JoinCommands;
  /** The key of the certificates that the run uploaded; null: none were uploaded. */
  certificateKey(): Secret | null;
}

const INIT_KINDS = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;

/**
 * Prepares `init` and `init phase NAME...`: a new control plane; with `--kubeconfig` the first node of that existing
 * cluster.
 * @throws AppError: problems of the configuration, all at once (exit code 2); errors of the kubeconfig and the API
 * server
 */
export async function openInit(services: NodeCommandPorts, request: InitRequest, scope: CommandScope): Promise<OpenedInit> {
  const { reporter } = scope;
  const { onlyPhase } = request.run;
  const { kubelet = null, ...loaded } = await loadConfigFile(services, request.config, INIT_KINDS);
  const config = mergeInitFlags(loaded, request.flags);
  const warnings = requireValid(config);
  const node = await readNodeOptions(services, {
    config,
    kind: 'init',
    node: request.node,
    run: request.run,
    staged: request.hosts.rootDir !== undefined,
    reporter,
  });
  const { run, staged } = node;
  const isGiven = isKubeconfigGiven(request.cluster);
  if (!isGiven) reportIgnoredVariable(services, reporter);
  const makes = !isGiven || (onlyPhase !== undefined && !hasPhase(initWorkflow, onlyPhase));
  const opened = isGiven
    ? await openCluster(services, request.cluster, { ...run, staged, writes: reporter })
    : { cluster: null, apiServer: null, warnings: [] };
  const joinCommands = new Map<string, 'worker' | 'control-plane'>();
  let certificateKey: Secret | null = null;
  if (opened.cluster !== null) scope.opened(opened.cluster);
  const init = config.init ?? {};
  const targets = await readHostTargets(services, request.hosts);
  const made = makes
    ? await newControlPlane(services, {
        config,
        request,
        node,
        targets,
        opened,
        onAccess: scope.opened,
        onCertificateKey: (key) => {
          certificateKey = key;
        },
      })
    : null;
  const count = countMissingTokens(init);
  const common = {
    ...node,
    ...checksOf(made?.workflow ?? initWorkflow, run),
    cluster: config.cluster ?? {},
    kubelet,
    bootstrapTokens: init.bootstrapTokens ?? [],
    freshTokens: run.dryRun ? placeholderTokens(count) : await freshTokens(services, count),
    makesTokens: phaseSelection(run)('bootstrap-token'),
    withholdToken: request.skipTokenPrint,
    showJoinCommand: (command, joins) => joinCommands.set(command.reveal(), joins),
    forceUpload: request.forceUpload,
  } satisfies Partial<InitOptions>;
  const tlsBootstrapMs = durationMs(init.timeouts?.tlsBootstrap, 300_000);
  return {
    planHost: (context, own) =>
      made === null
        ? planWorkflow(initWorkflow, context, { ...common, apiServer: opened.apiServer, tlsBootstrapMs }, own)
        : onlyWaits(onlyPhase)
          ? planWorkflow(initWaitWorkflow, context, { ...made.options, nodeRegistration: common.nodeRegistration }, own)
          : planWorkflow(made.workflow, context, { ...common, ...made.options }, own),
    targets,
    cluster: opened.cluster,
    run,
    warnings: [...warnings, ...opened.warnings],
    joinCommands,
    certificateKey: () => certificateKey,
  };
}

/** Loads the code of new control planes only where it is needed. */
async function newControlPlane(...args: Parameters<typeof openInitControlPlane>): ReturnType<typeof openInitControlPlane> {
  const { openInitControlPlane } = await import('./open-init-control-plane.ts');
  return openInitControlPlane(...args);
}

/**
 * As in kubeadm, only the flag selects an existing cluster: the environment variable often names an unrelated
 * one.
 */
function reportIgnoredVariable({ env }: Pick<LocalFiles, 'env'>, reporter: Reporter): void {
  const { KUBECONFIG = '' } = env;
  if (KUBECONFIG === '') return;
  const message = `init ignores the environment variable KUBECONFIG (${KUBECONFIG}) and bootstraps a new cluster. To use the existing cluster, pass --kubeconfig`;
  reporter.report({ level: 'info', code: 'KUBECONFIG_IGNORED', message });
}
