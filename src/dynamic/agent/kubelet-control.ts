import { AppError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { unitState } from '../../host/facts/unit.ts';
import type { Operation } from '../../host/operation/operation.ts';
import { type KubeletCommandLine, kubeletCommandLine } from '../../kubelet/facts/kubelet-process.ts';
import { observeHealth } from '../../kubelet/health/observe.ts';
import { hashInPath, PAYLOAD_FILE } from '../../kubelet/node-agent/layout.ts';
import type { CheckpointStore } from './checkpoint-store.ts';
import { type managerStateSwitches, NO_STATE_SWITCH } from './manager-state-switch.ts';

const UNIT = 'kubelet';

/** Observes the kubelet of a host, and the payload that its process runs. */
export async function inspectKubelet(host: Host, options: Parameters<typeof observeHealth>[1]) {
  const { commandLine, ...seen } = await observeHealth(host, options);
  return { ...seen, runs: runsOf(commandLine) };
}

/** The payload of the kubelet process; null: the local configuration, or no process. */
export async function runningPayload(host: Host): Promise<string | null> {
  return payloadOn(await observe(host, kubeletCommandLine));
}

function payloadOn(commandLine: KubeletCommandLine | null): string | null {
  return commandLine === null ? null : hashInPath(commandLine.argv.join('\n'));
}

/** The payload on a command line; `local`: another configuration. */
function runsOf(commandLine: KubeletCommandLine | null): string | null {
  return commandLine === null ? null : (payloadOn(commandLine) ?? 'local');
}

export interface SwitchPorts {
  readonly host: Host;
  readonly store: CheckpointStore;
  /** Null: the agent changes no state files of managers. */
  readonly states: ReturnType<typeof managerStateSwitches> | null;
}

/** The content of the checkpoint does not match its name. */
export class CheckpointDamagedError extends AppError {}

/**
 * Switches the kubelet to a checkpoint or to the local configuration: sets the pointer, then restarts the
 * kubelet; each only if needed. An interrupted call can be repeated, because the command line of the kubelet
 * shows its configuration. State files of managers that contradict the configuration are replaced while the
 * kubelet is stopped.
 * @returns the restart counter right after the switch, and the configuration of the process: the hash of a payload, or
 *   `local`; null: unknown yet
 * @throws CheckpointDamagedError, or the errors of `host.perform`
 */
export async function switchKubelet({ host, store, states }: SwitchPorts, to: string | null) {
  if (to !== null && (await store.readCheckpoint(to)) === null) {
    const message = `the checkpoint file ${to.slice(0, 12)}/${PAYLOAD_FILE} is missing, truncated or modified`;
    throw new CheckpointDamagedError({ host: host.name, code: 'CHECKPOINT_DAMAGED', message });
  }
  const [pointer, prepared] = [await store.readPointer(), await store.readRollbackPointer()];
  const commandLine = await observe(host, kubeletCommandLine);
  const runs = payloadOn(commandLine);
  const isPointed = pointer === to;
  const point = isPointed ? [] : store.pointTo(to, prepared);
  const isStopped = commandLine === null && isPointed && states !== null && (await states.isStopped());
  const needsRestart = commandLine === null ? !isPointed || isStopped : runs !== to;
  const restart: readonly Operation[] = [
    // Earlier failed starts belong to another configuration.
    { kind: 'run', argv: ['systemctl', 'reset-failed', UNIT], okExit: [0, 1, 5] },
    { kind: 'run', argv: ['systemctl', 'restart', UNIT], what: `restart of ${UNIT}` },
  ];
  const { save, replace, finish } = needsRestart && states !== null ? await states.plan(pointer, to) : NO_STATE_SWITCH;
  // The managers of a running kubelet write their state whenever a container starts or ends.
  const stop: readonly Operation[] = replace.length === 0 ? [] : [{ kind: 'stop-unit', unit: UNIT }];
  try {
    await host.perform([...save, ...stop, ...replace, ...point, ...(needsRestart ? restart : []), ...finish]);
  } catch (error) {
    // A failed switch must not leave the kubelet stopped. The error of the switch is the one to report.
    if (stop.length > 0) await host.perform([{ kind: 'start-unit', unit: UNIT }]).catch(() => undefined);
    throw error;
  }
  if (!needsRestart && commandLine !== null) await states?.forget(to);
  const after = await observe(host, combineFacts({ unit: unitState(UNIT), commandLine: kubeletCommandLine }));
  // The payload was checked before this restart; an older process must be inspected.
  const isKnown = needsRestart || to === null;
  return { restarts: after.unit?.restarts ?? null, wasRestarted: needsRestart, runs: isKnown ? runsOf(after.commandLine) : null };
}
