import { onAbort } from '../../base/abort.ts';
import { AppError, type Problem, settle } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { type ParseText, parseEqualTextsOnce } from '../../host/facts/parse-text.ts';
import { type HostPlan, hasChanges, hasChangesOrDeferred } from '../../host/plan/document.ts';
import type { WorkflowResult } from '../../host/run-workflow.ts';
import type { NodeClaims } from '../../kubeadm/node-identity/node-claims.ts';
import type { MemberOutcome } from '../../maintenance/member-outcome.ts';
import { nextStep, type RolloutMember, type RolloutRules, type RolloutStep } from '../../maintenance/next-step.ts';

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

interface MemberPorts {
  /** Parses texts of all hosts of the run. */
  readonly parseText: ParseText;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/** An inspected host with its plan. */
interface OpenMember {
  readonly planned: WorkflowResult;
  /**
   * Applies the plan.
   * @param signal stops the run between changes; absent: the run is completed
   */
  apply(signal?: AbortSignal): Promise<HostPlan>;
  close(): Promise<void>;
}

/** Result of a host. */
export type HostStatus = Exclude<MemberOutcome, 'not-rolled-back' | 'replaced' | 'in-progress'>;

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
   * With `observesFirst` and several hosts: close each host after its inspection, and plan it again when its change is
   * started, which may be much later.
   */
  readonly plansAgain?: boolean;
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

/** A host and its state in the run. */
interface RunningMember extends RolloutMember {
  state: RolloutMember['state'];
  isVerified: boolean;
  isStarted: boolean;
  readonly member: FleetMember;
  /** Null: not inspected yet. */
  reporter: Reporter | null;
  /** Null: not inspected yet. */
  open: OpenMember | null;
  outcome: HostOutcome | null;
}

class FleetRun {
  readonly #members: readonly RunningMember[];
  readonly #rules: FleetRules;
  readonly #ports: FleetPorts;
  readonly #parseText = parseEqualTextsOnce();
  #bug: { readonly error: unknown } | null = null;
  #wake: () => void = () => undefined;

