import { AppError, isAppError } from '../../base/errors.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { observe } from '../../host/observe.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mayPass } from '../../kube/cluster-problems.ts';
import { isNodeReady, nodeIssues } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { kubeletMessage } from '../../kubelet/kubelet-says.ts';

export interface WaitNodeInput {
  readonly nodeName: string;
  /** How long the Node may take to appear. */
  readonly timeoutMs: number;
  /** How long it may then take to be Ready; null: that is not waited for. */
  readonly readyMs: number | null;
  /** An administrator's, where there is one. */
  readonly admin: Cluster | null;
}

const NAME = 'kubelet-wait-bootstrap/node';
const POLL_MS = 1_000;

/** What is known of the Node; `unseen`: the credentials may not look. */
type Observed = { readonly init: 'systemd' | 'openrc' | null; readonly node: KubeObject | null | 'unseen' };

/** Waits until the kubelet has registered its Node, and with a deadline for it until the Node is Ready. kubeadm ends before either. */
export const waitNode = definePhase<WaitNodeInput, Observed>({
  name: NAME,
  short: 'Wait until the Node is registered or, with --wait-ready, Ready',
  cluster: ({ admin }) => admin,
  ready: (context, input) => waitForNode(context, input),
  observe: inspect,
  plan: ({ init, node }, { nodeName, readyMs }) => {
    if (init !== 'systemd') return { changes: [], deferred: 'the kubelet registers its Node when the host boots with these files' };
    if (node === 'unseen') return { changes: [], noop: `not waiting for Node ${nodeName}: the credentials may not read it` };
    if (node === null) return { changes: [], deferred: `waits until the kubelet has registered Node ${nodeName}` };
    if (isNodeReady(node)) return { changes: [], noop: `Node ${nodeName} is there and Ready` };
    if (readyMs !== null) return { changes: [], deferred: `waits until Node ${nodeName} is Ready` };
    return { changes: [], noop: `Node ${nodeName} is there, not Ready yet: ${nodeIssues(node).join('; ')}` };
  },
});

async function inspect({ host, cluster, signal }: PhaseContext, { nodeName, admin }: WaitNodeInput): Promise<Observed> {
  const init = await observe(host, initSystem, signal);
  try {
    return { init, node: (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null };
  } catch (error) {
    // A bootstrap token may expire while its node is waited for.
    const expired = admin === null && isAppError(error, 'CLUSTER_UNAUTHORIZED');
    if (expired || isAppError(error, 'CLUSTER_FORBIDDEN')) return { init, node: 'unseen' };
    throw error;
  }
}

/** An API server that is away or restarts may be back before the time is over. */
async function observePatiently(context: PhaseContext, input: WaitNodeInput): Promise<Observed | { readonly away: AppError }> {
  try {
    return await inspect(context, input);
  } catch (error) {
    if (mayPass(error)) return { away: error };
    throw error;
  }
}

/**
 * Waits until a Node is there and, with `readyMs`, Ready; returns at once where systemd does not run, or nobody may look.
 * @param phase names who waits
 * @throws AppError NODE_NOT_REGISTERED, NODE_NOT_READY, with what the kubelet says; what `Cluster` throws when the time is over
 */
export async function waitForNode(context: PhaseContext, input: WaitNodeInput, phase = NAME): Promise<void> {
  const { clock, host, reporter, signal } = context;
  const { nodeName, timeoutMs, readyMs } = input;
  const started = clock.now().getTime();
  let appearedMs: number | null = null;
  for (let nextProgressMs = 5_000; ; ) {
    const seen = await observePatiently(context, input);
    const waitedMs = clock.now().getTime() - started;
    let waitsFor: string;
    if ('away' in seen) {
      if (waitedMs - (appearedMs ?? 0) >= (appearedMs === null ? timeoutMs : (readyMs ?? 0))) throw seen.away;
      waitsFor = `Node ${nodeName}, ${seconds(waitedMs)}: ${seen.away.problems[0]?.message ?? ''}`;
    } else if (seen.init !== 'systemd') {
      return;
    } else if (seen.node === 'unseen') {
      if (readyMs === null) return;
      const message = `${phase}: the credentials may not look at Node ${nodeName}`;
      throw new AppError({ host: host.name, code: 'CLUSTER_FORBIDDEN', message, hint: 'Give those of an administrator with --kubeconfig' });
    } else if (seen.node === null) {
      const isLate = waitedMs >= timeoutMs;
      const reported = isLate || waitedMs >= nextProgressMs ? await kubeletMessage(context, waitedMs) : null;
      if (isLate) throw notRegistered(host.name, { phase, nodeName, waitedMs, reported });
      waitsFor = `Node ${nodeName} to appear, ${seconds(waitedMs)}${reported === null ? '' : `: ${reported}`}`;
    } else {
      appearedMs ??= waitedMs;
      if (readyMs === null || isNodeReady(seen.node)) return;
      const issues = nodeIssues(seen.node).join('; ');
      if (waitedMs - appearedMs >= readyMs) throw notReady(host.name, { phase, nodeName, readyMs, why: issues });
      waitsFor = `Node ${nodeName} to be Ready, ${seconds(waitedMs)}: ${issues}`;
    }
    if (waitedMs >= nextProgressMs) {
      nextProgressMs += 5_000;
      reporter.report({ level: 'info', code: 'WAITING', host: host.name, phase, message: `waiting for ${waitsFor}` });
    }
    await clock.sleep(POLL_MS, signal);
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

interface Unregistered {
  readonly phase: string;
  readonly nodeName: string;
  readonly waitedMs: number;
  /** By the kubelet. */
  readonly reported: string | null;
}

function notRegistered(host: string, { phase, nodeName, waitedMs, reported }: Unregistered): AppError {
  const after = `after ${Math.round(waitedMs / 1000)}s${reported === null ? '' : `: ${reported}`}`;
  const message = `${phase}: the kubelet has its certificate, but no Node ${nodeName} ${after}`;
  const hint = 'See journalctl -u kubelet on the host, then run the same command again';
  return new AppError({ host, code: 'NODE_NOT_REGISTERED', message, hint });
}

function notReady(
  host: string,
  { phase, nodeName, readyMs, why }: { readonly phase: string; readonly nodeName: string; readonly readyMs: number; readonly why: string },
): AppError {
  const message = `${phase}: Node ${nodeName} is not Ready after ${Math.round(readyMs / 1000)}s: ${why}`;
  const hint = /cni|network/i.test(why)
    ? 'Install a network plugin in the cluster (CNI), or see why its pod does not run on this node'
    : `See kubectl describe node ${nodeName}, and journalctl -u kubelet on the host`;
  return new AppError({ host, code: 'NODE_NOT_READY', message, hint: `${hint}. Running the same command again goes on waiting` });
}
