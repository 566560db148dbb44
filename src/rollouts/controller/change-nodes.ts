import type { Clock } from '../../base/clock.ts';
import { isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { ThisProcess } from '../../base/this-process.ts';
import type { NodeConfig } from '../../dynamic/status/node-config.ts';
import { planMissingRights, restoreRights } from '../../dynamic/use-cases/restore-agent-rights.ts';
import { applyAssignment, createAssignmentEvent, planAssignment } from '../../dynamic/workflows/assign-config.ts';
import type { Impact } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import { giveBack } from '../../maintenance/drain/drain-node.ts';
import { type PlannedDrains, plannedDrains } from '../../maintenance/drain/planned-drains.ts';
import { type NodeHolds, nodeHolds } from '../../maintenance/drain/while-drained.ts';
import type { Rollout } from '../api/rollout.ts';
import { sourceText } from '../reconcile/observed.ts';
import type { Decision } from '../reconcile/reconcile.ts';
import { reportError } from './report-error.ts';

export interface ChangePorts {
  /** Fenced. */
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly self: ThisProcess;
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}

/** The beginning of the ids of cordons. */
export const HOLD_PREFIX = 'rollout-';

/** The id of the cordons of a rollout. The next leader has the same one, and continues with the cordons of this one. */
export function holdOf(rollout: Pick<Rollout, 'uid'>): string {
  return `${HOLD_PREFIX}${rollout.uid}`;
}

interface HowToChange {
  readonly revision: string;
  readonly isRevert: boolean;
  readonly impact: Impact | null;
  readonly drain: Rollout['spec']['strategy']['drain'];
  /** Records the previous assignment; null: it is not needed. */
  readonly record: ((name: string, before: ConfigSource | null) => Promise<void>) | null;
}

/** The changes of the nodes of one rollout. Each may be repeated, and is executed in the background. */
export class NodeChanges {
  readonly #ports: ChangePorts;
  readonly #rollout: Pick<Rollout, 'name' | 'uid'>;
  /** Drained nodes. */
  readonly #holds = new Map<string, NodeHolds>();
  /** The version of each Node after its assignment: the watch may lag behind. */
  readonly #kept = new Map<string, number>();
  readonly #busy = new Map<string, Promise<void>>();
  /** Failed attempts, with the time of the next one. */
  readonly #issues = new Map<string, { readonly why: string; readonly attempts: number; readonly nextAt: number }>();
  /** The nodes of a revision that will be drained are marked before the first drain. */
  #planned: { readonly revision: string; readonly drains: PlannedDrains } | null = null;
  #marked: Promise<void> = Promise.resolve();
  readonly #ended: () => void;
  readonly #closed = new AbortController();

  /** @param ended called when a change has ended */
  constructor(ports: ChangePorts, rollout: Pick<Rollout, 'name' | 'uid'>, ended: () => void) {
    this.#ports = ports;
    this.#rollout = rollout;
    this.#ended = ended;
  }

  /** Whether a change is being executed, or the watch has not delivered its result yet. */
  isBusy({ name, resourceVersion }: Pick<NodeConfig, 'name' | 'resourceVersion'>): boolean {
    return this.#busy.has(name) || Number(resourceVersion) < (this.#kept.get(name) ?? 0);
  }

  issueOf(name: string): string | null {
    return this.#issues.get(name)?.why ?? null;
  }

  /** Sets MaintenancePlanned on nodes that will be drained, once for each revision, and again after a time without any: it was refused. */
  mark(revision: string, names: readonly string[]): void {
    if (this.#planned?.revision !== revision || names.length === 0) this.#planned = { revision, drains: plannedDrains(this.#run()) };
    const earlier = this.#marked;
    this.#marked = this.#planned.drains.add(this.#ports.cluster, names).then(() => earlier);
  }

  /** Resolves when no change is being executed. */
  async settled(): Promise<void> {
    await this.#marked;
    while (this.#busy.size > 0) await Promise.all(this.#busy.values());
  }

  /** Ends all changes: no node is assigned any more, and drains in progress end. Drained nodes stay cordoned for the next leader. */
  async close(): Promise<void> {
    this.#closed.abort(new Error('the changes of the rollout have ended'));
    await Promise.allSettled([...this.#busy.values(), ...[...this.#holds.values()].map((holds) => holds.endAll())]);
  }

  /** Assigns a node in progress; drains it before, if the impact requires it. */
  assign(config: NodeConfig, { name, desired, before }: Decision['assign'][number], how: HowToChange): void {
    const { cluster, clock, reporter } = this.#ports;
    if (this.isBusy(config)) return;
    this.#execute(name, async () => {
      await how.record?.(name, before);
      if (desired !== null)
        await restoreRights(
          cluster,
          await planMissingRights(cluster, { nodes: [config], namespace: desired.namespace, reporter, checksNew: true }),
          reporter,
        );
      await this.#marked;
      await this.#takeOutOfService(name, how);
      const recorded = {
        id: how.revision,
        command: desired === null ? 'reset' : 'assign',
        sha256Of: () => null,
        isRevert: how.isRevert,
      } as const;
      const by = { by: `KubeletConfigRollout ${this.#rollout.name}`, at: clock.now(), allowPodLoss: false, recorded };
      const change = planAssignment(config, desired, by);
      if (change === null || this.#closed.signal.aborted) return;
      const kept = await applyAssignment(cluster, config, change, { desired, by });
      this.#kept.set(name, Number(kept.resourceVersion));
      reporter.report({
        level: 'info',
        code: 'DYNAMIC_ASSIGNED',
        host: name,
        message: `rollout ${this.#rollout.name}: assigned ${sourceText(desired)}`,
      });
      await createAssignmentEvent(cluster, name, desired, by);
    });
  }

  async #takeOutOfService(name: string, { impact, drain }: HowToChange): Promise<void> {
    const limits = { timeoutMs: drain.timeoutSeconds * 1000, settleMs: drain.settleSeconds * 1000 };
    const policy = { isAllowed: true, isRequired: true, isForced: drain.force, ...limits };
    const holds =
      this.#holds.get(name) ??
      nodeHolds({ ...this.#ports, signal: this.#signal(), reporter: this.#openReporter(), run: this.#run() }, policy);
    await holds.take(name, impact);
    this.#holds.set(name, holds);
  }

  /** Returns a node to service, and waits for replacements of its pods. A controller that is restarted meanwhile does not wait. */
  uncordon(name: string): void {
    const { cluster, reporter } = this.#ports;
    this.#execute(name, async () => {
      await this.#holds.get(name)?.end(name, true);
      this.#holds.delete(name);
      await giveBack({ cluster, run: this.#run(), reporter }, name);
    });
  }

  #signal(): AbortSignal {
    return AbortSignal.any([this.#ports.signal, this.#closed.signal]);
  }

  /** Without messages after the end. */
  #openReporter(): Reporter {
    const { reporter } = this.#ports;
    return { report: (event) => (this.#closed.signal.aborted ? undefined : reporter.report(event)) };
  }

  #run() {
    const { self, clock } = this.#ports;
    const { name } = this.#rollout;
    return { run: holdOf(this.#rollout), self: { ...self, name: 'kubeletadm controller' }, clock, reason: `rollout ${name}` };
  }

  #execute(name: string, work: () => Promise<void>): void {
    const now = this.#ports.clock.now().getTime();
    if (this.#busy.has(name) || (this.#issues.get(name)?.nextAt ?? 0) > now) return;
    const running = work().then(
      () => void this.#issues.delete(name),
      (error: unknown) => this.#fail(name, error),
    );
    this.#busy.set(
      name,
      running.finally(() => {
        this.#busy.delete(name);
        this.#ended();
      }),
    );
  }

  #fail(name: string, error: unknown): void {
    const { clock, reporter } = this.#ports;
    if (this.#signal().aborted) return;
    if (!isAppError(error)) throw error;
    // The watch lags behind, or another client assigned the node: the next decision knows.
    if (error.code === 'ASSIGNMENT_REPLACED') return;
    const attempts = (this.#issues.get(name)?.attempts ?? 0) + 1;
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (attempts - 1), LONGEST_DELAY_MS);
    this.#issues.set(name, { why: error.message, attempts, nextAt: clock.now().getTime() + delayMs });
    reportError(reporter, error, { host: name });
  }
}

const FIRST_DELAY_MS = 2_000;
const LONGEST_DELAY_MS = 60_000;
