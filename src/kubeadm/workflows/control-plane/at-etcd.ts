import type { DefinedPhase, Phase } from '../../../host/phase.ts';
import { notUp, WAITING } from './at-api-server.ts';
import type { EtcdAccess } from './etcd-access.ts';

/** Input of a workflow that changes etcd members. */
export interface UsesEtcd {
  readonly etcdApi: EtcdAccess;
  /** Etcd may be absent or unreachable: the phases are then deferred instead of failing. */
  readonly mayLackEtcd: boolean;
}

/**
 * Adapts a phase to a workflow that changes etcd members: `etcdApi` provides its `etcd`. The phase is deferred while
 * etcd is unreachable.
 * @param isSkipped whether the phase is skipped and needs no etcd
 * @throws (ready) AppError API_SERVER_NOT_UP if etcd is still unreachable when the phase is run
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
