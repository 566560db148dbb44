import type { Clock } from '../../../base/clock.ts';
import { AppError, isAppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { quickAtFirst, type Wait } from '../../../base/wait-until.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { lastLog } from '../../../host/cri/runtime-commands.ts';
import { defineFact } from '../../../host/facts/fact.ts';
import type { HttpFact } from '../../../host/facts/query.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { waitOnKubelet } from '../../../kubelet/health/crash-watch.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import { type ManifestFacts, type MirrorPod, mirrorPodRef, readManifest, readMirrorPod } from '../../upgrade/static-pod-state.ts';

/** A static Pod that is expected to run. */
interface ExpectedPod {
  readonly phase: string;
  readonly component: StaticPodName;
  readonly nodeName: string;
  readonly manifest: string;
  /** Hashes of Pods that the kubelet must have replaced; empty: the Pod may have run before. */
  readonly replacedHashes: readonly string[];
  /** Hash that the Pod must have; null: not known. */
  readonly hash: string | null;
  readonly criSocket: string;
  readonly timeoutMs: number;
  /**
   * For a Pod whose manifest was restored: ends the wait after `unhealthyMs` if its health endpoint has not answered
   * until then. Absent: only `timeoutMs` ends the wait.
   */
  readonly restored?: { readonly unhealthyMs: number; readonly health: HealthWatch } | undefined;
  /** Access to an API server that does not run yet; absent: the cluster of the context. */
  readonly api?: { readonly reach: (context: PhaseContext) => Promise<Cluster | null> } | undefined;
}

/** Observes whether a component answers on its health endpoint after its manifest was restored. */
interface HealthWatch {
  readonly observe: (isHealthy: boolean) => void;
  readonly hasAnswered: () => boolean;
}

/** The shortest time in which the kubelet replaces a static Pod: it stops one, creates a sandbox and starts the other. */
const RESTART_MS = 2_000;
/** The kubelet reads manifests every 20 s and stops a static Pod within 30 s. */
const REPLACED_MS = 60_000;

/**
 * Starts to watch the answers of a component. In doubt an answer is that of the Pod with the restored manifest: only the
 * answers that follow each other without time for a restart, from the beginning on, are those of the Pod before.
 * @param isRestarting the kubelet still has to replace the Pod, so that the replaced Pod may answer
 */
export function watchHealth(clock: Clock, { isRestarting }: { readonly isRestarting: boolean }): HealthWatch {
  const startedMs = clock.now().getTime();
  let lastMs = startedMs;
  let isReplaced = !isRestarting;
  let hasAnswered = false;
  return {
    observe: (isHealthy) => {
      const nowMs = clock.now().getTime();
      isReplaced ||= !isHealthy || nowMs - lastMs > RESTART_MS || nowMs - startedMs > REPLACED_MS;
      hasAnswered ||= isHealthy && isReplaced;
      lastMs = nowMs;
    },
    hasAnswered: () => hasAnswered,
  };
}

/** The reasons why a Pod does not run as expected, as clauses; empty: it does. */
type Missing = readonly string[];

/**
 * Waits until the kubelet runs a static Pod from the expected manifest, the Pod is Ready, its health endpoint answers
 * and the API server answers. The mirror Pod shows the manifest: its hash changes with the manifest, and its image is
 * that of the manifest. A component that was healthy before is not enough, because the kubelet reacts late.
 * @returns milliseconds until then
 * @throws AppError STATIC_POD_NOT_RUNNING with the last log line of the component
 * @see kubeadm 1.36 util/apiclient/wait.go WaitForStaticPodHashChange (which checks the hash and the phase of the Pod)
 */
export async function waitForStaticPod(context: PhaseContext, expected: ExpectedPod): Promise<number> {
  const { component, phase, timeoutMs, manifest } = expected;
  const facts = readManifest(manifest, component);
  return waitOnKubelet<number, Missing>(context, phase, {
    probe: async (elapsedMs) => {
      const missing = await unmetStaticPodConditions(context, expected, facts);
      if (missing.length === 0) return { done: elapsedMs() };
      if (isGivenUp(expected, elapsedMs())) throw await notRunning(context, expected, { missing, waitedMs: elapsedMs() });
      return { pending: missing };
    },
    timeoutMs,
    pauseMs: staticPodPause(context.host),
    describe: (missing, waitedMs) => `waiting for ${component}, ${Math.round(waitedMs / 1000)} s: ${missing.join('; ')}`,
    timedOut: async (missing, waitedMs) => {
      throw await notRunning(context, expected, { missing, waitedMs });
    },
  });
}

function isGivenUp({ restored }: ExpectedPod, waitedMs: number): boolean {
  return restored !== undefined && waitedMs >= restored.unhealthyMs && !restored.health.hasAnswered();
}

/**
 * The pause between two probes of static Pods on a host: every query of a remote host costs a program over SSH.
 * @returns for `waitUntil`: during the first 30 s 100 ms for the local host, otherwise 500 ms; then 1 s
 */
export function staticPodPause({ dial }: Pick<Host, 'dial'>): Wait<never, never>['pauseMs'] {
  return quickAtFirst({ quickMs: dial === undefined ? 100 : 500, forMs: 30_000, slowMs: 1_000 });
}

const API_SERVER_NEEDS: readonly StaticPodName[] = ['etcd', 'kube-apiserver'];

/**
 * @param facts those of the manifest of `expected`
 * @returns the reasons why a static Pod does not run as expected, as clauses; empty: it does
 */
export async function unmetStaticPodConditions(
  context: PhaseContext,
  expected: ExpectedPod,
  { image, healthUrl }: ManifestFacts = readManifest(expected.manifest, expected.component),
): Promise<Missing> {
  const { component } = expected;
  const health = await componentHealth(context, healthUrl);
  expected.restored?.health.observe(health.length === 0);
  // A request to an API server that is down takes seconds, in which it may have started.
  if (health.length > 0 && API_SERVER_NEEDS.includes(component)) return health;
  const pod = await readPod(context, expected);
  return [...('error' in pod ? [pod.error] : missingOfPod(pod.found, expected, image)), ...health];
}

async function readPod(
  context: PhaseContext,
  { component, nodeName, api }: ExpectedPod,
): Promise<{ readonly found: MirrorPod | null } | { readonly error: string }> {
  try {
    const cluster = api === undefined ? context.cluster : await api.reach(context);
    if (cluster === null) return { error: 'the API server does not answer' };
    return { found: readMirrorPod((await cluster.get(mirrorPodRef(component, nodeName))) ?? null, component) };
  } catch (error) {
    // An API server that has just started may reject requests until it has read its roles.
    if (!isAppError(error)) throw error;
    return { error: error.problems[0]?.message ?? 'the API server does not answer' };
  }
}

function missingOfPod(pod: MirrorPod | null, { component, replacedHashes, hash }: ExpectedPod, image: string | null): Missing {
  if (pod === null) return [`Pod ${component} does not exist`];
  if ((pod.hash !== null && replacedHashes.includes(pod.hash)) || (hash !== null && pod.hash !== hash))
    return [`the kubelet has not replaced Pod ${component}`];
  if (pod.image !== image) return [`Pod ${component} has image ${printable(pod.image ?? 'none', 200)}, not ${image ?? 'none'}`];
  return pod.isReady ? [] : [`Pod ${component} is not Ready (${pod.state})`];
}

/**
 * Asks a health endpoint of a component on the host itself.
 * @param url null: the component has no such endpoint
 * @returns the reasons why it is not healthy, as clauses; empty: it is
 */
export async function componentHealth({ host, signal }: Pick<PhaseContext, 'host' | 'signal'>, url: string | null): Promise<Missing> {
  if (url === null) return [];
  const fact = defineFact({ get: { kind: 'http', url, timeoutSeconds: 5 } }, ({ get }): HttpFact => get);
  const answer = await observe(host, fact, signal);
  if ('error' in answer) return [`${url}: ${printable(answer.error, 200)}`];
  // An administrator may have removed anonymous access to the health endpoints.
  return answer.status === 200 || answer.status === 401 || answer.status === 403 ? [] : [`${url} answers ${answer.status}`];
}

/** The last log of a component, and a clause with its last line; empty: no log was found. */
export async function lastLogOf(
  { host, signal }: Pick<PhaseContext, 'host' | 'signal'>,
  criSocket: string,
  component: StaticPodName,
): Promise<{ readonly text: string; readonly line: string }> {
  const log = defineFact({ log: { kind: 'command', argv: lastLog(criSocket, component) } }, ({ log: { exitCode, stdout } }) =>
    exitCode === 0 ? stdout.trim() : '',
  );
  const text = await observe(host, log, signal);
  return { text, line: text === '' ? '' : `. Last line of its container log: ${printable(text.split('\n').at(-1) ?? '', 400)}` };
}

async function notRunning(
  context: PhaseContext,
  { phase, component, criSocket }: ExpectedPod,
  { missing, waitedMs }: { readonly missing: Missing; readonly waitedMs: number },
): Promise<AppError> {
  const { text, line } = await lastLogOf(context, criSocket, component);
  const message = `${phase}: ${component} does not run as expected after ${Math.round(waitedMs / 1000)}s: ${missing.join('; ')}${line}`;
  const hint = `See crictl --runtime-endpoint ${criSocket} ps -a, crictl logs and journalctl -u kubelet on the host, then rerun the command`;
  return new AppError({ host: context.host.name, code: 'STATIC_POD_NOT_RUNNING', message, hint }, { detail: `${component}:\n${text}` });
}
