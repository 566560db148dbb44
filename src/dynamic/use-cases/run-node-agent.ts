import type { RunTime } from '../../base/clock.ts';
import { AppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { systemErrorText } from '../../base/system-error.ts';
import type { Host } from '../../host/access/host.ts';
import { readOperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import type { ClusterConnections } from '../../kubeadm/ports.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { DEFAULT_TIMING } from '../../kubelet/health/assess.ts';
import type { Address, AgentPolicy } from '../agent/agent-policy.ts';
import type { AccessProblem } from '../agent/cluster-access.ts';
import { kubeletCluster } from '../agent/cluster-access.ts';
import { type AgentEndpointState, answerRequest } from '../agent/http-endpoints.ts';
import { runAgent } from '../agent/run-agent.ts';
import type { AgentState } from '../agent/state.ts';
import type { AgentHostPort, LocalServer } from '../ports.ts';

export interface NodeAgentRequest {
  readonly policy: AgentPolicy;
  /** The kubeconfig of the kubelet. */
  readonly kubeconfig: string;
  /** Undefined: from the command line of the kubelet. */
  readonly nodeName: string | undefined;
  /** The kubelet configuration while no ConfigMap is assigned. */
  readonly localConfig: string;
  readonly namespace: string;
  /** The directory of state and checkpoints. */
  readonly directory: string;
}

/** Ports of `agent`. */
type NodeAgentPorts = AgentHostPort & RunTime & Pick<LocalFiles, 'input'> & Pick<ClusterConnections, 'connectCluster' | 'web'>;

/**
 * Runs the agent of the local host and its HTTP endpoints, until the signal of the run is aborted.
 * @param local.connect connects to the local host
 * @throws AppError USAGE (exit code 2) for an unknown Node name; AGENT_LISTEN; the errors of the agent
 */
export async function runNodeAgent(
  services: NodeAgentPorts,
  request: NodeAgentRequest,
  { reporter, connect }: { readonly reporter: Reporter; readonly connect: () => Promise<Host> },
): Promise<void> {
  const { kubeconfig: file, localConfig, namespace, directory } = request;
  const { trialMs, spreadMs, spareCheckpoints, allow, signersFile, listen } = request.policy;
  const catalogue = await loadCatalogue();
  const host = await connect();
  const cluster = kubeletCluster({
    // No new risk: the kubelet runs the programs of its kubeconfig on the same host and as root as well.
    read: async () => ({
      text: await services.input.readText(file),
      connect: async () => services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [file]) }),
    }),
    clock: services.clock,
    onIssue: (message) => reporter.report({ level: 'warning', code: 'KUBECONFIG_NOT_USED', message, host: host.name }),
  });
  let state: AgentState | null = null;
  let isNodeKnown = false;
  let access: readonly AccessProblem[] = [];
  let server: LocalServer | null = null;
  try {
    const nodeName = request.nodeName ?? (await observeKubelet(host, catalogue, services.signal)).nodeName;
    if (nodeName === null) throw usageError('the name of the Node is unknown', 'Pass --node-name');
    server = listen === null ? null : await serve(services, listen, () => ({ state, isNodeKnown, access }));
    const { clock, signal } = services;
    const random = (): number => services.random();
    await runAgent({
      nodeName: nodeName.toLowerCase(),
      cluster,
      host,
      web: services.web,
      kubeconfig: file,
      clock,
      reporter,
      random,
      catalogue,
      directory,
      localConfig,
      namespace,
      allow,
      signersFile,
      timing: { ...DEFAULT_TIMING, trialMs },
      spareCheckpoints,
      spreadMs,
      signal,
      onState: (next) => {
        state = next;
      },
      onNode: (isKnown) => {
        isNodeKnown = isKnown;
      },
      watchFile: (path, onChange) => services.watchFile(path, onChange, signal),
      onAccess: (problems) => {
        access = problems;
      },
    });
  } finally {
    await server?.close();
    await cluster.close();
    await host.close();
  }
}

async function serve(
  services: Pick<AgentHostPort, 'serveLocal'>,
  { host, port }: Address,
  shown: () => AgentEndpointState,
): Promise<LocalServer> {
  try {
    return await services.serveLocal(host, port, (path) => answerRequest(path, shown()));
  } catch (cause) {
    const message = `cannot serve /metrics on ${host}:${port}: ${systemErrorText(cause)}`;
    throw new AppError({ code: 'AGENT_LISTEN', message, hint: 'Pass another address with --listen' }, { cause });
  }
}
