import type { ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { readHostTargets } from '../fleet/use-cases/host-access.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import { countMissingTokens } from '../kubeadm/config/defaults.ts';
import type { Flags } from '../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../kubeadm/config/flags.ts';
import { freshTokens, phaseSelection, placeholderTokens } from '../kubeadm/use-cases/init-phases.ts';
import { loadConfigFile, requireValid } from '../kubeadm/use-cases/load-config-file.ts';
import { durationMs, type NodeRequest, readNodeOptions } from '../kubeadm/use-cases/node-options.ts';
import { isKubeconfigGiven, type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import type { ApiAccess } from '../kubeadm/workflows/control-plane/api-access.ts';
import { type InitOptions, initWorkflow } from '../kubeadm/workflows/init.ts';
import type { ControlPlaneRequest, controlPlaneRun } from './init-control-plane.ts';
import { printJoinCommands } from './print-join-commands.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';

export interface InitRequest extends ControlPlaneRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly node: NodeRequest;
}

/** `init` and `init phase NAME...`. Bootstraps a control plane; with `--kubeconfig` a first node of that existing cluster. */
export async function runInit(services: Services, request: InitRequest): Promise<ExitCode> {
  const { onlyPhase, plan } = request;
  const { kubelet = null, ...loaded } = await loadConfigFile(services, request.config, [
    'InitConfiguration',
    'ClusterConfiguration',
    'KubeletConfiguration',
    'KubeProxyConfiguration',
  ]);
  const config = mergeInitFlags(loaded, request.flags);
  const warnings = requireValid(config);
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const node = await readNodeOptions(services, {
    config,
    kind: 'init',
    node: request.node,
    plan,
    staged: request.hosts.rootDir !== undefined,
    reporter,
  });
  const { dryRun, staged } = node;
  const skipPreflight = node.skipPreflight || (onlyPhase !== undefined && NEED_NO_NODE.test(onlyPhase));
  const isGiven = isKubeconfigGiven(request.cluster);
  if (!isGiven) reportIgnoredVariable(services, reporter);
  const makes = !isGiven || (onlyPhase !== undefined && !GIVEN_PHASES.test(onlyPhase));
  const opened = isGiven
    ? await openCluster(services, request.cluster, { dryRun, staged, writes: reporter })
    : { cluster: null, apiServer: null, warnings: [] };
  const joinCommands = new Map<string, 'worker' | 'control-plane'>();
  const accesses: ApiAccess[] = [];
  const init = config.init ?? {};
  const skipped = [...plan.skipPhases, ...(init.skipPhases ?? [])];
  try {
    const targets = await readHostTargets(services, request.hosts);
    const count = countMissingTokens(init);
    const common = {
      ...node,
      skipPreflight,
      cluster: config.cluster ?? {},
      kubelet,
      bootstrapTokens: init.bootstrapTokens ?? [],
      freshTokens: dryRun ? placeholderTokens(count) : await freshTokens(services, count),
      makesTokens: phaseSelection(skipped, onlyPhase)('bootstrap-token'),
      withholdToken: request.skipTokenPrint,
      showJoinCommand: (command, joins) => joinCommands.set(command.reveal(), joins),
      forceUpload: request.forceUpload,
    } satisfies Partial<InitOptions>;
    const made = makes
      ? await newControlPlane(services, { config, request, node, targets, skipped, opened, onAccess: (one) => accesses.push(one) })
      : null;
    const tlsBootstrapMs = durationMs(init.timeouts?.tlsBootstrap, 300_000);
    const code = await runOnHosts(services, {
      planHost: (context, run) =>
        made === null
          ? planWorkflow(initWorkflow, context, { ...common, apiServer: opened.apiServer, tlsBootstrapMs }, run)
          : planWorkflow(made.workflow, context, { ...common, ...made.options }, run),
      targets,
      cluster: opened.cluster,
      plan,
      writing: request.writing,
      reporter,
      warnings: [...warnings, ...opened.warnings],
      dryRun,
      skipPhases: init.skipPhases ?? [],
      ...(onlyPhase === undefined ? {} : { onlyPhase }),
    });
    printJoinCommands(services, joinCommands, plan);
    if (joinCommands.size === 0) made?.printCertificateKey();
    return code;
  } finally {
    for (const access of accesses) await access.close();
    await opened.cluster?.close();
  }
}

/** Loads the code of new control planes only where it is needed. */
async function newControlPlane(...args: Parameters<typeof controlPlaneRun>): ReturnType<typeof controlPlaneRun> {
  const { controlPlaneRun } = await import('./init-control-plane.ts');
  return controlPlaneRun(...args);
}

/**
 * As in kubeadm, only the flag selects an existing cluster: the environment variable often names an unrelated
 * one.
 */
function reportIgnoredVariable({ env }: Services, reporter: Reporter): void {
  const { KUBECONFIG = '' } = env;
  if (KUBECONFIG === '') return;
  const message = `KUBECONFIG=${KUBECONFIG} is ignored by init, which bootstraps a new cluster. Pass --kubeconfig to use that cluster`;
  reporter.report({ level: 'info', code: 'KUBECONFIG_IGNORED', message });
}

/**
 * Phases that write to the cluster, or files for later use: the kubelet's requirements on the host do not
 * apply.
 */
const NEED_NO_NODE =
  /^(?:bootstrap-token|upload-config|upload-certs|mark-control-plane|addon|show-join-command|certs|kubeconfig|etcd|control-plane)(?:\/|$)/;

/** Phases of a node at an existing API server. */
const GIVEN_PHASES = /^(?:preflight|bootstrap-token|kubelet-start|kubelet-wait-bootstrap|upload-config|show-join-command)(?:\/|$)/;
