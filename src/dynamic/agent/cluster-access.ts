import type { Clock } from '../../base/clock.ts';
import { AppError, messageOf } from '../../base/errors.ts';
import { isJsonObject, parseJsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';

interface KubeletClusterOptions {
  /** Reads the kubeconfig; a changed text causes a new connection. */
  readonly read: () => Promise<{ readonly text: string; readonly connect: () => Promise<Cluster> }>;
  readonly clock: Clock;
  /** Called when the kubeconfig cannot be used. */
  readonly onIssue: (message: string) => void;
}

/** Interval at which the kubeconfig is read again. */
const REFRESH_MS = 30_000;

/**
 * Connects to the API server with the kubelet's own kubeconfig. The kubeconfig is read before a request if
 * the last read is older than half a minute. A change causes a new connection and ends the watches of the
 * previous one. While the file cannot be read, the last connection is used.
 * @throws from each call, the errors of reading and connecting, until a first connection succeeded
 */
export function kubeletCluster({ read, clock, onIssue }: KubeletClusterOptions): Cluster {
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

  return {
    get server() {
      return current?.cluster.server ?? '';
    },
    version: async () => (await cluster()).version(),
    get: async (ref) => (await cluster()).get(ref),
    list: async (kind, options) => (await cluster()).list(kind, options),
    create: async (object) => (await cluster()).create(object),
    update: async (object) => (await cluster()).update(object),
    patch: async (ref, type, patch, options) => (await cluster()).patch(ref, type, patch, options),
    delete: async (ref) => (await cluster()).delete(ref),
    getRaw: async (path) => (await cluster()).getRaw(path),
    watch: async function* (kind, options) {
      yield* (await cluster()).watch(kind, options);
    },
    close: async () => {
      await current?.cluster.close();
    },
  };
}

/** A request of the agent that the API server refuses. */
export interface AccessProblem {
  /** Verb and kind: `read Node`, `write Node/status`, `read ConfigMap`. */
  readonly request: string;
  readonly code: string;
  /** The message of the error. */
  readonly why: string;
  /** Time of the first refusal, in milliseconds since 1970. */
  readonly since: number;
}

/** Only an agent that watches a ConfigMap makes this request. */
export const READ_CONFIG_MAP = 'read ConfigMap';

/** Whether two lists hold the same problems, ignoring times. */
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

/** Reads that file; empty for an invalid text. */
export function parseAccess(text: string): readonly AccessProblem[] {
  const list = parseJsonObject(text)?.problems;
  if (!Array.isArray(list)) return [];
  return list.flatMap((one) => {
    if (!isJsonObject(one)) return [];
    const { request, code, why, since } = one;
    const isWhole = typeof request === 'string' && typeof code === 'string' && typeof why === 'string' && Number.isFinite(since);
    return isWhole ? [{ request, code, why, since: Number(since) }] : [];
  });
}

/** A cluster that records each refused request until the same request succeeds. */
interface ClusterAccess {
  readonly cluster: Cluster;
  readonly problems: readonly AccessProblem[];
  /** Drops the problem of a request that is no longer made. */
  drop(request: string): void;
}

interface ClusterAccessOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Problems of the agent's last run; each stays until its request succeeds. */
  readonly initial: readonly AccessProblem[];
  /** Called when a request is refused for a new reason, or succeeds again. */
  readonly onChange: (problems: readonly AccessProblem[]) => void;
}

const REFUSALS = ['CLUSTER_UNAUTHORIZED', 'CLUSTER_FORBIDDEN'];

/**
 * Records requests that the API server refuses with 401 (credential) or 403 (authorization). Other errors
 * change nothing.
 */
export function clusterAccess({ cluster, clock, initial, onChange }: ClusterAccessOptions): ClusterAccess {
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
  const observed = async <T>(request: string, result: Promise<T>): Promise<T> => {
    try {
      const answer = await result;
      drop(request);
      return answer;
    } catch (error) {
      refused(request, error);
      throw error;
    }
  };
  return {
    get problems() {
      return problems;
    },
    drop,
    cluster: {
      get server() {
        return cluster.server;
      },
      version: () => cluster.version(),
      get: (ref) => observed(`read ${ref.kind}`, cluster.get(ref)),
      list: (kind, options) => observed(`read ${kind.kind}`, cluster.list(kind, options)),
      // Events are optional: the agent works without them.
      create: (object) => cluster.create(object),
      update: (object) => observed(`write ${object.kind}`, cluster.update(object)),
      patch: (ref, type, patch, options) =>
        observed(
          `write ${ref.kind}${options?.subresource === undefined ? '' : `/${options.subresource}`}`,
          cluster.patch(ref, type, patch, options),
        ),
      delete: (ref) => cluster.delete(ref),
      getRaw: (path) => cluster.getRaw(path),
      watch: async function* (kind, options) {
        try {
          yield* cluster.watch(kind, options);
        } catch (error) {
          refused(`read ${kind.kind}`, error);
          throw error;
        }
      },
      close: () => cluster.close(),
    },
  };
}
