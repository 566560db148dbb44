import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { isAppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { printable } from '../../base/text/printable.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { HttpsClient } from '../../kube/https-client.ts';
import { ownerReference } from '../../kube/object.ts';
import { gateJob, jobAnswer, KEPT_SECONDS, resultOfJob } from '../../maintenance/gates/job-gate.ts';
import { queryPrometheus } from '../../maintenance/gates/prometheus-gate.ts';
import { type Rollout, rolloutRef } from '../api/rollout.ts';
import { type GateRun, gateKey } from '../reconcile/between-batches.ts';
import type { GateAttempt } from '../reconcile/observed.ts';

/** What gates of a controller need from outside. */
export interface GatePorts {
  /** Fenced. */
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly web: HttpsClient;
}

/** The attempts of the gates of a rollout, one at a time. All of it may be lost: the status records what has ended. */
export class GateAttempts {
  readonly #ports: GatePorts;
  readonly #rollout: Pick<Rollout, 'name' | 'uid'>;
  readonly #ended: () => void;
  #last: GateAttempt | null = null;
  #nextAt = 0;
  #busy: Promise<void> | null = null;

  /** @param ended called when an attempt has ended */
  constructor(ports: GatePorts, rollout: Pick<Rollout, 'name' | 'uid'>, ended: () => void) {
    this.#ports = ports;
    this.#rollout = rollout;
    this.#ended = ended;
  }

  last(): GateAttempt | null {
    return this.#last;
  }

  async settled(): Promise<void> {
    await this.#busy;
  }

  /** Attempts a gate that the status records, unless an attempt runs or its pause has not ended. */
  attempt(run: GateRun): void {
    const { clock, signal } = this.#ports;
    const key = gateKey(run.result);
    if (this.#busy !== null || (this.#last?.key === key && clock.now().getTime() < this.#nextAt)) return;
    const attempting = this.#result(run).then((result) => {
      this.#busy = null;
      if (signal.aborted) return;
      this.#last = { key, ...result, answer: printable(result.answer, MAX_SHOWN) };
      this.#nextAt = clock.now().getTime() + (run.gate.prometheus?.intervalSeconds ?? 0) * 1000;
      this.#ended();
    });
    this.#busy = attempting;
  }

  async #result({ gate, result }: GateRun): Promise<Omit<GateAttempt, 'key'>> {
    const { web, signal, clock } = this.#ports;
    const attempts = result.attempts + 1;
    try {
      if (gate.prometheus === undefined) return await this.#job(gate, result);
      const leftMs = Date.parse(result.startedAt) + gate.timeoutSeconds * 1000 - clock.now().getTime();
      const timeoutMs = Math.min(Math.max(leftMs, 1_000), LONGEST_QUERY_MS);
      const { address, query, thresholdRange } = gate.prometheus;
      return { attempts, ...(await queryPrometheus({ web, signal }, { address, query, thresholdRange }, { timeoutMs })) };
    } catch (error) {
      if (!isAppError(error)) {
        if (signal.aborted) return { attempts, isPassed: null, answer: '' };
        throw error;
      }
      // An error of the API server is no result of the Job.
      const isPassed = gate.prometheus === undefined ? null : false;
      return { attempts: isPassed === null ? result.attempts : attempts, isPassed, answer: error.problems[0]?.message ?? error.message };
    }
  }

  /** Creates the Job, or observes the one that an earlier attempt has created: its name depends on the record of the gate only. */
  async #job(gate: GateRun['gate'], result: GateRun['result']): Promise<Omit<GateAttempt, 'key'>> {
    const { cluster } = this.#ports;
    const { name: rollout, uid } = this.#rollout;
    const { namespace = '', template = { spec: {} } } = gate.job ?? {};
    const hash = createHash('sha256')
      .update(`${uid} ${gateKey(result)}`)
      .digest('hex')
      .slice(0, 10);
    const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace, name: `${gate.name}-${hash}` };
    const found = await cluster.get(ref);
    if (found === null && result.attempts === 0) {
      const { labels, annotations } = (template.metadata ?? {}) as JsonObject;
      const metadata = { ...(labels === undefined ? {} : { labels }), ...(annotations === undefined ? {} : { annotations }) };
      const timeoutMs = gate.timeoutSeconds * 1000;
      const job = gateJob({ metadata, spec: template.spec as JsonObject }, { ...ref, gate: gate.name, batch: result.batch, timeoutMs });
      await cluster.create({
        ...job,
        metadata: { ...job.metadata, ownerReferences: [ownerReference(rolloutRef(rollout), uid)] },
        // A Job that is deleted early would be created again.
        spec: { ...(job.spec as JsonObject), ttlSecondsAfterFinished: KEPT_SECONDS },
      });
    }
    const end = found === null && result.attempts === 0 ? null : resultOfJob(found);
    if (end !== null) return { attempts: 1, isPassed: end.isPassed, answer: jobAnswer(ref, end) };
    return { attempts: 1, isPassed: null, answer: `Job ${namespace}/${ref.name} is not complete` };
  }
}

const MAX_SHOWN = 300;
const LONGEST_QUERY_MS = 60_000;