  constructor(members: readonly FleetMember[], rules: FleetRules, ports: FleetPorts) {
    this.#rules = rules.dryRun ? { ...rules, canary: 0 } : rules;
    this.#ports = ports;
    this.#members = members.map((member) => {
      const { name, stage, isExclusive, isNeeded } = member;
      const place = rules.dryRun ? {} : { stage, isExclusive, isNeeded };
      return { name, ...place, state: 'waiting', isVerified: false, isStarted: false, member, reporter: null, open: null, outcome: null };
    });
  }

  async run(): Promise<FleetResult> {
    const { signal } = this.#ports;
    const forget = onAbort(signal, () => this.#wake());
    try {
      for (;;) {
        const step = nextStep(this.#members, this.#rules);
        if (!signal.aborted && this.#bug === null) {
          for (const one of step.start) this.#run(one, 'in-progress', () => this.#change(one));
          for (const one of step.inspect) this.#run(one, 'inspecting', () => this.#inspect(one));
        }
        this.#reportProgress(step);
        if (!this.#members.some(({ state }) => state === 'inspecting' || state === 'in-progress')) break;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      forget();
    }
    await this.#endOthers();
    const { stopped } = nextStep(this.#members, this.#rules);
    if (this.#bug !== null) throw this.#bug.error;
    const outcomes = this.#members.flatMap(({ outcome }) => (outcome === null ? [] : this.#withClashes(outcome)));
    return { outcomes, stopped: outcomes.some(({ status }) => status === 'not-started') ? stopped : null };
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

  async #inspect(one: RunningMember): Promise<void> {
    const { dryRun, observesFirst, verifyUnchanged } = this.#rules;
    const open = await this.#open(one);
    if (open === null) return;
    const isQueued = hasChangesOrDeferred(open.planned.host) || verifyUnchanged === true;
    if (observesFirst !== true && (dryRun || !isQueued)) await this.#endPlanned(one, open);
    else if (dryRun || this.#plansAgain) {
      await settle(open.close());
      one.open = { ...open, close: async () => undefined };
    }
  }

  get #plansAgain(): boolean {
    return this.#rules.plansAgain === true && this.#members.length > 1;
  }

  /** Connects, inspects and plans a host. Null: the host has ended. */
  async #open(one: RunningMember): Promise<OpenMember | null> {
    const { signal, reporterOf } = this.#ports;
    one.reporter ??= this.#plansAgain ? warningOnce(reporterOf(one.name)) : reporterOf(one.name);
    const found = await settle(one.member.open({ reporter: one.reporter, signal, parseText: this.#parseText }));
    if ('error' in found) {
      const status = signal.aborted ? 'interrupted' : isUnreachable(found.error) ? 'unreachable' : 'refused';
      await this.#end(one, { status, plan: null, error: found.error });
      return null;
    }
    one.open = found.value;
    return found.value;
  }

  /** Ends a host that is only planned, or up to date. */
  async #endPlanned(one: RunningMember, open: OpenMember, clashes: readonly Problem[] = []): Promise<void> {
    await settle(open.close());
    await this.#end(one, plannedOutcome(open.planned, clashes));
  }

  /** In a dry run, a host may have ended before another host of the same Node was inspected: then both are refused. */
  #withClashes(outcome: HostOutcome): HostOutcome {
    const { host, status, plan } = outcome;
    if (!this.#rules.dryRun || plan === null || (status !== 'pending' && status !== 'unchanged')) return outcome;
    const clashes = this.#ports.claims?.of(host).problems() ?? [];
    return clashes.length === 0 ? outcome : { ...outcome, ...plannedOutcome(plan, clashes) };
  }

  async #change(one: RunningMember): Promise<void> {
    const inspected = one.open as OpenMember;
    const clashes = this.#ports.claims?.of(one.name).problems() ?? [];
    if (clashes.length > 0 || this.#rules.dryRun) {
      await this.#endPlanned(one, inspected, clashes);
      return;
    }
    one.isStarted = true;
    const open = this.#plansAgain ? await this.#open(one) : inspected;
    if (open === null || (this.#plansAgain && this.#ports.signal.aborted)) return;
    await this.#ports.begins?.(one.name);
    // With many hosts, those in progress are completed; a run on a single host stops at once.
    const done = await settle(this.#members.length === 1 ? open.apply(this.#ports.signal) : open.apply());
    await settle(open.close());
    if ('error' in done) {
      const status = ({ 3: 'refused', 5: 'rolled-back' } as const)[done.error.exitCode as number] ?? 'failed';
      await this.#end(one, { status, plan: open.planned, error: done.error });
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
    this.#reportProgress(nextStep(this.#members, this.#rules));
  }

  #reportProgress({ isCanary, maxConcurrent }: RolloutStep<RunningMember>): void {
    const [inspecting, changing]: [string[], string[]] = [[], []];
    let waiting = 0;
    const ended: Partial<Record<HostStatus, number>> = {};
    for (const { name, state, outcome } of this.#members) {
      if (outcome !== null) ended[outcome.status] = (ended[outcome.status] ?? 0) + 1;
      else if (state === 'inspecting') inspecting.push(name);
      else if (state === 'in-progress') changing.push(name);
      else if (state === 'queued') waiting++;
    }
    this.#ports.progress?.({
      total: this.#members.length,
      looking: inspecting,
      waiting,
      changing,
      ended,
      ...(this.#rules.dryRun ? {} : { isCanary, maxConcurrent }),
    });
  }
}

/** Reports equal warnings once. */
function warningOnce(reporter: Reporter): Reporter {
  const reported = new Set<string>();
  return {
    ...reporter,
    report: (event) => {
      const key = JSON.stringify([event.phase, event.code, event.message]);
      if (event.level === 'warning' && reported.size === reported.add(key).size) return;
      reporter.report(event);
    },
  };
}

const NO_ROUTE = /^HOST_(UNREACHABLE|TIMEOUT|CONNECTION_LOST|AUTH_FAILED|KEY_[A-Z]+)$/;

/** Whether a host failed before it was reached. */
function isUnreachable({ code }: Pick<Problem, 'code'>): boolean {
  return NO_ROUTE.test(code);
}

function plannedOutcome(planned: WorkflowResult, clashes: readonly Problem[]): Omit<HostOutcome, 'host' | 'node'> {
  const refusals = clashes.length > 0 ? [...planned.refusals.filter(isOther(clashes)), ...clashes] : planned.refusals;
  const error = refusals.length > 0 ? new AppError(refusals, { exitCode: 3 }) : null;
  const status = error ? 'refused' : hasChangesOrDeferred(planned.host) ? 'pending' : 'unchanged';
  return { status, plan: { ...planned, refusals }, error };
}

/** Filters out problems that were already reported when the host was planned. */
function isOther(problems: readonly Problem[]): (problem: Problem) => boolean {
  return ({ code, message }) => !problems.some((one) => one.code === code && one.message === message);
}
