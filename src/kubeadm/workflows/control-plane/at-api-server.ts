import { AppError } from '../../../base/errors.ts';
import { type DefinedPhase, type ObservedPhase, type Phase, planOnly } from '../../../host/phase.ts';
import type { ApiAccess } from './api-access.ts';

/** Input of a workflow that starts its own API server, for the phases that use it. */
export interface MakesApiServer {
  readonly api: ApiAccess;
  /** Plans for an empty cluster if the API server is not running (`--dry-run`). */
  readonly assumeEmptyCluster: boolean;
  /** Files are written to a directory; nothing runs in it. */
  readonly staged: boolean;
}

/** The plan of a phase whose API server does not run yet. */
export const WAITING: ObservedPhase = planOnly({
  changes: [],
  deferred: 'needs the API server, which starts in phase wait-control-plane',
});

/**
 * Adapts a phase to a workflow that starts its own API server. The phase is deferred until the API server is up, and
 * fails if it is still down when the phase is run.
 * @param accessOf another access than `api`
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

/** The error for an unreachable API server, or unreachable etcd members that the API server lists. */
export function notUp(host: string): AppError {
  const message = 'the API server of this control plane is unreachable, or admin.conf does not exist on the host';
  const hint = 'Run the earlier phases first, or pass a kubeconfig with --kubeconfig';
  return new AppError({ host, code: 'API_SERVER_NOT_UP', message, hint });
}
