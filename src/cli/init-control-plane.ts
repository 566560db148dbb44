import { AppError, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { Secret } from '../base/text/secret.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { isThisMachine } from '../fleet/host-target.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import type { Warning } from '../host/plan/change.ts';
import type { Cluster } from '../kube/cluster.ts';
import { countMissingTokens } from '../kubeadm/config/defaults.ts';
import type { LoadedConfig } from '../kubeadm/config/load.ts';
import { caDirectoriesHere, connectOver, proxyEnvironment, releaseOf, routeHere } from '../kubeadm/use-cases/control-plane-inputs.ts';
import { freshTokens, isLeftOut, phaseSelection, placeholderTokens } from '../kubeadm/use-cases/init-phases.ts';
import type { ReadNodeOptions } from '../kubeadm/use-cases/node-options.ts';
import type { ApiAccess } from '../kubeadm/workflows/control-plane/api-access.ts';
import type { NodeTrust } from '../kubeadm/workflows/identify-node.ts';
import { type InitControlPlaneOptions, initControlPlaneWorkflow } from '../kubeadm/workflows/init-control-plane.ts';
import { printJoinCommands } from './print-join-commands.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

/** Options of the command line for a new control plane. */
export interface ControlPlaneRequest {
  /** Undefined: all phases. */
  readonly onlyPhase: string | undefined;
  readonly hosts: HostsRequest;
  readonly plan: PlanRequest;
  readonly writing: WritingRequest;
  readonly uploadCerts: boolean;
  readonly skipCertificateKeyPrint: boolean;
  readonly skipTokenPrint: boolean;
  readonly forceUpload: boolean;
}

export interface InitControlPlaneRun {
  readonly config: LoadedConfig;
  readonly request: ControlPlaneRequest;
  readonly node: ReadNodeOptions;
  readonly reporter: Reporter;
  readonly warnings: readonly Warning[];
  /** The value of `--kubeconfig`, for a single phase. */
  readonly given: Cluster | null;
  readonly trust: NodeTrust | null;
}

/** `init` and `init phase NAME...` without an existing API server: bootstraps a control plane. */
export async function runInitControlPlane(services: Services, run: InitControlPlaneRun): Promise<ExitCode> {
  const { config, request, node, reporter, given, trust } = run;
  const { onlyPhase, plan } = request;
  const init = config.init ?? {};
  const targets = await readHostTargets(services, request.hosts);
  if (targets.length > 1) throw oneHost(targets);
  const joinCommands = new Map<string, 'worker' | 'control-plane'>();
  let certificateKey: Secret | null = null;
  const accesses: ApiAccess[] = [];
  const count = countMissingTokens(init);
  const skipped = [...plan.skipPhases, ...(init.skipPhases ?? [])];
  const selects = phaseSelection(skipped, onlyPhase);
  const workflowOptions: InitControlPlaneOptions = {
    ...node,
    cluster: config.cluster ?? {},
    kubelet: config.kubelet ?? null,
    kubeProxy: config.kubeProxy ?? null,
    localAPIEndpoint: init.localAPIEndpoint ?? {},
    timeouts: init.timeouts ?? {},
    proxyEnvironment: isThisMachine(targets[0]) ? proxyEnvironment(services.env) : [],
    issuer: await services.certificateIssuer(),
    selects,
    skips: isLeftOut(skipped),
    routeHere: node.staged ? await routeHere(services) : {},
    caDirectoriesHere: node.staged ? await caDirectoriesHere(services) : [],
    connect: connectOver(services),
    given,
    trust,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    forceUpload: request.forceUpload,
    bootstrapTokens: init.bootstrapTokens ?? [],
    freshTokens: node.dryRun ? placeholderTokens(count) : await freshTokens(services, count),
    makesTokens: selects('bootstrap-token'),
    withholdToken: request.skipTokenPrint,
    showJoinCommand: (command, joins) => joinCommands.set(command.reveal(), joins),
    uploadCerts: request.uploadCerts,
    certificateKey: init.certificateKey ?? null,
    certsToken: node.dryRun ? new Secret(`dryrun.${'1'.repeat(16)}`) : await services.newToken(),
    showCertificateKey: (key) => {
      certificateKey = key;
    },
    withholdCertificateKey: request.skipCertificateKeyPrint,
    opened: (access) => accesses.push(access),
  };
  try {
    const code = await runOnHosts(services, {
      workflow: initControlPlaneWorkflow,
      targets,
      cluster: given,
      workflowOptions,
      plan,
      writing: request.writing,
      reporter,
      warnings: run.warnings,
      dryRun: node.dryRun,
      skipPhases: init.skipPhases ?? [],
      ...(onlyPhase === undefined ? {} : { onlyPhase }),
    });
    printJoinCommands(services, joinCommands, plan);
    if (joinCommands.size === 0) printCertificateKey(services, request, certificateKey);
    return code;
  } finally {
    for (const access of accesses) await access.close();
  }
}

/** Prints the key of the phase upload-certs. The join command contains the key already. */
function printCertificateKey({ output }: Services, { skipCertificateKeyPrint, plan }: ControlPlaneRequest, key: Secret | null): void {
  if (key === null || skipCertificateKeyPrint || plan.format !== 'text') return;
  output.stdout(`\nThe certificate key, for join --control-plane:\n\n  ${key.reveal()}\n\n`);
}

function oneHost(targets: readonly HostTarget[]): AppError {
  const names = targets.map(({ address }) => address).join(', ');
  const message = `init makes the first control plane of a cluster, and was given ${targets.length} hosts: ${names}`;
  const hint = 'Run it with one --host; the others join: kubeletadm join --control-plane';
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}
