import type { Clock } from '../../base/clock.ts';
import { AppError, messageOf } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type AccessProblem, sameAccess } from './access-problem.ts';

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
