import { unlessRefused } from '../../base/errors.ts';
import { quickAtFirst, type Wait, waitUntil } from '../../base/wait-until.ts';
import { hostPause, observe } from '../../host/access/observe.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { conditionOf, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { crashWatch, explainFailure, kubeletUnhealthy, readLastError } from './crash-watch.ts';
import { describeHealth, type HealthState, isHealthy, kubeletHealthNow } from './observe.ts';
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
  const now = (): number => context.clock.now().getTime();
  let activeSince: number | null = null;
  return waitForKubelet(context, phase, target, {
    what: 'waiting for the kubelet to become healthy',
    pauseMs: hostPause(context.host),
    attempts: ATTEMPTS,
    check: async (state, ageMs) => {
      activeSince = isHealthy(state) ? (activeSince ?? now()) : null;
      if (activeSince === null || (target.url === null && now() - activeSince < START_MS)) return null;
      if (ageMs >= MATURE_MS) return async () => undefined;
      const first = { run: runOf(state.unit), atMs: now() };
      const seen = nodeName === undefined ? null : await readNode(context, nodeName);
      return () => stayHealthy(first, seen === null ? null : readyHeartbeat(seen));
    },
  });

  /** @param first the process that was healthy, and since when. `heartbeat`: of its Node at that time */
  async function stayHealthy(first: { readonly run: string; readonly atMs: number }, heartbeat: string | null): Promise<void> {
    let since: typeof first | null = first;
    await waitForKubelet(context, phase, target, {
      what: 'checking that the kubelet stays healthy',
      pauseMs: STAY_PAUSE,
      check: async (state) => {
        const run = runOf(state.unit);
        if (!isHealthy(state)) since = null;
        else if (since?.run !== run) since = { run, atMs: now() };
        if (since === null) return null;
        // One report of a process that followed another one may precede its own exit.
        const isShown = run === first.run && nodeName !== undefined;
        const isDone = now() - since.atMs >= STAY_MS || (isShown && (await hasStartedManagers(context, nodeName, state.unit, heartbeat)));
        return isDone || null;
      },
    });
  }
}

/**
 * Waits for a state of the kubelet, and ends early if it keeps failing.
 * @param wait.check the result of the wait; null: not yet. `ageMs`: of the process, 0 if unknown
 */
function waitForKubelet<T>(
  context: PhaseContext,
  phase: string,
  { url, timeoutMs }: HealthTarget,
  {
    what,
    pauseMs,
    attempts,
    check,
  }: Pick<Wait<never, never>, 'pauseMs'> & {
    readonly what: string;
    readonly attempts?: number;
    readonly check: (state: HealthState, ageMs: number) => Promise<T | null>;
  },
): Promise<T> {
  const { host, signal } = context;
  const watch = crashWatch(context, phase);
  const facts = kubeletHealthNow(url, attempts === undefined ? {} : { attempts });
  return waitUntil<T, HealthState>(
    { ...context, phase },
    {
      timeoutMs,
      pauseMs,
      probe: async (elapsedMs) => {
        const { state, process } = await observe(host, facts, signal);
        const done = await check(state, process?.ageMs ?? 0);
        if (done !== null) return { done };
        if (elapsedMs() < timeoutMs) await watch.see(state.unit, elapsedMs());
        return { pending: state };
      },
      describe: async (state, waitedMs) => {
        const error = await readLastError(context, waitedMs);
        const last = error === null ? '' : `. Last error of the kubelet: ${error}`;
        return `${what}, ${Math.round(waitedMs / 1000)} s: ${describeHealth(state)}${last}`;
      },
      timedOut: async ({ unit }, waitedMs) => {
        const lastRunOnly = !watch.isCrashing() && unit?.activeState === 'active';
        throw kubeletUnhealthy(context, phase, await explainFailure(context, unit, { waitedMs, lastRunOnly }), waitedMs);
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
