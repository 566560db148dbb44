import { AppError } from '../../../base/errors.ts';
import type { DefinedPhase, ObservedPhase, Phase } from '../../../host/phase.ts';
import type { ApiAccess } from './api-access.ts';

/** What a workflow that makes its own API server tells the phases that need it. */
export interface MakesApiServer {
  readonly api: ApiAccess;
  /** Plan as if the cluster were empty while there is none (`--dry-run`). */
  readonly assumeEmptyCluster: boolean;
  /** Files go into a directory: nothing runs there. */
  readonly staged: boolean;
}

/** A phase whose API server does not run yet. */
export const WAITING: ObservedPhase = {
  plan: { changes: [], deferred: 'needs the API server, up after wait-control-plane' },
  verify: async () => undefined,
  undo: () => null,
  provesUndone: false,
  verifyUndone: async () => undefined,
  commit: null,
};

/**
 * The phase as part of a workflow whose API server comes up on the way: its cluster is that one. While it is not up the phase plans nothing yet, and it is an error
 * when it is still not up once the phase's turn has come.
 * @param accessOf another way than `api`
 * @throws (ready) AppError API_SERVER_NOT_UP
 */
export function atApiServer<Whole extends MakesApiServer, Part>(
  phase: DefinedPhase<Part>,
  select: (input: Whole) => Part,
  accessOf: (input: Whole) => ApiAccess = ({ api }) => api,
): Phase<Whole> {
  const selected = phase.select(select);
  return {
    ...selected,
    contextFor: async (context, input) => ({ ...context, cluster: await accessOf(input).reach(context) }),
    ready: async (context, input) => {
      if (context.cluster === null && !input.staged) throw notUp(context.host.name);
      await selected.ready(context, input);
    },
    inspect: async (context, input) => (context.cluster === null && !input.assumeEmptyCluster ? WAITING : selected.inspect(context, input)),
  };
}

/** The API server, or the etcd that it knows of, cannot be reached. */
export function notUp(host: string): AppError {
  const message = 'the API server of this control plane does not answer, or there is no kubeconfig to log in with (admin.conf)';
  const hint = 'Run the phases before this one first, or give a kubeconfig with --kubeconfig';
  return new AppError({ host, code: 'API_SERVER_NOT_UP', message, hint });
}
