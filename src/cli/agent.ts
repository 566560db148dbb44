import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import { type AccessProblem, describeAccess } from '../dynamic/agent/access-problem.ts';
import { DEFAULT_TIMING } from '../dynamic/agent/health.ts';
import { kubeletCluster } from '../dynamic/agent/kubelet-cluster.ts';
import { renderAgentMetrics } from '../dynamic/agent/metrics.ts';
import { runAgent } from '../dynamic/agent/run-agent.ts';
import type { AgentState } from '../dynamic/agent/state.ts';
import { readOperatorKubeconfig } from '../kube/operator-kubeconfig.ts';
import { observeKubelet } from '../kubeadm/workflows/observe-kubelet.ts';
import { loadCatalogue } from '../kubelet/catalogue.ts';
import type { Address, AgentPolicy } from './agent-options.ts';
import type { LocalAnswer, LocalServer, Services } from './services.ts';

export interface AgentRequest {
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
  readonly verbosity: number;
}

/** `agent`: runs until it is stopped. Exit code 0 when a signal requested the stop. */
export async function runAgentCommand(services: Services, request: AgentRequest): Promise<ExitCode> {
  const { kubeconfig: file, localConfig, namespace, directory } = request;
  const { trialMs, spreadMs, spareCheckpoints, allow, listen } = request.policy;
  const catalogue = await loadCatalogue();
  const host = await services.connectHost({});
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
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
    if (nodeName === null) throw usageError('the name of the Node is not known', 'Pass --node-name');
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
    return 0;
  } finally {
    await server?.close();
    await cluster.close();
    await host.close();
  }
}

async function serve(services: Services, { host, port }: Address, shown: () => Shown): Promise<LocalServer> {
  try {
    return await services.serveLocal(host, port, (path) => answer(path, shown()));
  } catch (cause) {
    const message = `cannot serve /metrics on ${host}:${port}: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new AppError({ code: 'AGENT_LISTEN', message, hint: 'Name another address with --listen' }, { cause });
  }
}

/** HTTP endpoints of the agent. */
export interface Shown {
  readonly state: AgentState | null;
  readonly isNodeKnown: boolean;
  readonly access: readonly AccessProblem[];
}

/**
 * The response to a GET of `/healthz`, `/readyz` or `/metrics`; null: another path. `/readyz` lists the
 * requests that the API server rejects.
 */
export function answer(path: string, { state, isNodeKnown, access }: Shown): LocalAnswer | null {
  const type = 'text/plain; charset=utf-8';
  if (path === '/healthz') return state === null ? { status: 503, type, body: 'starting\n' } : { status: 200, type, body: 'ok\n' };
  if (path === '/readyz' && access.length > 0)
    return { status: 503, type, body: access.map((problem) => `${describeAccess(problem)}\n`).join('') };
  if (path === '/readyz')
    return isNodeKnown
      ? { status: 200, type, body: 'ok\n' }
      : { status: 503, type, body: 'the Node is not known: the API server does not answer, or has no such Node\n' };
  if (path === '/metrics' && state !== null)
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: renderAgentMetrics(state) };
  return null;
}
