import type { ExitCode } from '../base/errors.ts';
import type { Templates } from '../codec/render-template.ts';
import type { Backend } from '../dynamic/node-config.ts';
import { disableWorkflow } from '../dynamic/workflows/disable-config.ts';
import { enableWorkflow } from '../dynamic/workflows/enable-config.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { type ConnectionRequest, commandLimit, readSshOptions } from '../fleet/use-cases/host-access.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { type PlanOnHost, planWorkflow } from '../host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { PROGRAM_DIRECTORY } from '../kubeadm/node-agent/agent-program.ts';
import { NATIVE_DIRECTORY } from '../kubeadm/node-agent/native-flags.ts';
import { type KubeconfigRequest, openCluster, trustOf } from '../kubeadm/use-cases/open-cluster.ts';
import type { NodeTrust } from '../kubeadm/workflows/identify-node.ts';
import { type Catalogue, loadCatalogue } from '../kubelet/catalogue.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface DynamicDisableRequest {
  readonly addresses: readonly string[];
  /** Null: the one registered by the host. */
  readonly nodeName: string | null;
  /** Null: the default, or the value given to `dynamic enable`. */
  readonly namespace: string | null;
  /**
   * The directory of the agent program on the host. Null: the default, or the value given to `dynamic
   * enable`.
   */
  readonly programDirectory: string | null;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
  readonly plan: PlanRequest;
  readonly writing: WritingRequest;
}

export interface DynamicEnableRequest extends DynamicDisableRequest {
  /** Null: by the version of the kubelet. */
  readonly backend: Backend | null;
  /** The agent program to install; undefined: the running program. */
  readonly program: string | undefined;
  /** The path of Node.js on the host; null: found in its PATH. */
  readonly node: string | null;
  /** Options of the agent, as arguments for its command line. */
  readonly agentOptions: readonly string[];
  /** Listen address; null: none. */
  readonly agentAddress: string | null;
  /** Directory for kubelets up to 1.23; null: the default. */
  readonly nativeDirectory: string | null;
}

/** `dynamic enable HOST...`. */
export async function runDynamicEnable(services: Services, request: DynamicEnableRequest): Promise<ExitCode> {
  const { backend, agentOptions, agentAddress, nativeDirectory, node } = request;
  return runOn(services, request, async ({ common }) => {
    const options = {
      ...common,
      namespace: request.namespace ?? AGENT_NAMESPACE,
      backend,
      program: {
        file: await services.readProgram(request.program),
        directory: request.programDirectory ?? PROGRAM_DIRECTORY,
        node,
      },
      agentOptions,
      agentAddress,
      nativeDirectory: nativeDirectory ?? NATIVE_DIRECTORY,
    };
    return (context, run) => planWorkflow(enableWorkflow, context, options, run);
  });
}

/** `dynamic disable HOST...`. */
export async function runDynamicDisable(services: Services, request: DynamicDisableRequest): Promise<ExitCode> {
  const { namespace, programDirectory } = request;
  return runOn(services, request, async ({ common }) => {
    const options = { ...common, namespace, programDirectory };
    return (context, run) => planWorkflow(disableWorkflow, context, options, run);
  });
}

interface Given {
  /** Options of both commands. */
  readonly common: {
    readonly templates: Templates;
    readonly catalogue: Catalogue;
    readonly nodeName: string | null;
    readonly trust: NodeTrust;
  };
}

/** Runs a workflow on the named hosts, with the cluster of these nodes. */
async function runOn(
  services: Services,
  { addresses, nodeName, cluster: named, connection, plan, writing }: DynamicDisableRequest,
  plannerOf: (given: Given) => Promise<PlanOnHost>,
): Promise<ExitCode> {
  const targets = await readTargets(services, addresses, connection);
  const catalogue = await loadCatalogue();
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const opened = await openCluster(services, named, { dryRun: false, staged: false, writes: reporter });
  const { cluster, warnings } = opened;
  try {
    const common = { templates: await services.templates(), catalogue, nodeName, trust: trustOf(services, opened) };
    return await runOnHosts(services, {
      planHost: await plannerOf({ common }),
      targets,
      cluster,
      plan,
      writing,
      reporter,
      warnings,
      dryRun: plan.dryRun,
      skipPhases: [],
      oneHostPerNode: true,
    });
  } finally {
    await cluster?.close();
  }
}

async function readTargets(
  services: Services,
  addresses: readonly string[],
  connection: ConnectionRequest,
): Promise<readonly HostTarget[]> {
  const ssh = addresses.every((address) => address === 'localhost') ? null : await readSshOptions(services, connection);
  const limit = commandLimit(connection);
  return addresses.map((address) => (address === 'localhost' || ssh === null ? limit : { address, ssh, ...limit }));
}
