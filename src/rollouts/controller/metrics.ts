import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { isAppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Rollout } from '../api/rollout.ts';
import type { RolloutCondition } from '../api/schema.ts';

/** The metrics of a controller. Only the leader shows rollouts, so that a sum over all controllers counts each once. */
export class ControllerMetrics {
  readonly #registry = new Registry();
  readonly #leader: Gauge;
  readonly #phase: Gauge;
  readonly #nodes: Gauge;
  readonly #duration: Histogram;
  readonly #errors: Counter;
  readonly #csrsApproved: Counter;
  readonly #csrsPending: Gauge;

  constructor() {
    const registers = [this.#registry];
    this.#leader = new Gauge({
      name: 'kubeletadm_controller_leader',
      help: 'Whether this controller is the leader (1) or not (0).',
      registers,
    });
    this.#phase = new Gauge({
      name: 'kubeletadm_rollout_phase',
      help: 'Phase of a rollout, and the reason of its condition that is True. The value is always 1.',
      labelNames: ['rollout', 'phase', 'reason'],
      registers,
    });
    this.#nodes = new Gauge({
      name: 'kubeletadm_rollout_nodes',
      help: 'Nodes of a rollout by their state.',
      labelNames: ['rollout', 'state'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'kubeletadm_rollout_reconcile_duration_seconds',
      help: 'Duration of a decision about a rollout and the write of its status.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    });
    this.#errors = new Counter({
      name: 'kubeletadm_api_errors_total',
      help: 'Requests to the API server that failed, by verb and error code.',
      labelNames: ['verb', 'code'],
      registers,
    });
    this.#csrsApproved = new Counter({
      name: 'kubeletadm_serving_csrs_approved_total',
      help: 'CSRs for serving certificates of kubelets that this controller approved.',
      registers,
    });
    this.#csrsPending = new Gauge({
      name: 'kubeletadm_serving_csrs_pending',
      help: 'CSRs for serving certificates of kubelets that this controller checked and did not approve.',
      registers,
    });
  }

  leads(isLeader: boolean): void {
    this.#leader.set(isLeader ? 1 : 0);
    if (isLeader) return;
    this.show([]);
    this.csrsPending(0);
  }

  /** Shows these rollouts, and no others. */
  show(rollouts: readonly Pick<Rollout, 'name' | 'status'>[]): void {
    this.#phase.reset();
    this.#nodes.reset();
    for (const { name: rollout, status } of rollouts) {
      const { phase, counts, conditions } = status;
      if (phase !== undefined) this.#phase.set({ rollout, phase, reason: reasonOf(conditions) }, 1);
      if (counts === undefined) continue;
      const states = {
        Updated: counts.updated,
        InProgress: counts.inProgress,
        Pending: counts.pending,
        Failed: counts.failed,
        NotEnabled: counts.notEnabled,
      };
      for (const [state, count] of Object.entries(states)) this.#nodes.set({ rollout, state }, count);
    }
  }

  reconciled(seconds: number): void {
    this.#duration.observe(seconds);
  }

  csrApproved(): void {
    this.#csrsApproved.inc();
  }

  csrsPending(count: number): void {
    this.#csrsPending.set(count);
  }

  /** A cluster whose failed requests are counted. */
  counting(cluster: Cluster): Cluster {
    const counted = <A extends readonly unknown[], R>(verb: string, request: (...words: A) => Promise<R>) => {
      return async (...words: A): Promise<R> => {
        try {
          return await request(...words);
        } catch (error) {
          throw this.#count(verb, error);
        }
      };
    };
    const count = (error: unknown): unknown => this.#count('watch', error);
    return {
      ...cluster,
      get: counted('get', cluster.get),
      list: counted('list', cluster.list),
      getRaw: counted('get', cluster.getRaw),
      create: counted('create', cluster.create),
      update: counted('update', cluster.update),
      patch: counted('patch', cluster.patch),
      delete: counted('delete', cluster.delete),
      evict: counted('evict', cluster.evict),
      watch: async function* (...words) {
        try {
          yield* cluster.watch(...words);
        } catch (error) {
          throw count(error);
        }
      },
    };
  }

  #count(verb: string, error: unknown): unknown {
    if (isAppError(error)) this.#errors.inc({ verb, code: error.code });
    return error;
  }

  /** In the Prometheus text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

function reasonOf(conditions: readonly RolloutCondition[] = []): string {
  return conditions.find(({ status }) => status === 'True')?.reason ?? '';
}
