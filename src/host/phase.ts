import type { Clock } from '../base/clock.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { EtcdCluster } from '../kube/etcd-cluster.ts';
import type { Host } from './access/host.ts';
import type { ParseText } from './facts/parse-text.ts';
import type { NodeClaimRegistration } from './node-claim.ts';
import type { Change, HostChange, PhasePlan } from './plan/change.ts';
import type { RunHost, WriterOptions } from './run-host.ts';

/** The context of all phases. `cluster` is null without an API server. */
export interface PhaseContext {
  readonly host: Host;
  /** The host of this run, with its cached facts and its lock; `host` is then the same object. */
  readonly run?: RunHost;
  readonly cluster: Cluster | null;
  /** The etcd of the cluster, for phases that change its members. Absent or null: unreachable. */
  readonly etcd?: EtcdCluster | null;
  readonly clock: Clock;
  readonly reporter: Reporter;
  readonly signal?: AbortSignal;
  /** Absent: no lock, and changes are final immediately (files staged into a directory). */
  readonly writing?: WriterOptions;
  /** Parses texts of the hosts of a run. Absent: each text is parsed. */
  readonly parseText?: ParseText | undefined;
  /** The Node that the host claims in a run over several hosts. Absent: single host. */
  readonly claim?: NodeClaimRegistration;
}

export interface ClusterContext extends PhaseContext {
  readonly cluster: Cluster;
}

/**
 * Declares in the type of `prepare` that a workflow requires an API server; callers never pass a context
 * without one.
 */
export function withCluster<Options, Result>(
  prepare: (context: ClusterContext, options: Options) => Promise<Result>,
): (context: PhaseContext, options: Options) => Promise<Result> {
  return async (context, options) => {
    const { cluster } = context;
    if (cluster === null) throw new Error('a workflow that needs an API server was started without one');
    return prepare({ ...context, cluster }, options);
  };
}

/**
 * @param deadline Unix milliseconds
 * @param checkOpen checks on the host whether the change still waits for its confirmation
 * @returns the part that could not be verified although the change may stay, as a sentence without a full
 *   stop; undefined: all was verified
 * @throws AppError when the verification fails until the deadline, or errors of `checkOpen`
 */
export type VerifyCommit = (deadline: number, checkOpen: () => Promise<void>) => Promise<string | undefined>;

/**
 * Waits until a verified state has lasted for a while; throws if it has not. The engine calls it as late as it can, so
 * that the time passes during the waits of later phases: before the change is confirmed, before a phase that would have to
 * be rolled back is left, otherwise at the end of the run.
 */
export type Lasts = () => Promise<void>;

/** A step of a workflow: `observe` only reads, `plan` is pure, `verify` checks the result of its changes. */
export interface PhaseDefinition<Input, Facts> {
  /** kubeadm's name where kubeadm has the phase; child phases are `parent/child`. */
  readonly name: string;
  readonly short: string;
  /** Waits for results of earlier phases; called only when phases are applied, not when they are planned. */
  ready?(context: PhaseContext, input: Input): Promise<void>;
  /** Cleanup: its changes are made even when `ready` or an earlier phase fails. The failure is thrown afterwards. */
  readonly runsAfterFailure?: boolean;
  /**
   * It only writes files whose contents were decided before. Adjacent phases of this kind are observed with
   * one program and written with another: on a slow host each program takes seconds.
   */
  readonly writesFilesOnly?: boolean;
  /** Also when the phase is run alone, the kubelet must accept its configuration. */
  readonly changesKubelet?: boolean;
  /** The phase runs without the address at which the host advertises its API server. */
  readonly needsNoAddress?: boolean;
  /**
   * The API server with other credentials, or one that did not exist when the workflow began; null: the
   * workflow's. Called before each observation.
   */
  cluster?(input: Input, context: PhaseContext): Cluster | null | Promise<Cluster | null>;
  observe(context: PhaseContext, input: Input): Promise<Facts>;
  plan(facts: Facts, input: Input): PhasePlan;
  /**
   * Throws when the applied changes do not work. Also called without changes. Returns undefined: the verified
   * state need not last.
   */
  verify?(context: PhaseContext, input: Input, facts: Facts, applied: readonly Change[]): Promise<Lasts | undefined> | Promise<void>;
  /** The changes that roll back a failed verification; null without a previous working state. */
  undo?(facts: Facts, applied: readonly HostChange[]): readonly HostChange[] | null;
  /**
   * Verifies the rollback, also after an interruption. Returns what else was rolled back, as a sentence
   * without a full stop.
   */
  verifyUndone?(context: PhaseContext, input: Input, facts: Facts): Promise<void> | Promise<string | undefined>;
  /** The state that `verifyUndone` verifies, as a clause. Default: the kubelet is healthy again. */
  readonly verifiedState?: string;
  /** Makes its changes require a confirmation. Absent: they are final immediately. */
  readonly commit?: {
    /** The files of its child phases: saved and restored with its own files. */
    readonly paths: readonly string[];
    /** Records the state that the change may break. Returns what waits until it is restored and verifies the change. */
    prepare(context: PhaseContext, input: Input, facts: Facts, changes: readonly HostChange[]): Promise<VerifyCommit>;
  };
}

