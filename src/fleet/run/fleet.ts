import { onAbort } from '../../base/abort.ts';
import { type AppError, isAppError, type Problem, settle } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { parseEqualTextsOnce } from '../../host/facts/parse-text.ts';
import { type HostPlan, hasChanges, hasChangesOrDeferred } from '../../host/plan/document.ts';
import type { NodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import type { BatchGates, GateRecord, GateStop } from '../../maintenance/gates/batch-gates.ts';
import type { MemberOutcome } from '../../maintenance/member-outcome.ts';
import {
  type MemberState,
  type NextMembers,
  nextMembers,
  nextStep,
  type RolloutMember,
  type RolloutRules,
  type RolloutStep,
} from '../../maintenance/next-step.ts';
import type { FleetMember, MemberPorts, OpenMember } from './fleet-member.ts';
import {
  blockedReason,
  countByStatus,
  type HostResult,
  isUnreachable,
  plannedOutcome,
  unopenedStatus,
  warningOnce,
} from './member-results.ts';

/** Result of a host. */
export type HostStatus = Exclude<MemberOutcome, 'not-rolled-back' | 'replaced' | 'in-progress'>;

export interface HostOutcome {
  readonly host: string;
  /** The Node that the fleet file declares. */
  readonly node?: string | undefined;
  readonly status: HostStatus;
  /** The plan or result, as far as available. */
  readonly plan: HostResult | null;
  readonly error: AppError | null;
}

export interface FleetRules extends RolloutRules {
  /** Number of hosts inspected or changed at the same time. */
  readonly parallel: number;
  /** Number of hosts with an open connection, including queued ones. */
  readonly maxOpen: number;
  /** Run the phases of unchanged hosts as well, which verifies their state. */
  readonly verifyUnchanged?: boolean;
  /**
   * Inspect all hosts before the first change. Each of several hosts is planned again when its change is started, which may
   * be much later. Connections are kept in between, but no more than `maxOpen` are open.
   */
  readonly observesFirst?: boolean;
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
  /** The hosts that start next if those in progress succeed, except those that are rolling back. Absent: no host is changed. */
  readonly next?: (rollingBack: ReadonlySet<string>) => NextMembers;
}

export interface FleetPorts {
  readonly signal: AbortSignal;
  /** Reporter of a host. */
  reporterOf(host: string): Reporter;
  /** Nodes claimed by hosts: a Node claimed by two hosts is not changed. */
  readonly claims?: NodeClaims;
  /** With `observesFirst`: called when all hosts were inspected. If it throws, no host is changed, and the run throws the error. */
  inspected?(outcomes: readonly HostOutcome[]): void;
  /** Gates and windows between batches: hosts are changed in batches. Absent: none. */
  readonly gates?: BatchGates | undefined;
  /** Called and awaited when a gate has ended. */
  gateEnded?(gate: GateRecord): Promise<void>;
  /** Called and awaited before the first change of a host. */
  begins?(host: string): Promise<void>;
  /** Called when a host was planned; a host that is planned again is reported again. */
  planned?(host: string, plan: HostPlan): void;
  /** Called and awaited when a host has ended. */
  ended?(outcome: HostOutcome): Promise<void>;
  progress?(progress: FleetProgress): void;
}

export interface FleetResult {
  /** In the order of the members. */
  readonly outcomes: readonly HostOutcome[];
  /** Reason why hosts were skipped, as a clause; null: none was. */
  readonly stopped: string | null;
  /** They were skipped because so many hosts were down. */
  readonly isBlocked?: boolean;
  /** The gate or window that ended the run. */
  readonly gate?: GateStop;
}

/**
 * Plans and applies on many hosts in parallel; `planHosts` only plans. A host is changed as soon as its plan and the rules permit;
 * unreachable hosts do not delay others.
 * @throws errors of `inspected`, and errors other than AppError, after the hosts in progress have ended
 */
export async function runFleet(members: readonly FleetMember[], rules: FleetRules, ports: FleetPorts): Promise<FleetResult> {
  const run = new FleetRun(members, rules, ports);
  return run.run();
}

/** A host and its state in the run. */
interface RunningMember extends RolloutMember {
  state: RolloutMember['state'];
  stage: number | undefined;
  isDown: boolean;
  isExclusive: boolean;
  isVerified: boolean;
  isStarted: boolean;
  readonly member: FleetMember;
  /** Null: not inspected yet. */
  reporter: Reporter | null;
  /** Null: not inspected yet. */
  open: OpenMember | null;
  outcome: HostOutcome | null;
}

/** Time in which a Node that was not Ready before may become Ready after a successful change. */
const READY_MS = 30_000;
/** Time in which the kubelet of a host renews its Lease after a failed change, if it is running: it does so every 10 s. */
const RENEW_MS = 15_000;

class FleetRun {
  readonly #members: readonly RunningMember[];
  readonly #rules: FleetRules;
  readonly #ports: FleetPorts;
  readonly #parseText = parseEqualTextsOnce();
  /** Number of queued hosts with an open connection. */
  #kept = 0;
  #isInspected = false;
  #gateStop: GateStop | null = null;
  /** Starts no further host, and is thrown at the end. */
  #bug: { readonly error: unknown } | null = null;
  #wake: () => void = () => undefined;

  constructor(members: readonly FleetMember[], rules: FleetRules, ports: FleetPorts) {
    const inBatches = ports.gates !== undefined;
    this.#rules = { ...rules, inBatches };
    this.#ports = ports;
    this.#members = members.map((member) => {
      const { name, stage, zone, isExclusive = false, isNeeded } = member;
      const place = { stage, zone, isExclusive, isNeeded };
      const progress = { state: 'waiting', isDown: false, isVerified: false, isStarted: false } as const;
      return { name, ...place, ...progress, member, reporter: null, open: null, outcome: null };
    });
  }

  async run(): Promise<FleetResult> {
    const { signal } = this.#ports;
    const forget = onAbort(signal, () => this.#wake());
    let [blocked, stopped]: [readonly string[], string | null] = [[], null];
    try {
      for (;;) {
        const step = this.#nextStep();
        this.#checkInspected();
        if ((await this.#hasRecovered(step)) || (await this.#stopsAtGate(step))) continue;
        if (!signal.aborted && this.#bug === null) {
          for (const one of step.start) this.#run(one, 'in-progress', () => this.#change(one));
          for (const one of step.inspect) this.#run(one, 'inspecting', () => this.#inspect(one));
        }
        this.#reportProgress(step);
        ({ blocked, stopped } = step);
        if (!this.#members.some(({ state }) => state === 'inspecting' || state === 'in-progress')) break;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      forget();
    }
    await this.#endOthers();
    // The canaries of a stage are no longer counted when its last host has ended.
    const limit = nextStep(this.#members, this.#rules).stopped ?? stopped;
    if (this.#bug !== null) throw this.#bug.error;
    const outcomes = this.#members.flatMap(({ outcome }) => outcome ?? []);
    const gate = this.#gateStop;
    if (gate !== null) return { outcomes, stopped: gate.reason, gate };
    if (!outcomes.some(({ status }) => status === 'not-started')) return { outcomes, stopped: null };
    return { outcomes, stopped: limit ?? blockedReason(blocked), isBlocked: limit === null && blocked.length > 0 };
  }

  #nextStep(): RolloutStep<RunningMember> {
    const step = nextStep(this.#members, this.#rules);
    return this.#gateStop === null ? step : { ...step, inspect: [], start: [], stopped: this.#gateStop.reason };
  }

  /** Before hosts that are down stop the run: whether the Node of one is Ready again. */
  async #hasRecovered({ blocked }: RolloutStep<RunningMember>): Promise<boolean> {
    if (blocked.length === 0 || this.#members.some(({ state }) => state === 'inspecting')) return false;
    if (this.#ports.signal.aborted || this.#bug !== null) return false;
    const down = this.#members.filter(({ isDown, open }) => isDown && open !== null);
    await Promise.all(down.map((one) => this.#observeNode(one, one.state === 'failed' ? RENEW_MS : 0)));
    return down.some(({ isDown }) => !isDown);
  }

  async #observeNode(one: RunningMember, waitMs: number): Promise<void> {
    if (one.isDown) one.isDown = (await one.open?.isNodeDown?.(waitMs)) ?? true;
  }

  /** Between two batches, and at the end unless hosts failed or are left. Hosts without changes are in no batch. */
  async #stopsAtGate({ start, inspect, isCanary, stopped, blocked }: RolloutStep<RunningMember>): Promise<boolean> {
    const { gates, signal, gateEnded } = this.#ports;
    if (gates === undefined || this.#gateStop !== null || this.#bug !== null || signal.aborted) return false;
    if (this.#members.some(({ state }) => state === 'in-progress')) return false;
    const isEnd = start.length + inspect.length === 0 && !this.#members.some(({ state }) => state === 'inspecting');
    const names = start.flatMap(({ name, open }) => (open !== null && hasChangesOrDeferred(open.planned.host) ? [name] : []));
    if (isEnd ? stopped !== null || blocked.length > 0 : names.length === 0) return false;
    const done = this.#members.flatMap(({ name, open }) => (open !== null && !hasChangesOrDeferred(open.planned.host) ? [name] : []));
    try {
      this.#gateStop = await gates.pass({ names, isCanary, done }, (gate) => gateEnded?.(gate) ?? Promise.resolve());
    } catch (error) {
      this.#bug = { error };
    }
    return this.#gateStop !== null || this.#bug !== null;
  }

  /** Inspects or changes a host. Its state changes when its result has been reported. */
  #run(one: RunningMember, state: 'inspecting' | 'in-progress', work: () => Promise<void>): void {
    one.state = state;
    void work()
      .catch((error: unknown) => {
        this.#bug ??= { error };
      })
      .finally(() => {
        one.state = one.outcome?.status ?? (one.open === null ? 'waiting' : 'queued');
        this.#wake();
      });
  }

  /** Calls `inspected` once. */
  #checkInspected(): void {
    if (this.#isInspected || this.#rules.observesFirst !== true) return;
    if (this.#members.some(({ state }) => state === 'waiting' || state === 'inspecting')) return;
    this.#isInspected = true;
    try {
      this.#ports.inspected?.(this.#members.flatMap(({ outcome }) => outcome ?? []));
    } catch (error) {
      this.#bug ??= { error };
    }
  }

  async #inspect(one: RunningMember): Promise<void> {
    const { observesFirst, parallel, maxOpen } = this.#rules;
    const open = await this.#open(one, { isInspection: this.#plansAgain });
    if (open === null) return;
    if (observesFirst !== true && !this.#isToChange(open)) return this.#endPlanned(one, open);
    if (!this.#plansAgain) return;
    if (open.release !== undefined && this.#kept + parallel < maxOpen) {
      this.#kept++;
      return;
    }
    const { release: _, ...inspected } = open;
    one.open = { ...inspected, close: async () => undefined };
    await settle(open.close());
  }

  get #plansAgain(): boolean {
    return this.#rules.observesFirst === true && this.#members.length > 1;
  }

  #isToChange({ planned }: OpenMember): boolean {
    return hasChangesOrDeferred(planned.host) || this.#rules.verifyUnchanged === true;
  }

  /** Connects, inspects and plans a host. Null: the host has ended. */
  async #open(one: RunningMember, purpose: Pick<MemberPorts, 'isInspection' | 'connection'>): Promise<OpenMember | null> {
    const { signal, reporterOf } = this.#ports;
    one.reporter ??= this.#plansAgain ? warningOnce(reporterOf(one.name)) : reporterOf(one.name);
    const found = await settle(one.member.open({ reporter: one.reporter, signal, parseText: this.#parseText, ...purpose }));
    if ('error' in found) {
      // The connection may have been lost since the inspection.
      if (purpose.connection !== undefined && !signal.aborted && isUnreachable(found.error))
        return this.#open(one, { isInspection: false });
      const status = unopenedStatus(found, signal);
      one.isDown ||= status === 'unreachable';
      await this.#end(one, { status, plan: null, error: found.error });
      return null;
    }
    one.open = found.value;
    this.#ports.planned?.(one.name, found.value.planned.host);
    one.isDown = found.value.planned.isDown === true;
    one.isExclusive ||= found.value.planned.isExclusive === true;
    one.stage = found.value.planned.stage ?? one.stage;
    return found.value;
  }

  /** Ends a host that is refused, or up to date. */
  async #endPlanned(one: RunningMember, open: OpenMember, clashes: readonly Problem[] = []): Promise<void> {
    await settle(open.close());
    await this.#end(one, plannedOutcome(open.planned, clashes));
  }

  /** Opens an inspected host again. */
  async #openAgain(one: RunningMember, { release }: OpenMember): Promise<OpenMember | null> {
    one.open = null;
    return this.#open(one, { isInspection: false, connection: await release?.() });
  }

  async #change(one: RunningMember): Promise<void> {
    const inspected = one.open as OpenMember;
    if (this.#plansAgain && inspected.release !== undefined) this.#kept--;
    const clashes = this.#ports.claims?.of(one.name).problems() ?? [];
    if (clashes.length > 0 || !this.#isToChange(inspected)) return this.#endPlanned(one, inspected, clashes);
    one.isStarted = true;
    const open = this.#plansAgain ? await this.#openAgain(one, inspected) : inspected;
    if (open === null || (this.#plansAgain && this.#ports.signal.aborted)) return;
    await this.#ports.begins?.(one.name);
    // With many hosts, those in progress are completed; a run on a single host stops at once.
    const done = await settle(this.#members.length === 1 ? open.apply(this.#ports.signal) : open.apply());
    const failed = 'error' in done ? failedStatus(done.error) : null;
    if (this.#members.length > 1 && Number.isFinite(this.#rules.maxUnavailable)) {
      // The previous configuration is not verified.
      one.isDown ||= failed === 'failed';
      await this.#observeNode(one, failed === null ? READY_MS : failed === 'failed' ? RENEW_MS : 0);
    }
    await settle(open.close());
    if ('error' in done && this.#members.length > 1 && isAppError(done.error, 'NODE_HELD')) {
      for (const { code, message, hint } of done.error.problems)
        one.reporter?.report({ level: 'warning', code, host: one.name, message: `${message}. ${hint}.` });
      await this.#end(one, { status: 'skipped', plan: open.planned, error: null });
      return;
    }
    if ('error' in done) {
      await this.#end(one, { status: failedStatus(done.error), plan: open.planned, error: done.error });
      return;
    }
    const status = hasChanges(done.value) ? 'changed' : 'unchanged';
    one.isVerified = status === 'unchanged';
    await this.#end(one, { status, plan: { ...open.planned, host: done.value }, error: null });
  }

  async #end(one: RunningMember, outcome: Omit<HostOutcome, 'host' | 'node'>): Promise<void> {
    const { name, node } = one.member;
    one.outcome = { host: name, ...(node === undefined ? {} : { node }), ...outcome };
    await this.#ports.ended?.(one.outcome);
  }

  /** Ends the hosts that were not started. Unless the user interrupted the run, one that claims the Node of another host is refused. */
  async #endOthers(): Promise<void> {
    const status = this.#ports.signal.aborted ? 'interrupted' : 'not-started';
    const others = this.#members.filter(({ outcome }) => outcome === null);
    await Promise.all(others.map(({ open }) => open && settle(open.close())));
    for (const one of others) {
      const { planned = null } = one.open ?? {};
      const clashes = this.#ports.claims?.of(one.name).problems() ?? [];
      const isRefused = planned !== null && clashes.length > 0 && status === 'not-started';
      await this.#end(one, isRefused ? plannedOutcome(planned, clashes) : { status, plan: planned, error: null });
      one.state = one.outcome?.status ?? status;
    }
    this.#reportProgress(this.#nextStep());
  }

  #reportProgress({ isCanary, maxConcurrent }: RolloutStep<RunningMember>): void {
    const namesOf = (wanted: MemberState): readonly string[] =>
      this.#members.flatMap(({ name, state, outcome }) => (outcome === null && state === wanted ? [name] : []));
    this.#ports.progress?.({
      total: this.#members.length,
      looking: namesOf('inspecting'),
      waiting: namesOf('queued').length,
      changing: namesOf('in-progress'),
      ended: countByStatus(this.#members.flatMap(({ outcome }) => outcome ?? [])),
      isCanary,
      maxConcurrent,
      next: (rollingBack) => nextMembers(this.#members, this.#rules, rollingBack),
    });
  }
}

function failedStatus({ exitCode }: AppError): 'refused' | 'rolled-back' | 'failed' {
  return ({ 3: 'refused', 5: 'rolled-back' } as const)[exitCode as number] ?? 'failed';
}
