import { onAbort } from '../base/abort.ts';
import { AppError, type Problem, settle } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { type ParseText, parseEqualTextsOnce } from '../host/facts/parse-text.ts';
import { type HostPlan, hasChanges, hasChangesOrDeferred } from '../host/plan/document.ts';
import type { WorkflowResult } from '../host/run-workflow.ts';
import type { NodeClaims } from '../kubeadm/node-claims.ts';
import { canaryIndexes, isUnreachable, maxHostsToStart, type RolloutRules, rolloutStopReason } from './rollout.ts';

/** A host of a run. */
export interface FleetMember {
  readonly name: string;
  /** The Node that the fleet file declares. */
  readonly node?: string | undefined;
  /** Stage: a member starts when all members of lower stages have ended. Default: 0. */
  readonly stage?: number;
  /**
   * Changed while no other member is, and inspected after similar members that already started have ended,
   * because their changes affect it.
   */
  readonly isExclusive?: boolean;
  /** Required by the later stages: if this member fails, they are skipped. */
  readonly isNeeded?: boolean;
  /** Connects, inspects and plans; changes nothing. */
  open(ports: MemberPorts): Promise<OpenMember>;
}

export interface MemberPorts {
  /** Parses texts of all hosts of the run. */
  readonly parseText: ParseText;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/** An inspected host with its plan. */
export interface OpenMember {
  readonly planned: WorkflowResult;
  /**
   * Applies the plan.
   * @param signal stops the run between changes; absent: the run is completed
   */
  apply(signal?: AbortSignal): Promise<HostPlan>;
  close(): Promise<void>;
}

/** Result of a host. */
export type HostStatus =
  /** Up to date. */
  | 'unchanged'
  /** Planned only: changes are pending. */
  | 'pending'
  | 'changed'
  /** Refused or failed before any change. */
  | 'refused'
  /** Login failed; nothing was changed. */
  | 'unreachable'
  /** Failed after changes had started. */
  | 'failed'
  /** Failed after changes had started; the previous files were restored. */
  | 'reverted'
  /** Not started because the run was stopped. */
  | 'stopped'
  /** Not started because the user interrupted the run. */
  | 'interrupted';

export interface HostOutcome {
  readonly host: string;
  /** The Node that the fleet file declares. */
  readonly node?: string | undefined;
  readonly status: HostStatus;
  /** The plan or result, as far as available. */
  readonly plan: WorkflowResult | null;
  readonly error: AppError | null;
}

export interface FleetRules extends RolloutRules {
  /** Number of hosts inspected or changed at the same time. */
  readonly parallel: number;
  /** Number of open connections, including those of queued hosts. */
  readonly maxOpen: number;
  /** Only inspect and plan; stages do not wait for each other. */
  readonly dryRun: boolean;
  /** Run the phases of unchanged hosts as well, which verifies their state. */
  readonly verifyUnchanged?: boolean;
  /**
   * Inspect all hosts before the first change, so that each is compared with all others
   * (`FleetPorts.claims`). This needs `maxOpen` connections for all hosts.
   */
  readonly observesFirst?: boolean;
  /** Number of hosts that were refused when all hosts were inspected before this run; they count as failed. */
  readonly refusedBefore?: number;
}

/** Counters for progress output. */
export interface FleetProgress {
  readonly total: number;
  readonly looking: readonly string[];
  readonly waiting: number;
  readonly changing: readonly string[];
  readonly ended: Readonly<Partial<Record<HostStatus, number>>>;
  /** The first hosts to be changed must succeed before others start. Default: false. */
  readonly isCanary?: boolean;
  /** Number of hosts that may be changed at once now. Absent: no host is changed. */
  readonly maxConcurrent?: number;
}

export interface FleetPorts {
  readonly signal: AbortSignal;
  /** Reporter of a host. */
  reporterOf(host: string): Reporter;
  /** Nodes claimed by hosts: a Node claimed by two hosts is not changed. */
  readonly claims?: NodeClaims;
  /** Called and awaited before the first change of a host. */
  begins?(host: string): Promise<void>;
  /** Called and awaited when a host has ended. */
  ended?(outcome: HostOutcome): Promise<void>;
  progress?(progress: FleetProgress): void;
}

export interface FleetResult {
  /** In the order of the members. */
  readonly outcomes: readonly HostOutcome[];
  /** Reason why hosts were skipped, as a clause; null: none was. */
  readonly stopped: string | null;
}

/**
 * Plans and applies on many hosts in parallel. A host is changed as soon as its plan and the rules permit;
 * unreachable hosts do not delay others.
 * @throws errors other than AppError, after the hosts in progress have ended
 */
export async function runFleet(members: readonly FleetMember[], rules: FleetRules, ports: FleetPorts): Promise<FleetResult> {
  const run = new FleetRun(members, rules, ports);
  return run.run();
}

interface Waiting {
  readonly index: number;
  readonly member: FleetMember;
  readonly open: OpenMember;
}

class FleetRun {
  readonly #members: readonly FleetMember[];
  readonly #rules: FleetRules;
  readonly #ports: FleetPorts;
  readonly #parseText = parseEqualTextsOnce();
  readonly #outcomes: (HostOutcome | undefined)[] = [];
  readonly #ended: Partial<Record<HostStatus, number>> = {};
  readonly #looking = new Set<string>();
  readonly #changing = new Set<string>();
  readonly #waiting: Waiting[] = [];
  /** Indexes of the members to inspect, by stage. */
  readonly #uninspected: Set<number>;
  /** Indexes of the members, in the order in which they are canaries. */
  readonly #canaries: readonly number[];
  readonly #exclusive: ReadonlySet<string>;
  /** Number of unfinished members by stage. */
  readonly #left = new Map<number, number>();
  /** Name of the required member that failed. */
  #missing: string | null = null;
  #failed = 0;
  #broken = 0;
  /** Number of verified hosts without changes, which count as canaries as well. */
  #unchanged = 0;
  #bug: { readonly error: unknown } | null = null;
  #wake: () => void = () => undefined;