/** One observation of a phase: its plan and operations. The facts are kept inside. */
export interface ObservedPhase {
  readonly plan: PhasePlan;
  verify(applied: readonly Change[]): Promise<Lasts | undefined>;
  undo(applied: readonly HostChange[]): readonly HostChange[] | null;
  /** The state that `verifyUndone` verifies, as a clause; null: the rollback cannot be verified. */
  readonly verifiedState: string | null;
  /** @returns what else was rolled back, as a sentence without a full stop; undefined: nothing */
  verifyUndone(): Promise<string | undefined>;
  readonly commit: { readonly paths: readonly string[]; prepare(changes: readonly HostChange[]): Promise<VerifyCommit> } | null;
}

/** A phase that makes no changes in this run, and has nothing to verify. */
export function planOnly(plan: PhasePlan): ObservedPhase {
  return {
    plan,
    verify: async () => undefined,
    undo: () => null,
    verifiedState: null,
    verifyUndone: async () => undefined,
    commit: null,
  };
}

/** A phase without its facts type, so that the phases of a workflow fit in one list. */
export interface Phase<Input> {
  readonly name: string;
  readonly short: string;
  readonly runsAfterFailure: boolean;
  readonly writesFilesOnly: boolean;
  readonly changesKubelet: boolean;
  readonly needsNoAddress: boolean;
  /** The context of the phase, possibly with its own cluster. */
  contextFor(context: PhaseContext, input: Input): Promise<PhaseContext>;
  ready(context: PhaseContext, input: Input): Promise<void>;
  inspect(context: PhaseContext, input: Input): Promise<ObservedPhase>;
}

export interface DefinedPhase<Input> extends Phase<Input> {
  /** The phase as part of a workflow, whose input contains the phase's input. */
  select<Whole>(inputOf: (whole: Whole) => Input): DefinedPhase<Whole>;
}

/** Creates a phase from its definition. The facts of an observation are passed to plan, verify and undo. */
export function definePhase<Input, Facts>(definition: PhaseDefinition<Input, Facts>): DefinedPhase<Input> {
  return phaseWith(definition, (input: Input) => input);
}

function phaseWith<Whole, Input, Facts>(definition: PhaseDefinition<Input, Facts>, inputOf: (whole: Whole) => Input): DefinedPhase<Whole> {
  const { commit } = definition;
  return {
    select: (wholeOf) => phaseWith(definition, (outer) => inputOf(wholeOf(outer))),
    name: definition.name,
    short: definition.short,
    runsAfterFailure: definition.runsAfterFailure ?? false,
    writesFilesOnly: definition.writesFilesOnly ?? false,
    changesKubelet: definition.changesKubelet ?? false,
    needsNoAddress: definition.needsNoAddress ?? false,
    contextFor: async (context, whole) => {
      const cluster = (await definition.cluster?.(inputOf(whole), context)) ?? null;
      return cluster === null ? context : { ...context, cluster };
    },
    ready: async (context, whole) => definition.ready?.(context, inputOf(whole)),
    inspect: async (context, whole) => {
      const input = inputOf(whole);
      const facts = await definition.observe(context, input);
      return {
        plan: definition.plan(facts, input),
        verify: async (applied) => (await definition.verify?.(context, input, facts, applied)) ?? undefined,
        undo: (applied) => definition.undo?.(facts, applied) ?? null,
        verifiedState: definition.verifyUndone === undefined ? null : (definition.verifiedState ?? 'the kubelet is healthy again'),
        verifyUndone: async () => {
          const { signal: _, ...uninterrupted } = context;
          const others = await definition.verifyUndone?.(uninterrupted, input, facts);
          return typeof others === 'string' ? others : undefined;
        },
        commit: commit === undefined ? null : { paths: commit.paths, prepare: (changes) => commit.prepare(context, input, facts, changes) },
      };
    },
  };
}
