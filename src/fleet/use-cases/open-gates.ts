import type { RunTime } from '../../base/clock.ts';
import { usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ClusterConnections, SecretSource } from '../../kubeadm/ports.ts';
import { type BatchGates, batchGates } from '../../maintenance/gates/batch-gates.ts';
import { describeGate, type PreparedRollout } from '../../maintenance/gates/rollout-settings.ts';
import { runGate } from '../../maintenance/gates/run-gate.ts';
import { describeWindow } from '../../maintenance/gates/windows.ts';
import type { LocalCommands } from '../ports.ts';
import { readRollout } from './load-fleet.ts';

/** `--gates` and `--ignore-window`. */
export interface GatesRequest {
  /** Undefined: the gates and windows of the fleet file or the saved plan, if the command reads one. */
  readonly file?: string | undefined;
  readonly ignoresWindow: boolean;
}

export type GatePorts = RunTime & LocalFiles & LocalCommands & Pick<ClusterConnections, 'web'> & Pick<SecretSource, 'newId'>;

/**
 * The gates and windows of a run: those of `--gates`, otherwise those that are declared.
 * @param given.reverts the command can undo the changes of its run
 * @throws AppError with exit code 2 for an invalid file, and for `onFailure: revert` that the command does not support
 */
export async function chooseRollout(
  services: LocalFiles,
  { file, ignoresWindow }: GatesRequest = { ignoresWindow: false },
  { declared, reverts }: { readonly declared: PreparedRollout | null; readonly reverts: boolean },
): Promise<(PreparedRollout & { readonly ignoresWindow: boolean }) | null> {
  const rollout = file === undefined ? declared : await readRollout(services, file);
  const reverting = rollout?.gates.find(({ onFailure }) => onFailure === 'revert');
  if (reverting !== undefined && !reverts)
    throw usageError(
      `gate ${reverting.name}: onFailure: revert is supported only by dynamic assign, dynamic reset and dynamic undo`,
      'Set onFailure: stop. After a failed gate, kubeletadm undo HOST... restores the files of changed hosts',
    );
  const isEmpty = rollout === null || rollout.gates.length + (rollout.windows?.length ?? 0) === 0;
  return isEmpty ? null : { ...rollout, ignoresWindow };
}

/**
 * Whether gates run although no host is changed: an earlier run may have ended before they passed.
 * @param done hosts that had the change before
 */
export function hasGatesFor(rollout: Awaited<ReturnType<typeof chooseRollout>>, done: readonly string[]): boolean {
  return rollout !== null && rollout.gates.length > 0 && done.length > 0;
}

/**
 * Opens the gates and windows of a run, and reports them.
 * @param run.rollout null: the run has none
 * @param run.done hosts that had the change before and are not part of the run
 * @throws AppError USAGE (exit code 2) for a Job without a cluster
 */
export function openGates(
  services: GatePorts,
  {
    rollout,
    cluster,
    reporter,
    done = [],
  }: {
    readonly rollout: Awaited<ReturnType<typeof chooseRollout>>;
    readonly cluster: Cluster | null;
    readonly reporter: Reporter;
    readonly done?: readonly string[];
  },
): BatchGates | undefined {
  if (rollout === null) return undefined;
  const { gates, windows = [] } = rollout;
  const job = gates.find((gate) => gate.job !== undefined);
  if (job !== undefined && cluster === null)
    throw usageError(`gate ${job.name} creates a Job, but the run has no connection to the cluster`, 'Pass --kubeconfig FILE');
  const parts = [
    ...gates.map((gate) => `gate ${describeGate(gate)}`),
    ...(windows.length === 0 ? [] : [`maintenance windows ${windows.map(describeWindow).join('; ')}`]),
  ];
  reporter.report({ level: 'info', code: 'ROLLOUT_GATES', message: `between batches: ${parts.join(', ')}` });
  return batchGates({ ...services, reporter, run: (gate, batch) => runGate({ ...services, cluster }, gate, batch) }, { ...rollout, done });
}