  constructor(members: readonly FleetMember[], rules: FleetRules, ports: FleetPorts) {
    this.#members = members;
    this.#rules = rules;
    this.#ports = ports;
    this.#exclusive = new Set(members.flatMap(({ name, isExclusive }) => (isExclusive === true ? [name] : [])));
    this.#uninspected = new Set([...members.keys()].sort((a, b) => this.#stageOf(a) - this.#stageOf(b) || a - b));
    this.#canaries = canaryIndexes(members, rules);
    this.#failed = rules.refusedBefore ?? 0;
    for (const index of members.keys()) this.#left.set(this.#stageOf(index), (this.#left.get(this.#stageOf(index)) ?? 0) + 1);
  }

  #stageOf(index: number): number {
    return this.#rules.dryRun ? 0 : (this.#members[index]?.stage ?? 0);
  }

  /** Whether all earlier stages have ended. */
  #isOpen(stage: number): boolean {
    for (const [other, left] of this.#left) if (other < stage && left > 0) return false;
    return true;
  }

  async run(): Promise<FleetResult> {
    const forget = onAbort(this.#ports.signal, () => this.#wake());
    try {
      for (;;) {
        this.#begin();
        this.#tellProgress();
        if (this.#looking.size + this.#changing.size === 0) break;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      forget();
    }
    const why = this.#stopReason();
    await this.#leaveOut();
    const stopped = (this.#ended.stopped ?? 0) > 0 ? why : null;
    if (this.#bug !== null) throw this.#bug.error;
    return { outcomes: this.#outcomes as readonly HostOutcome[], stopped };
  }

  #stopReason(): string | null {
    return this.#missing === null ? rolloutStopReason(this.#rules, this.#state()) : `the other hosts need ${this.#missing}, which failed`;
  }

  #state() {
    return {
      passed: (this.#ended.changed ?? 0) + this.#unchanged,
      failed: this.#failed,
      broken: this.#broken,
      changing: this.#changing.size,
    };
  }

  #begin(): void {
    if (this.#ports.signal.aborted || this.#bug !== null || this.#stopReason() !== null) return;
    const { parallel, maxOpen, observesFirst } = this.#rules;
    const isBefore = observesFirst === true && this.#looking.size + this.#uninspected.size > 0;
    // Changes have priority, because a queued host holds a connection.
    for (
      let more = isBefore ? 0 : maxHostsToStart(this.#rules, this.#state());
      more > 0 && this.#waiting.length > 0 && this.#busy() < parallel;
      more--
    ) {
      const waiting = this.#takeWaiting();
      if (waiting === null) break;
      this.#start(this.#changing, waiting, (one) => this.#change(one));
    }
    const first = this.#isCanaryPending() ? this.#canaryCandidates().slice(0, Math.min(parallel, Math.ceil(maxOpen / 2))) : [];
    const early = new Set(first.filter((index) => this.#uninspected.has(index)));
    // Canaries first: the others wait for them, and must not hold all connections.
    for (const index of new Set([...early, ...this.#uninspected])) {
      if (this.#busy() >= parallel || this.#busy() + this.#waiting.length >= maxOpen) break;
      if ((!early.has(index) && !this.#isOpen(this.#stageOf(index))) || this.#waitsForOneLikeIt(index)) continue;
      this.#uninspected.delete(index);
      this.#start(this.#looking, { index, member: this.#members[index] as FleetMember }, (one) => this.#look(one));
    }
  }

  #isCanaryPending(): boolean {
    const { canary, dryRun } = this.#rules;
    return !dryRun && this.#state().passed < canary;
  }

  /**
   * The members that may become canaries, in order. Canaries of a given order are changed before earlier stages, except
   * before a member that the later stages require.
   */
  #canaryCandidates(): readonly number[] {
    const left = this.#canaries.filter((index) => this.#outcomes[index] === undefined);
    if (this.#rules.canaryOrder === undefined) return left.filter((index) => this.#isOpen(this.#stageOf(index)));
    const needed = left.filter((index) => this.#members[index]?.isNeeded === true).map((index) => this.#stageOf(index));
    return left.filter((index) => this.#stageOf(index) <= Math.min(...needed, Number.POSITIVE_INFINITY));
  }

  #busy(): number {
    return this.#looking.size + this.#changing.size;
  }

  #waitsForOneLikeIt(index: number): boolean {
    if (this.#rules.dryRun || this.#members[index]?.isExclusive !== true) return false;
    const started = [...this.#looking, ...this.#changing, ...this.#waiting.map(({ member }) => member.name)];
    return started.some((name) => this.#exclusive.has(name));
  }

  /**
   * The next canary, or the next member in order; null if it must wait for others, or others for a member that is
   * changed alone.
   */
  #takeWaiting(): Waiting | null {
    const chosen = this.#isCanaryPending() ? this.#waitingCanary() : this.#firstWaiting();
    if (chosen === null) return null;
    if (this.#changing.size > 0 && (chosen.member.isExclusive === true || [...this.#changing].some((name) => this.#exclusive.has(name))))
      return null;
    this.#waiting.splice(this.#waiting.indexOf(chosen), 1);
    return chosen;
  }

  #firstWaiting(): Waiting | null {
    const before = (a: Waiting, b: Waiting): number => this.#stageOf(a.index) - this.#stageOf(b.index) || a.index - b.index;
    const first = this.#waiting.reduce((best, one) => (before(one, best) < 0 ? one : best));
    return this.#isOpen(this.#stageOf(first.index)) ? first : null;
  }

  /** Which host answers first does not decide: each canary waits for the results of the candidates before it. */
  #waitingCanary(): Waiting | null {
    const first = this.#canaryCandidates().slice(0, this.#rules.canary - this.#state().passed);
    return this.#waiting.find(({ index }) => first.includes(index)) ?? null;
  }

  #start<T extends { readonly member: FleetMember }>(among: Set<string>, one: T, work: (one: T) => Promise<void>): void {
    const { name } = one.member;
    among.add(name);
    void work(one)
      .catch((error: unknown) => {
        this.#bug ??= { error };
      })
      .finally(() => {
        among.delete(name);
        this.#wake();
      });
  }

  async #look({ index, member }: Pick<Waiting, 'index' | 'member'>): Promise<void> {
    const { signal, reporterOf } = this.#ports;
    const found = await settle(member.open({ reporter: reporterOf(member.name), signal, parseText: this.#parseText }));
    if ('error' in found) {
      const status = signal.aborted ? 'interrupted' : isUnreachable(found.error) ? 'unreachable' : 'refused';
      await this.#end(index, { status, plan: null, error: found.error });
      return;
    }
    const open = found.value;
    const { planned } = open;
    const pending = hasChangesOrDeferred(planned.host);
    if (this.#rules.observesFirst === true || (!this.#rules.dryRun && (pending || this.#rules.verifyUnchanged === true))) {
      this.#waiting.push({ index, member, open });
      return;
    }
    await this.#endPlanned({ index, member, open });
  }

  /** Ends a host that is only planned, or up to date. */
  async #endPlanned({ index, open }: Waiting, clashes: readonly Problem[] = []): Promise<void> {
    const { planned } = open;
    await settle(open.close());
    const refusals = clashes.length > 0 ? [...planned.refusals.filter(isOther(clashes)), ...clashes] : planned.refusals;
    const refused = refusals.length > 0 ? new AppError(refusals, { exitCode: 3 }) : null;
    const status = refused ? 'refused' : hasChangesOrDeferred(planned.host) ? 'pending' : 'unchanged';
    await this.#end(index, { status, plan: { ...planned, refusals }, error: refused });
  }

  async #change({ index, member, open }: Waiting): Promise<void> {
    const clashes = this.#ports.claims?.of(member.name).problems() ?? [];
    if (clashes.length > 0 || this.#rules.dryRun) {
      await this.#endPlanned({ index, member, open }, clashes);
      return;
    }
    await this.#ports.begins?.(member.name);
    // With many hosts, those in progress are completed; a run on a single host stops at once.
    const done = await settle(this.#members.length === 1 ? open.apply(this.#ports.signal) : open.apply());
    await settle(open.close());
    if ('error' in done && done.error.exitCode === 3) {
      await this.#end(index, { status: 'refused', plan: open.planned, error: done.error });
      return;
    }
    if ('error' in done) {
      this.#broken++;
      await this.#end(index, { status: done.error.exitCode === 5 ? 'reverted' : 'failed', plan: open.planned, error: done.error });
      return;
    }
    const status = hasChanges(done.value) ? 'changed' : 'unchanged';
    if (status === 'unchanged') this.#unchanged++;
    await this.#end(index, { status, plan: { ...open.planned, host: done.value }, error: null });
  }

  async #end(index: number, outcome: Omit<HostOutcome, 'host' | 'node'>): Promise<void> {
    const { name, node } = this.#members[index] as FleetMember;
    const whole = { host: name, ...(node === undefined ? {} : { node }), ...outcome };
    this.#outcomes[index] = whole;
    const stage = this.#stageOf(index);
    this.#left.set(stage, (this.#left.get(stage) ?? 1) - 1);
    const hasSucceeded = whole.status === 'changed' || whole.status === 'unchanged' || whole.status === 'pending';
    if (!hasSucceeded && !this.#rules.dryRun && this.#members[index]?.isNeeded === true) this.#missing ??= whole.host;
    this.#ended[whole.status] = (this.#ended[whole.status] ?? 0) + 1;
    if (whole.status === 'refused' || whole.status === 'failed' || whole.status === 'reverted') this.#failed++;
    await this.#ports.ended?.(whole);
  }

  /** Ends the members that were not started. */
  async #leaveOut(): Promise<void> {
    const status = this.#ports.signal.aborted ? 'interrupted' : 'stopped';
    const planned = new Map(this.#waiting.map(({ index, open }) => [index, open.planned]));
    await Promise.all(this.#waiting.map(({ open }) => settle(open.close())));
    for (const index of this.#members.keys())
      if (this.#outcomes[index] === undefined) await this.#end(index, { status, plan: planned.get(index) ?? null, error: null });
    this.#tellProgress();
  }

  #limits(): Pick<FleetProgress, 'isCanary' | 'maxConcurrent'> {
    const { canary, dryRun } = this.#rules;
    if (dryRun) return {};
    const state = this.#state();
    return { isCanary: state.passed < canary, maxConcurrent: maxHostsToStart(this.#rules, { ...state, changing: 0 }) };
  }

  #tellProgress(): void {
    this.#ports.progress?.({
      total: this.#members.length,
      looking: [...this.#looking],
      waiting: this.#waiting.length,
      changing: [...this.#changing],
      ended: this.#ended,
      ...this.#limits(),
    });
  }
}

/** Filters out problems that were already reported when the host was planned. */
function isOther(problems: readonly Problem[]): (problem: Problem) => boolean {
  return ({ code, message }) => !problems.some((one) => one.code === code && one.message === message);
}
