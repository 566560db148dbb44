import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { AppError, messageOf } from '../../base/errors.ts';
import { parseJsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';

const REFRESH_MS = 30_000;

/**
 * Connects to the API server with the kubelet's own kubeconfig. The kubeconfig is read before a request if
 * the last read is older than half a minute. A change causes a new connection and ends the watches of the
 * previous one. While the file cannot be read, the last connection is used.
 * @param kubeconfig.read reads the kubeconfig; a changed text causes a new connection
 * @param kubeconfig.onIssue called when the kubeconfig cannot be used
 * @throws from each call, the errors of reading and connecting, until a first connection succeeded
 */
export function kubeletCluster({
  read,
  clock,
  onIssue,
}: {
  readonly read: () => Promise<{ readonly text: string; readonly connect: () => Promise<Cluster> }>;
  readonly clock: Clock;
  readonly onIssue: (message: string) => void;
}): Cluster {
  let current: { readonly text: string; readonly cluster: Cluster } | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<Cluster> | null = null;

  const refresh = async (): Promise<Cluster> => {
    try {
      const { text, connect } = await read();
      if (current?.text !== text) {
        const before = current;
        current = { text, cluster: await connect() };
        await before?.cluster.close();
      }
      readAt = clock.now().getTime();
      return current.cluster;
    } catch (error) {
      if (current === null) throw error;
      onIssue(`the agent keeps its last connection, because it cannot use the kubeconfig of the kubelet: ${messageOf(error)}`);
      return current.cluster;
    }
  };
  const cluster = (): Promise<Cluster> => {
    if (current !== null && Math.abs(clock.now().getTime() - readAt) < REFRESH_MS) return Promise.resolve(current.cluster);
    refreshing ??= refresh().finally(() => {
      refreshing = null;
    });
    return refreshing;
  };
  return clusterOver(
    cluster,
    () => current?.cluster ?? null,
    async (_request, result) => result,
  );
}

/**
 * A cluster that passes its requests on.
 * @param latest the connection in use, for what needs no request; null: none yet
 * @param observed returns the result of a request: `read Node`, `write Node/status`; null: the agent works without it
 */
function clusterOver(
  cluster: () => Promise<Cluster>,
  latest: () => Cluster | null,
  observed: <T>(request: string | null, result: Promise<T>) => Promise<T>,
): Cluster {
  const send = <T>(request: string | null, work: (to: Cluster) => Promise<T>): Promise<T> => observed(request, cluster().then(work));
  return {
    get server() {
      return latest()?.server ?? '';
    },
    version: () => send(null, (to) => to.version()),
    get: (ref) => send(`read ${ref.kind}`, (to) => to.get(ref)),
    list: (kind, options) => send(`read ${kind.kind}`, (to) => to.list(kind, options)),
    // Only Events are created.
    create: (object) => send(null, (to) => to.create(object)),
    update: (object) => send(`write ${object.kind}`, (to) => to.update(object)),
    patch: (ref, type, patch, options) =>
      send(`write ${ref.kind}${options?.subresource === undefined ? '' : `/${options.subresource}`}`, (to) =>
        to.patch(ref, type, patch, options),
      ),
    delete: (ref) => send(null, (to) => to.delete(ref)),
    // An agent evicts nothing, and has no right to do so.
    evict: (pod, options) => send(null, (to) => to.evict(pod, options)),
    getRaw: (path) => send(null, (to) => to.getRaw(path)),
    watch: async function* (kind, options) {
      try {
        yield* (await cluster()).watch(kind, options);
      } catch (error) {
        await observed(`read ${kind.kind}`, Promise.reject(error));
      }
    },
    close: async () => latest()?.close(),
  };
}

const PROBLEM = z.object({ request: z.string(), code: z.string(), why: z.string(), since: z.number() }).readonly();

/**
 * A request of the agent that the API server refuses: its verb and kind (`read Node`, `write Node/status`, `read ConfigMap`),
 * the code and message of the error, and the time of the first refusal, in milliseconds since 1970.
 */
export type AccessProblem = z.infer<typeof PROBLEM>;

/** Only an agent that watches a ConfigMap makes this request. */
export const READ_CONFIG_MAP = 'read ConfigMap';

function sameAccess(a: readonly AccessProblem[], b: readonly AccessProblem[]): boolean {
  const keys = (list: readonly AccessProblem[]): string => JSON.stringify(list.map(({ request, code }) => `${request} ${code}`).sort());
  return keys(a) === keys(b);
}

/** One line: `since 2030-01-01T00:00:00Z the API server does not allow the agent to read Node: Unauthorized`. */
export function describeAccess({ request, why, since }: AccessProblem): string {
  return `since ${new Date(since).toISOString().replace(/\.\d+/, '')} the API server does not allow the agent to ${request}: ${why}`;
}

/** The text of the file that stores the problems next to the agent's state. */
export function formatAccess(problems: readonly AccessProblem[]): string {
  return `${JSON.stringify({ problems })}\n`;
}

export function parseAccess(text: string): readonly AccessProblem[] {
  const list = parseJsonObject(text)?.problems;
  return Array.isArray(list) ? list.flatMap((one) => PROBLEM.safeParse(one).data ?? []) : [];
}

const REFUSALS = ['CLUSTER_UNAUTHORIZED', 'CLUSTER_FORBIDDEN'];

/**
 * A cluster that records each request that the API server refuses with 401 (credential) or 403 (authorization), until the
 * same request succeeds. Other errors change nothing. `drop` forgets the problem of a request that is no longer made.
 * @param initial problems of the agent's last run; each stays until its request succeeds
 * @param onChange called when a request is refused for a new reason, or succeeds again
 */
export function clusterAccess(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  initial: readonly AccessProblem[],
  onChange: (problems: readonly AccessProblem[]) => void,
) {
  let problems = initial;
  const change = (next: readonly AccessProblem[]): void => {
    const isSame = sameAccess(problems, next);
    problems = next;
    if (!isSame) onChange(problems);
  };
  const drop = (request: string): void => change(problems.filter((one) => one.request !== request));
  const refused = (request: string, error: unknown): void => {
    const code = error instanceof AppError ? (error.problems[0]?.code ?? '') : '';
    if (!REFUSALS.includes(code)) return;
    const since = problems.find((one) => one.request === request)?.since ?? clock.now().getTime();
    change([...problems.filter((one) => one.request !== request), { request, code, why: messageOf(error), since }]);
  };
  const observed = async <T>(request: string | null, result: Promise<T>): Promise<T> => {
    try {
      const answer = await result;
      if (request !== null) drop(request);
      return answer;
    } catch (error) {
      if (request !== null) refused(request, error);
      throw error;
    }
  };
  return {
    drop,
    cluster: clusterOver(
      async () => cluster,
      () => cluster,
      observed,
    ),
  };
}
