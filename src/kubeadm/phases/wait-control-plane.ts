import { AppError } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { waitUntil } from '../../base/wait-until.ts';
import { lastLog } from '../../host/cri/runtime-commands.ts';
import { combineFacts, defineFact, type Fact } from '../../host/facts/fact.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import { hostPause, observe } from '../../host/observe.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { watchKubelet } from '../../kubelet/crash-watch.ts';
import type { ComponentEndpoint } from '../control-plane/component-endpoints.ts';

export interface WaitControlPlaneInput {
  readonly components: readonly ComponentEndpoint[];
  readonly criSocket: string;
  /** `timeouts.controlPlaneComponentHealthCheck`. */
  readonly timeoutMs: number;
}

const NAME = 'wait-control-plane';

/**
 * Waits until the components of the control plane are healthy. Plans no changes.
 * kubeadm 1.36: phase wait-control-plane of init and join; checks all components in parallel every 500 ms,
 * until `timeouts.controlPlaneComponentHealthCheck`.
 */
export const waitControlPlane = definePhase<WaitControlPlaneInput, { readonly init: 'systemd' | 'openrc' | null }>({
  name: NAME,
  short: 'Wait for the control plane to start',
  needsKubelet: true,
  observe: ({ host, signal }) => observe(host, combineFacts({ init: initSystem }), signal),
  plan: ({ init }) =>
    init === 'systemd' ? { changes: [] } : { changes: [], deferred: 'the control plane starts when the host boots with these files' },
  verify: (context, input) => waitForComponents(context, input),
});

/**
 * @throws AppError CONTROL_PLANE_UNHEALTHY with the last log line of the failed component
 */
async function waitForComponents(context: PhaseContext, input: WaitControlPlaneInput): Promise<void> {
  const { host, reporter, signal } = context;
  const healthy = new Set<string>();
  await waitUntil(
    { ...context, phase: NAME },
    watchKubelet(context, NAME, {
      probe: async (elapsedMs) => {
        const left = input.components.filter(({ name }) => !healthy.has(name));
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
        throw await unhealthy(context, input, { ...pending, waitedMs });
      },
    }),
  );
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

interface Failure {
  readonly still: readonly ComponentEndpoint[];
  readonly answers: Answers;
  readonly waitedMs: number;
}

async function unhealthy(
  context: PhaseContext,
  { criSocket }: WaitControlPlaneInput,
  { still, answers, waitedMs }: Failure,
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
