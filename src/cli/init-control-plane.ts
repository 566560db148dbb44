import { AppError, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { Secret } from '../base/text/secret.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { type DefaultRoute, defaultRoute } from '../host/facts/default-route.ts';
import type { Fact } from '../host/facts/fact.ts';
import { observe } from '../host/observe.ts';
import type { Warning } from '../host/plan/change.ts';
import type { Cluster } from '../kube/cluster.ts';
import { countMissingTokens } from '../kubeadm/config/defaults.ts';
import type { LoadedConfig } from '../kubeadm/config/load.ts';
import type { EnvVar } from '../kubeadm/config/model.ts';
import type { HostCaDirectory } from '../kubeadm/control-plane/paths.ts';
import { caDirectoriesOf } from '../kubeadm/facts/ca-directories.ts';
import type { ReadNodeOptions } from '../kubeadm/use-cases/node-options.ts';
import type { ApiAccess, ConnectControlPlane } from '../kubeadm/workflows/control-plane/api-access.ts';
import type { NodeTrust } from '../kubeadm/workflows/identify-node.ts';
import { type InitControlPlaneOptions, initControlPlaneWorkflow } from '../kubeadm/workflows/init-control-plane.ts';
import { type HostsRequest, readHostTargets } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import { freshTokens, isLeftOut, phaseSelection, placeholderTokens, printJoinCommands } from './init-tokens.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

/** What the command line decides about a new control plane. */
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
  /** Of `--kubeconfig`, for a phase alone. */
  readonly given: Cluster | null;
  readonly trust: NodeTrust | null;
}

/** `init` and `init phase NAME...` where no API server is given: it makes one. */
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

/** Of the phase upload-certs alone: with a join command the key is in that. */
function printCertificateKey({ output }: Services, { skipCertificateKeyPrint, plan }: ControlPlaneRequest, key: Secret | null): void {
  if (key === null || skipCertificateKeyPrint || plan.format !== 'text') return;
  output.stdout(`\nThe certificate key, for join --control-plane:\n\n  ${key.reveal()}\n\n`);
}

/** Connects over the host's network where the host is reached over SSH, else from here. */
export function connectOver(services: Services): ConnectControlPlane {
  return ({ kubeconfig, server, host }) => services.connectCluster({ kubeconfig, from: host, ...(server === null ? {} : { server }) });
}

/** The routes of this machine. */
export async function routeHere(services: Services): Promise<DefaultRoute> {
  return observeHere(services, defaultRoute);
}

/** The directories of authorities of this machine. */
export async function caDirectoriesHere(services: Services): Promise<readonly HostCaDirectory[]> {
  return observeHere(services, caDirectoriesOf());
}

async function observeHere<T>(services: Services, fact: Fact<T>): Promise<T> {
  const here = await services.connectHost({});
  try {
    return await observe(here, fact, services.signal);
  } finally {
    await here.close();
  }
}

/** Whether nothing but this machine itself is meant. */
export function isThisMachine(target: HostTarget | undefined): boolean {
  return target?.address === undefined && target?.member === undefined && target?.rootDir === undefined;
}

/** Variables by which programs find their proxies, sorted by name; the pods of the control plane get them, as with kubeadm. */
export function proxyEnvironment(env: Services['env']): readonly EnvVar[] {
  return Object.entries(env)
    .flatMap(([name, value]) => (/_proxy$/i.test(name) && value ? [{ name, value }] : []))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

const RELEASES = 'https://dl.k8s.io';

/** What a label stands for, as the release server of Kubernetes says; null where it does not answer. */
export async function releaseOf({ web, signal }: Services, label: string, ci: boolean): Promise<string | null> {
  let url = `${RELEASES}/${ci ? 'ci' : 'release'}/${label}.txt`;
  for (let hops = 0; hops < 3; hops++) {
    const answer = await web.get({ url, trust: { kind: 'machine' }, timeoutMs: 10_000, maxBytes: 1024, signal });
    if (answer.kind === 'failed') return null;
    if (answer.status === 200) return answer.text.trim();
    if (answer.location === null || !answer.location.startsWith('https://')) return null;
    url = answer.location;
  }
  return null;
}

function oneHost(targets: readonly HostTarget[]): AppError {
  const names = targets.map(({ address }) => address).join(', ');
  const message = `init makes the first control plane of a cluster, and was given ${targets.length} hosts: ${names}`;
  const hint = 'Run it with one --host; the others join: kubeletadm join --control-plane';
  return new AppError({ code: 'USAGE', message, hint }, { exitCode: 2 });
}
