import { unlessRefused } from '../../base/errors.ts';
import { quickAtFirst, waitUntil } from '../../base/wait-until.ts';
import { hostPause, observe } from '../../host/access/observe.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { conditionOf, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { crashWatch, explainFailure, kubeletUnhealthy, readLastError } from './crash-watch.ts';
import { type HealthState, isHealthy, kubeletHealth, kubeletHealthNow } from './observe.ts';
import { STAY_MS } from './signals.ts';

/** Target of health checks. `url` is null when healthzPort is 0: then only the unit is checked. */
export interface HealthTarget {
  readonly url: string | null;
  readonly timeoutMs: number;
}

/** A unit without healthz must stay active this long before it counts as started. */
const START_MS = 5_000;
/** A healthy process of this age has started its managers, whenever it became healthy. */
const MATURE_MS = 20_000;
/** At first short: a kubelet that has just registered its Node starts its managers within a second. */
const STAY_PAUSE = quickAtFirst({ quickMs: 100, forMs: 2_000, slowMs: 500 });

/** Attempts of one query during a wait: most kubelets are healthy within less than a second. */
const ATTEMPTS = 24;

/**
 * Waits until the kubelet is healthy and stays so: see `waitForStartedKubelet`.
 * @throws AppError KUBELET_UNHEALTHY with the cause from the unit's state and its journal
 */
export async function waitForHealthyKubelet(context: PhaseContext, phase: string, target: HealthTarget): Promise<void> {
  const staysHealthy = await waitForStartedKubelet(context, phase, target);
  await staysHealthy();
}

/**
 * Waits until the unit of the kubelet is active and healthz returns 200 (kubeadm 1.36 wait-control-plane,
 * kubelet-wait-bootstrap: every 500 ms up to `timeouts.kubeletHealthCheck`). Ends early if the kubelet keeps failing.
 * @param nodeName the Node by which the API server may show that the kubelet has started completely; absent: not used
 * @returns waits until the same process has stayed healthy for ten seconds since, or its Node shows that it has started
 *   its managers; a process that followed another one meanwhile needs the ten seconds. Called after later waits, it takes only the rest of that time
 * @throws AppError KUBELET_UNHEALTHY with the cause from the unit's state and its journal
 */
export async function waitForStartedKubelet(
  context: PhaseContext,
  phase: string,
  target: HealthTarget,
  nodeName?: string,
): Promise<() => Promise<void>> {
  const { host, signal, clock } = context;
  const watch = crashWatch(context, phase);
  const facts = kubeletHealthNow(target.url, { attempts: ATTEMPTS });
  let activeSince: number | null = null;
  return waitUntil<() => Promise<void>, HealthState>(
    { ...context, phase },
    {
      timeoutMs: target.timeoutMs,
      pauseMs: hostPause(host),
      probe: async (elapsedMs) => {
        const { state, process } = await observe(host, facts, signal);
        const waitedMs = elapsedMs();
        activeSince = isHealthy(state) ? (activeSince ?? waitedMs) : null;
        if (activeSince !== null && (target.url !== null || waitedMs - activeSince >= START_MS)) {
          if ((process?.ageMs ?? 0) >= MATURE_MS) return { done: async () => undefined };
          const since = { run: runOf(state.unit), atMs: clock.now().getTime() };
          const seen = nodeName === undefined ? null : await readNode(context, nodeName);
          const heartbeat = seen === null ? null : readyHeartbeat(seen);
          return { done: () => stayHealthy(context, phase, target, since, nodeName, heartbeat) };
        }
        if (waitedMs < target.timeoutMs) await watch.see(state.unit, waitedMs);
        return { pending: state };
      },
      describe: (state, waitedMs) => progress(context, 'waiting for the kubelet to become healthy', state, waitedMs),
      timedOut: async ({ unit }, waitedMs) => {
        const lastRunOnly = !watch.isCrashing() && unit?.activeState === 'active';
        throw kubeletUnhealthy(context, phase, await explainFailure(context, unit, { waitedMs, lastRunOnly }), waitedMs);
      },
    },
  );
}

/**
 * @param first the process that was healthy, and since when
 * @param heartbeat of its Node at that time; null: none, or not known
 */
