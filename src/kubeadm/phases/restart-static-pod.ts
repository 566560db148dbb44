import { AppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { type DefinedPhase, definePhase, type PhaseContext } from '../../host/phase.ts';
import { runningContainers } from '../../kubelet/facts/cri-socket.ts';
import { waitOnKubelet } from '../../kubelet/health/crash-watch.ts';
import type { StaticPodName } from '../control-plane/paths.ts';
import { componentHealth, lastLogOf, staticPodPause } from './upgrade/wait-static-pod.ts';

/** A static Pod that is restarted. */
export interface RestartStaticPodInput {
  /** The certificates that it uses only after a restart. */
  readonly certificates: readonly string[];
  readonly criSocket: string;
  /** Health endpoints on the host: of the component, and of the API server if its restart interrupts the API server. */
  readonly healthUrls: readonly string[];
}

/**
 * Above the five minutes that a kubelet waits before it starts a crashed container again: expired certificates may be the
 * cause of a crash loop.
 */
const TIMEOUT_MS = 360_000;

/**
 * Stops the container of a static Pod, and waits until the kubelet runs a new one that is healthy. Without certificates to
 * use, the Pod is not restarted.
 */
export function restartStaticPod(component: StaticPodName): DefinedPhase<RestartStaticPodInput> {
  const name = `restart/${component}`;
  return definePhase<RestartStaticPodInput, readonly string[]>({
    name,
    short: `Restart ${component}`,
    observe: async ({ host, signal }, { certificates, criSocket }) =>
      certificates.length === 0 ? [] : ((await observe(host, runningContainers(criSocket, component), signal)) ?? []),
    plan: (_, { certificates, criSocket }) =>
      certificates.length === 0
        ? { changes: [], noop: 'none of its certificates was renewed' }
        : { changes: [{ kind: 'restart-static-pod', component, criSocket, reason: `uses ${certificates.join(', ')}` }] },
    verify: async (context, input, previous, applied) => {
      if (applied.length === 0) return;
      const waitedMs = await waitForNewContainer(context, { ...input, name, component, previous });
      const message = `${component} runs in a new container, healthy after ${Math.round(waitedMs / 1000)}s`;
      context.reporter.report({ level: 'info', code: 'COMPONENT_RESTARTED', host: context.host.name, phase: name, message });
    },
  });
}

interface Restarted extends RestartStaticPodInput {
  readonly name: string;
  readonly component: StaticPodName;
  /** The containers before the restart. */
  readonly previous: readonly string[];
}

function waitForNewContainer(context: PhaseContext, pod: Restarted): Promise<number> {
  const { name, component } = pod;
  return waitOnKubelet<number, readonly string[]>(context, name, {
    probe: async (elapsedMs) => {
      const missing = await unmetConditions(context, pod);
      return missing.length === 0 ? { done: elapsedMs() } : { pending: missing };
    },
    timeoutMs: TIMEOUT_MS,
    pauseMs: staticPodPause(context.host),
    describe: (missing, waitedMs) => `waiting for ${component}, ${Math.round(waitedMs / 1000)} s: ${missing.join('; ')}`,
    timedOut: async (missing, waitedMs) => {
      throw await notRestarted(context, pod, `${missing.join('; ')} after ${Math.round(waitedMs / 1000)}s`);
    },
  });
}

async function unmetConditions(
  context: PhaseContext,
  { component, criSocket, previous, healthUrls }: Restarted,
): Promise<readonly string[]> {
  const running = await observe(context.host, runningContainers(criSocket, component), context.signal);
  if (running === null) return ['the container runtime does not respond'];
  if (running.length === 0) return [`no container of ${component} runs`];
  if (running.some((id) => previous.includes(id))) return [`the container of ${component} was not replaced`];
  const health = await Promise.all(healthUrls.map((url) => componentHealth(context, url)));
  return health.flat();
}

async function notRestarted(context: PhaseContext, { name, component, criSocket }: Restarted, why: string): Promise<AppError> {
  const log = await lastLogOf(context, criSocket, component);
  const message = `${name}: ${component} does not work after the restart: ${why}${log.line}. The components after it were not restarted`;
  const hint = `See crictl --runtime-endpoint ${criSocket} ps -a, crictl logs and journalctl -u kubelet on the host. When ${component} is healthy, rerun kubeletadm certs renew with --restart, without --expires-within: the certificates have been renewed already`;
  return new AppError({ host: context.host.name, code: 'STATIC_POD_NOT_RUNNING', message, hint }, { detail: `${component}:\n${log.text}` });
}
