import type { Clock } from '../base/clock.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { EtcdCluster } from '../kube/etcd-cluster.ts';
import type { CachedHost } from './cached-host.ts';
import type { Host } from './host.ts';
import type { WriterOptions } from './locked-host.ts';
import type { OwnClaim } from './own-claim.ts';
import type { Change, HostChange, PhasePlan } from './plan/change.ts';

/** What every phase may use. `cluster` is null when there is no API server to talk to. */
export interface PhaseContext {
  readonly host: Host;
  /** The facts of this run, where they are kept from one phase to the next: `host` is then the same object. */
  readonly facts?: CachedHost;
  readonly cluster: Cluster | null;
  /** The etcd of the cluster, for phases that change its members. Absent or null: not reached. */
  readonly etcd?: EtcdCluster | null;
  readonly clock: Clock;
  readonly reporter: Reporter;
  readonly signal?: AbortSignal;
  /** How hosts are written to. Absent: nobody else is kept off, and changes are final at once (files that are staged into a directory). */
  readonly writing?: WriterOptions;
  /** The Node that the host stands for in a run over several. Absent: it is the only host. */
  readonly claim?: OwnClaim;
}

/** The context of a workflow that needs an API server. */
export interface ClusterContext extends PhaseContext {
  readonly cluster: Cluster;
}

/**
 * Lets the preparation of a workflow say by its type that it needs an API server.
 * @returns `prepare` of a workflow; it rejects a context without one, which the callers of such a workflow never make
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

/** What makes the changes of a phase ones that have to be confirmed. */
export interface PhaseCommit<Input, Facts> {
  /** What the phases below it write: kept and put back with its own files. */
  readonly paths: readonly string[];
  /**
   * Looks, before anything is changed, at what the change may take away.
   * @returns waits until that is there again, and shows the change
   */
  prepare(context: PhaseContext, input: Input, facts: Facts, changes: readonly HostChange[]): Promise<ProveCommit>;
}

/**
 * @param deadline Unix milliseconds
 * @param checkOpen asks the host whether the change still waits for its confirmation
 * @returns what was not proven although the change may stay, as a sentence without a full stop; undefined: all was
 * @throws AppError when there is no proof until then, or what `checkOpen` throws
 */
export type ProveCommit = (deadline: number, checkOpen: () => Promise<void>) => Promise<string | undefined>;

/** A step of a workflow: observe only reads, plan is pure, applying is the engine's, verify proves that it worked. */
export interface PhaseDefinition<Input, Facts> {
  /** kubeadm's name where kubeadm has the phase; `parent/child` below one. */
  readonly name: string;
  readonly short: string;
  /** Waits for what the phase needs from the ones before it; only when phases are applied, never when they are planned. */
  ready?(context: PhaseContext, input: Input): Promise<void>;
  /** The changes are made even when `ready` or a phase before it fails: they tidy up. The failure is thrown afterwards. */
  readonly tidiesUp?: boolean;
  /**
   * The phase writes files, whose contents were decided before any phase ran, and nothing waits for them in the phase. Neighbours of this kind are looked at with
   * one program and written with another: on a slow host each program costs seconds.
   */
  readonly writesFilesOnly?: boolean;
  /** The API server with other credentials than the workflow's, or one that was not there when it began; null: the workflow's. Asked before each look. */
  cluster?(input: Input, context: PhaseContext): Cluster | null | Promise<Cluster | null>;
  observe(context: PhaseContext, input: Input): Promise<Facts>;
  plan(facts: Facts, input: Input): PhasePlan;
  /** Throws when what was applied does not work. Also called when there was nothing to do. */
  verify?(context: PhaseContext, input: Input, facts: Facts, applied: readonly Change[]): Promise<void>;
  /** What takes a failed verification back, or null when there is nothing good to go back to. */
  undo?(facts: Facts, applied: readonly HostChange[]): readonly HostChange[] | null;
  /** Proves that the way back worked. Not stopped by the interruption that may be the reason for it. */
  verifyUndone?(context: PhaseContext, input: Input, facts: Facts): Promise<void>;
  /** Absent: its changes are final at once. */
  readonly commit?: PhaseCommit<Input, Facts>;
}

/** One look at a phase: its plan, and what can be done with it. The facts stay inside. */
export interface ObservedPhase {
  readonly plan: PhasePlan;
  verify(applied: readonly Change[]): Promise<void>;
  undo(applied: readonly HostChange[]): readonly HostChange[] | null;
  /** False: nothing proves that the way back worked. */
  readonly provesUndone: boolean;
  verifyUndone(): Promise<void>;
  readonly commit: { readonly paths: readonly string[]; prepare(changes: readonly HostChange[]): Promise<ProveCommit> } | null;
}

/** A phase without the type of its facts, so that phases of a workflow fit in one list. */
export interface Phase<Input> {
  readonly name: string;
  readonly short: string;
  readonly tidiesUp: boolean;
  readonly writesFilesOnly: boolean;
  /** The context the phase works in: its cluster may be its own. */
  contextFor(context: PhaseContext, input: Input): Promise<PhaseContext>;
  ready(context: PhaseContext, input: Input): Promise<void>;
  inspect(context: PhaseContext, input: Input): Promise<ObservedPhase>;
}

/** Makes a phase of its definition: the facts of each look stay between its observe, plan, verify and undo. */
export function definePhase<Input, Facts>(definition: PhaseDefinition<Input, Facts>): Phase<Input> {
  return {
    name: definition.name,
    short: definition.short,
    tidiesUp: definition.tidiesUp ?? false,
    writesFilesOnly: definition.writesFilesOnly ?? false,
    contextFor: async (context, input) => {
      const cluster = (await definition.cluster?.(input, context)) ?? null;
      return cluster === null ? context : { ...context, cluster };
    },
    ready: async (context, input) => definition.ready?.(context, input),
    inspect: async (context, input) => {
      const facts = await definition.observe(context, input);
      return {
        plan: definition.plan(facts, input),
        verify: async (applied) => definition.verify?.(context, input, facts, applied),
        undo: (applied) => definition.undo?.(facts, applied) ?? null,
        provesUndone: definition.verifyUndone !== undefined,
        verifyUndone: async () => {
          const { signal: _, ...uninterrupted } = context;
          await definition.verifyUndone?.(uninterrupted, input, facts);
        },
        commit:
          definition.commit === undefined
            ? null
            : {
                paths: definition.commit.paths,
                prepare: async (changes) => (definition.commit as PhaseCommit<Input, Facts>).prepare(context, input, facts, changes),
              },
      };
    },
  };
}
