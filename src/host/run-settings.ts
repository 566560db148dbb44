import type { Impact } from './plan/impact.ts';

/**
 * How a command runs on its hosts. Requests, workflows and phases contain this record: an option that is
 * added here reaches each host.
 */
export interface RunSettings {
  readonly dryRun: boolean;
  /** Phases to leave out, by name or by the name of their parent, which leaves out all its children. */
  readonly skipPhases: readonly string[];
  /** Run only this phase, or the children of this parent. Undefined: all phases. */
  readonly onlyPhase?: string | undefined;
  /** The most disruptive impact on a running kubelet that is applied. Undefined: every impact; the options of commands set a default. */
  readonly allow?: Impact | undefined;
  /**
   * How nodes are drained for a change of class drain or unsafe. `acceptsLoss`: a node that may not be drained is changed
   * with its pods. `settleMs`: time limit for replacements of evicted pods to be Ready; absent: not waited for. `isRequired`: without
   * the right to evict pods the node is not changed; default: it is changed with a warning. Undefined: the run drains no node.
   */
  readonly drain?:
    | {
        readonly isAllowed: boolean;
        readonly isForced: boolean;
        readonly timeoutMs: number;
        readonly settleMs?: number;
        readonly acceptsLoss?: boolean;
        readonly isRequired?: boolean;
      }
    | undefined;
  /** For a change that would end pods of the node; `ignore`: the plan is never applied. */
  readonly podLoss: 'refuse' | 'warn' | 'ignore';
  /** Preflight checks whose errors are shown as warnings; `all`: every check. */
  readonly ignorePreflightErrors: readonly string[];
}

export const DEFAULT_RUN: RunSettings = { dryRun: false, skipPhases: [], podLoss: 'refuse', ignorePreflightErrors: [] };

/** The members that documents of kubeadm have. */
export const DOCUMENT_SETTINGS = ['dryRun', 'skipPhases', 'ignorePreflightErrors'] as const;

/** The settings of a run, together with those of a document of kubeadm. */
export function withDocument(
  run: RunSettings,
  document: { readonly [K in (typeof DOCUMENT_SETTINGS)[number]]?: RunSettings[K] | undefined } = {},
): RunSettings {
  return {
    ...run,
    dryRun: run.dryRun || document.dryRun === true,
    skipPhases: [...run.skipPhases, ...(document.skipPhases ?? [])],
    ignorePreflightErrors: [...run.ignorePreflightErrors, ...(document.ignorePreflightErrors ?? [])],
  };
}

/** The request of a run that only plans. */
export function toPlan<R extends { readonly run: RunSettings }>(request: R): R {
  return { ...request, run: { ...request.run, dryRun: true } };
}

/** Whether the name that a user gave selects a phase: its own name, or the name of its parent. */
export function isSelectedBy(phase: string, name: string): boolean {
  return phase === name || phase.startsWith(`${name}/`);
}

/** Whether a run is of one phase alone. With names: of one of these, or of one below them. */
export function isSinglePhase({ onlyPhase }: Pick<RunSettings, 'onlyPhase'>, names?: readonly string[]): boolean {
  return onlyPhase !== undefined && (names?.some((name) => isSelectedBy(onlyPhase, name)) ?? true);
}
