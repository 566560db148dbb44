import { AppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { printable } from '../../base/text/printable.ts';
import { hostPause, observe } from '../../host/access/observe.ts';
import { lastLog } from '../../host/cri/runtime-commands.ts';
import { combineFacts, defineFact, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { readYaml } from '../../kube/same-yaml.ts';
import { MANIFESTS_DIR } from '../../kube/well-known.ts';
import { waitOnKubelet } from '../../kubelet/health/crash-watch.ts';
import { type ComponentEndpoint, componentEndpoints } from '../control-plane/component-endpoints.ts';
import { manifestPath } from '../control-plane/paths.ts';

export interface WaitControlPlaneInput {
  /** Without manifests the phase fails: the command exists to wait for them. Default: the run writes none, and waits for none. */
  readonly isRequired?: boolean;
  readonly criSocket: string;
  /** `timeouts.controlPlaneComponentHealthCheck`. */
  readonly timeoutMs: number;
}

const NAME = 'wait-control-plane';
const HOST_STATE = combineFacts({
  init: initSystem,
  manifests: fileFacts((['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const).map(manifestPath)),
});
type HostState = typeof HOST_STATE extends Fact<infer T> ? T : never;

/**
 * Waits until the components of the control plane are healthy whose manifests are on the host. Plans no changes.
 * kubeadm 1.36: phase wait-control-plane of init and join; checks all components in parallel every 500 ms,
 * until `timeouts.controlPlaneComponentHealthCheck`.
 */
export const waitControlPlane = definePhase<WaitControlPlaneInput, HostState>({
  name: NAME,
  short: 'Wait for the control plane to start',
  observe: ({ host, signal }) => observe(host, HOST_STATE, signal),
  plan: ({ init }) =>
    init === 'systemd' ? { changes: [] } : { changes: [], deferred: 'the control plane starts when the host boots with these files' },
  verify: (context, input, { manifests }) => waitForComponents(context, input, componentsIn(manifests)),
});

/**
 * @throws AppError CONTROL_PLANE_UNHEALTHY with the last log line of the failed component
 */
async function waitForComponents(
  context: PhaseContext,
  input: WaitControlPlaneInput,
  components: readonly ComponentEndpoint[],
): Promise<void> {
  const { host, reporter, signal } = context;
  if (components.length === 0 && input.isRequired === true) throw noManifests(host.name);
  const healthy = new Set<string>();
  await waitOnKubelet(context, NAME, {
    probe: async (elapsedMs) => {
      const left = components.filter(({ name }) => !healthy.has(name));
      const answers = await observe(host, componentHealth(left), signal);
      const waitedMs = elapsedMs();
      for (const { name } of left) {
        if (!isHealthyResponse(answers[name], waitedMs)) continue;
        healthy.add(name);
        const message = `${name} is healthy after ${Math.round(waitedMs / 1000)} s`;
        reporter.report({ level: 'info', code: 'COMPONENT_HEALTHY', host: host.name, phase: NAME, message, verbosity: 1 });
      }
      const still = left.filter(({ name }) => !healthy.has(name));
      return still.length === 0 ? { done: undefined } : { pending: { still, answers } };
    },
    timeoutMs: input.timeoutMs,
    pauseMs: hostPause(host),
    describe: ({ still, answers }, waitedMs) => {
      const what = still.map(({ name }) => `${name}: ${describe(answers[name])}`).join('; ');
      return `waiting for the control plane, ${Math.round(waitedMs / 1000)} s: ${what}`;
    },
    timedOut: async (pending, waitedMs) => {
      throw await unhealthy(context, input, pending, waitedMs);
    },
  });
}

/** The components that the manifests on the host start, and their health endpoints. */
function componentsIn(files: HostState['manifests']): readonly ComponentEndpoint[] {
  const textOf = (name: ComponentEndpoint['name']): string | undefined => files.get(manifestPath(name))?.content;
  const podOf = (name: ComponentEndpoint['name']): JsonObject => {
    const pod = readYaml(textOf(name) ?? '');
    return isJsonObject(pod) ? pod : {};
  };
  return componentEndpoints(podOf).filter(({ name }) => textOf(name) !== undefined);
}

function noManifests(host: string): AppError {
  const message = `${NAME}: ${MANIFESTS_DIR} has no manifests of a control plane`;
  const hint = 'Run kubeletadm init phase control-plane first';
  return new AppError({ host, code: 'CONTROL_PLANE_MISSING', message, hint });
}

type Answers = Readonly<Record<string, HttpFact | undefined>>;

function componentHealth(components: readonly ComponentEndpoint[]): Fact<Answers> {
  const facts = components.map(({ name, url }) => {
    const fact = defineFact({ get: { kind: 'http', url, timeoutSeconds: 5 } }, ({ get }): HttpFact => get);
    return [name, fact] as const;
  });
  return combineFacts(Object.fromEntries(facts));
}

/**
 * The API server returns 403 until its roles exist, and permanently if an administrator removed anonymous
 * access.
 */
const FORBIDS_MS = 20_000;

/** 401, and after a while 403: an API server that requires authentication is running. */
function isHealthyResponse(answer: HttpFact | undefined, waitedMs: number): boolean {
  if (answer === undefined || 'error' in answer) return false;
  return answer.status === 200 || answer.status === 401 || (answer.status === 403 && waitedMs >= FORBIDS_MS);
}

function describe(answer: HttpFact | undefined): string {
  if (answer === undefined) return 'no answer';
  return 'status' in answer ? `answers ${answer.status}` : printable(answer.error, 200);
}

async function unhealthy(
  context: PhaseContext,
  { criSocket }: WaitControlPlaneInput,
  { still, answers }: { readonly still: readonly ComponentEndpoint[]; readonly answers: Answers },
  waitedMs: number,
): Promise<AppError> {
  const logs = await readLastLogs(context, criSocket, still);
  const problems = still.map(({ name, url }) => {
    const log = logs.get(name);
    const reported = log === undefined ? '' : `. Last line of its container log: ${printable(log.trim().split('\n').at(-1) ?? '', 400)}`;
    const message = `${NAME}: ${name} is not healthy after ${Math.round(waitedMs / 1000)}s: ${url}: ${describe(answers[name])}${reported}`;
    const hint = `See crictl --runtime-endpoint ${criSocket} ps -a, crictl logs and journalctl -u kubelet, then rerun the command`;
    return { host: context.host.name, code: 'CONTROL_PLANE_UNHEALTHY', message, hint };
  });
  return new AppError(problems, { detail: [...logs].map(([name, text]) => `${name}:\n${text}`).join('\n') });
}

/** The last log lines of each component, if available. */
async function readLastLogs(
  { host, signal }: PhaseContext,
  criSocket: string,
  components: readonly ComponentEndpoint[],
): Promise<ReadonlyMap<string, string>> {
  const names = [...components.map(({ name }) => name), ...(components.some(({ name }) => name === 'kube-apiserver') ? ['etcd'] : [])];
  const queries = Object.fromEntries(names.map((name) => [name, { kind: 'command', argv: lastLog(criSocket, name) } as const]));
  const answers = await host.query(queries, { signal });
  return new Map(
    names.flatMap((name) => {
      const { exitCode, stdout } = answers[name] as { readonly exitCode: number | null; readonly stdout: string };
      return exitCode === 0 && stdout.trim() !== '' ? [[name, stdout] as const] : [];
    }),
  );
}
