import type { RunTime } from '../../base/clock.ts';
import { usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { LocalResponse, LocalServer } from '../../base/local-server.ts';
import type { Reporter } from '../../base/reporter.ts';
import { serveEndpoints } from '../../base/serve-endpoints.ts';
import type { Host } from '../../host/access/host.ts';
import { readOperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import type { ClusterConnections } from '../../kubeadm/ports.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { DEFAULT_TIMING } from '../../kubelet/health/assess.ts';
import { countChange, NO_COUNTERS } from '../agent/agent-counters.ts';
import type { AgentPlaces, AgentPolicy } from '../agent/agent-options.ts';
import { certificateExpiry } from '../agent/certificate-expiry.ts';
import type { AccessProblem } from '../agent/cluster-access.ts';
import { kubeletCluster } from '../agent/cluster-access.ts';
import { answerRequest } from '../agent/http-endpoints.ts';
import { runAgent } from '../agent/run-agent.ts';
import type { AgentState } from '../agent/state.ts';
import type { AgentHostPort } from '../ports.ts';

export interface NodeAgentRequest extends AgentPlaces {
  readonly policy: AgentPolicy;
  /** Undefined: from the command line of the kubelet. */
  readonly nodeName: string | undefined;
}

/**
 * Runs the agent of the local host and its HTTP endpoints, until the signal of the run is aborted.
 * @param local.connect connects to the local host
 * @throws AppError USAGE (exit code 2) for an unknown Node name; AGENT_LISTEN; the errors of the agent
 */
export async function runNodeAgent(
  services: AgentHostPort & RunTime & Pick<LocalFiles, 'input'> & Pick<ClusterConnections, 'connectCluster' | 'web'>,
  request: NodeAgentRequest,
  { reporter, connect }: { readonly reporter: Reporter; readonly connect: () => Promise<Host> },
): Promise<void> {
  const { kubeconfig: file, policy } = request;
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
  let counters = NO_COUNTERS;
  let isNodeKnown = false;
  let access: readonly AccessProblem[] = [];
  let server: LocalServer | null = null;
  try {
    const nodeName = request.nodeName ?? (await observeKubelet(host, catalogue, services.signal)).nodeName;
    if (nodeName === null) throw usageError('the name of the Node is unknown', 'Pass --node-name');
    const expiry = certificateExpiry({ ...services, host, kubeconfig: file, catalogue });
    const answer = async (path: string): Promise<LocalResponse | null> =>
      answerRequest(path, { state, isNodeKnown, access, counters, certificates: path === '/metrics' ? await expiry() : {} });
    server = policy.listen === null ? null : await serveEndpoints(services, policy.listen, { code: 'AGENT_LISTEN', answer });
    const { clock, signal, web } = services;
    await runAgent({
      ...request,
      ...policy,
      nodeName: nodeName.toLowerCase(),
      cluster,
      host,
      web,
      clock,
      reporter,
      random: () => services.random(),
      catalogue,
      timing: { ...DEFAULT_TIMING, trialMs: policy.trialMs },
      signal,
      onState: (next) => {
        counters = countChange(counters, state, next);
        state = next;
      },
      onNode: (isKnown) => (isNodeKnown = isKnown),
      watchFile: (path, onChange) => services.watchFile(path, onChange, signal),
      onAccess: (problems) => (access = problems),
    });
  } finally {
    await server?.close();
    await cluster.close();
    await host.close();
  }
}