async function stayHealthy(
  context: PhaseContext,
  phase: string,
  target: HealthTarget,
  first: { readonly run: string; readonly atMs: number },
  nodeName: string | undefined,
  heartbeat: string | null,
): Promise<void> {
  const { host, signal, clock } = context;
  const watch = crashWatch(context, phase);
  let since: typeof first | null = first;
  await waitUntil<void, HealthState>(
    { ...context, phase },
    {
      timeoutMs: target.timeoutMs,
      pauseMs: STAY_PAUSE,
      probe: async (elapsedMs) => {
        const state = await observe(host, kubeletHealth(target.url), signal);
        const run = runOf(state.unit);
        if (!isHealthy(state)) since = null;
        else if (since?.run !== run) since = { run, atMs: clock.now().getTime() };
        if (since !== null && clock.now().getTime() - since.atMs >= STAY_MS) return { done: undefined };
        // One report of a process that followed another one may precede its own exit.
        const isFirstRun = since !== null && run === first.run;
        if (isFirstRun && nodeName !== undefined && (await hasStartedManagers(context, nodeName, state.unit, heartbeat)))
          return { done: undefined };
        await watch.see(state.unit, elapsedMs());
        return { pending: state };
      },
      describe: (state, waitedMs) => progress(context, 'checking that the kubelet stays healthy', state, waitedMs),
      timedOut: async ({ unit }, waitedMs) => {
        throw kubeletUnhealthy(context, phase, await explainFailure(context, unit, { waitedMs, lastRunOnly: false }), waitedMs);
      },
    },
  );
}

/** Differs between two processes of the unit. */
function runOf(unit: UnitState | null): string {
  return unit === null ? '' : `${unit.mainPid} ${unit.restarts} ${unit.startedAt}`;
}

/**
 * Whether a Node shows that the running process has started its managers: it has reported Ready, or only the pod network
 * or CSI as the reason against it. A kubelet reports its first status after the check that starts the managers, and its runtime
 * counts as not checked until they have started.
 * @param earlier the last heartbeat before this process could report; null: none
 * @see kubernetes/kubernetes pkg/kubelet/kubelet.go `Run`, `updateRuntimeUp`; pkg/kubelet/nodestatus/setters.go
 *   `ReadyCondition` (1.36): errors of the runtime come before those of the network and of storage
 */
async function hasStartedManagers(
  context: PhaseContext,
  nodeName: string,
  unit: UnitState | null,
  earlier: string | null,
): Promise<boolean> {
  const startedAt = unit?.startedAt ?? null;
  const node = startedAt === null ? null : await readNode(context, nodeName);
  const heartbeat = node === null ? null : readyHeartbeat(node);
  if (node === null || heartbeat === null || startedAt === null) return false;
  const seconds = Date.parse(heartbeat) / 1000;
  // Both times are of the host, in seconds: a heartbeat in the second of the start may be of the process before.
  const isOwn = seconds > startedAt || (seconds === startedAt && heartbeat !== earlier);
  const ready = conditionOf(node, 'Ready');
  return isOwn && (ready?.status === 'True' || RUNTIME_READY.test(ready?.message ?? ''));
}

/** The first error is none of the runtime. Several errors are in brackets. */
const RUNTIME_READY = /^\[?(?:container runtime network not ready: |CSINode is not yet initialized)/;

/** Null: it does not exist, or cannot be read. */
async function readNode({ cluster }: PhaseContext, name: string): Promise<KubeObject | null> {
  return cluster === null ? null : unlessRefused(cluster.get({ apiVersion: 'v1', kind: 'Node', name }));
}

async function progress(context: PhaseContext, what: string, { unit, healthz }: HealthState, waitedMs: number): Promise<string> {
  const reported = healthz === null ? '' : 'status' in healthz ? `, healthz returns ${healthz.status}` : `, healthz: ${healthz.error}`;
  const state = unit === null ? 'no systemd unit' : `unit ${unit.activeState} (${unit.subState}), ${unit.restarts} restarts`;
  const error = await readLastError(context, waitedMs);
  return `${what}, ${Math.round(waitedMs / 1000)} s: ${state}${reported}${error === null ? '' : `. Last error of the kubelet: ${error}`}`;
}
