import type { DefinedPhase, Phase } from '../../../host/phase.ts';
import { notUp, WAITING } from './at-api-server.ts';
import type { EtcdAccess } from './etcd-access.ts';

/** What a workflow tells the phases that change the members of etcd. */
export interface UsesEtcd {
  readonly etcdApi: EtcdAccess;
  /** Nothing runs there yet, or nothing answers: the phases have nothing to change. */
  readonly mayLackEtcd: boolean;
}

/**
 * The phase as part of a workflow that changes the members of etcd: its `etcd` is reached by `etcdApi`. Where it is not reached the phase is deferred.
 * @param isSkipped whether the phase has nothing to do, and so needs no etcd
 * @throws (ready) AppError API_SERVER_NOT_UP when etcd cannot be reached once the phase's turn has come
 */
export function atEtcd<Whole extends UsesEtcd, Part>(
  phase: DefinedPhase<Part>,
  select: (input: Whole) => Part,
  isSkipped: (part: Part) => boolean,
): Phase<Whole> {
  const selected = phase.select(select);
  return {
    ...selected,
    contextFor: async (context, input) => (isSkipped(select(input)) ? context : { ...context, etcd: await input.etcdApi.reach(context) }),
    ready: async (context, input) => {
      if (context.etcd == null && !input.mayLackEtcd && !isSkipped(select(input))) throw notUp(context.host.name);
      await selected.ready(context, input);
    },
    inspect: async (context, input) => (context.etcd == null && !isSkipped(select(input)) ? WAITING : selected.inspect(context, input)),
  };
}
