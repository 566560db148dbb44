import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { type DesiredFile, diffFile } from '../../host/plan/diff-file.ts';
import { answerOf, waitForUnit } from '../../host/unit-ready.ts';
import {
  CONTROLLER_ADDRESS,
  CONTROLLER_CONF,
  CONTROLLER_SERVICE,
  CONTROLLER_UNIT,
  CONTROLLER_WANTS_LINK,
} from '../control-plane/controller-unit.ts';
import { undoUnits } from './change-units.ts';

export interface RunControllerInput {
  /** Its unit; null: a host without a running controller is not changed. */
  readonly unit: DesiredFile | null;
  /** An earlier phase writes a kubeconfig with another certificate. */
  readonly isRenewed: boolean;
}

interface Facts {
  readonly unit: UnitState | null;
  readonly file: FileFact | null;
  readonly kubeconfig: FileFact | null;
}

/**
 * Creates a phase that starts the controller of a control plane, or restarts it if its unit or its kubeconfig was written after
 * its start: systemd passes it a copy of the kubeconfig. Verifies that it reaches the API server.
 */
export function runController(name: string, short: string) {
  return definePhase<RunControllerInput, Facts>({
    name,
    short,
    observe: async ({ host, signal }) => {
      const facts = combineFacts({
        unit: unitState(CONTROLLER_SERVICE),
        files: fileFacts([CONTROLLER_UNIT]),
        kubeconfigs: fileFacts([CONTROLLER_CONF], { content: false }),
      });
      const { unit, files, kubeconfigs } = await observe(host, facts, signal);
      return { unit, file: files.get(CONTROLLER_UNIT) ?? null, kubeconfig: kubeconfigs.get(CONTROLLER_CONF) ?? null };
    },
    plan: (facts, input) => {
      const changes = changesOf(facts, input);
      if (changes.length > 0) return { changes };
      return input.unit === null ? { changes } : { changes, noop: 'the controller runs' };
    },
    verify: async (context, input, _, applied) => {
      if (input.unit !== null || applied.length > 0) await verifyController(context, name);
    },
    undo: ({ unit }, applied) => undoUnits({ running: unit, stopped: null }, applied, [CONTROLLER_WANTS_LINK]),
  });
}

function changesOf({ unit, file, kubeconfig }: Facts, { unit: desired, isRenewed }: RunControllerInput): readonly HostChange[] {
  const isActive = unit?.activeState === 'active';
  if (desired === null && !isActive) return [];
  const write = desired === null ? null : diffFile(file, desired);
  const needsReload = write !== null || unit?.needsReload === true || unit?.loadState === 'not-found';
  const isOld = isRenewed || (unit?.startedAt ?? Number.POSITIVE_INFINITY) < (kubeconfig?.modifiedAt ?? 0);
  const reason = !isActive ? 'not running' : needsReload ? 'its unit changed' : isOld ? 'its certificate was renewed' : null;
  const named = { unit: CONTROLLER_SERVICE };
  return [
    ...(write === null ? [] : [write]),
    ...(needsReload ? [{ kind: 'daemon-reload', reason: 'the unit file changes' } as const] : []),
    ...(desired !== null && unit?.unitFileState !== 'enabled'
      ? [{ kind: 'enable-unit', ...named, reason: 'the unit is not enabled at boot' } as const]
      : []),
    ...(reason === null ? [] : [{ kind: 'restart-unit', ...named, reason } as const]),
  ];
}

/** Ready: the API server accepts its certificate, and its rights to the Lease. */
async function verifyController(context: PhaseContext, phase: string): Promise<void> {
  const { host, reporter, signal } = context;
  await waitForUnit(context, phase, { unit: CONTROLLER_SERVICE, readyUrl: `http://${CONTROLLER_ADDRESS}/readyz` });
  const answer = await observe(host, answerOf(`http://${CONTROLLER_ADDRESS}/metrics`), signal);
  const leads = answer !== null && 'body' in answer && /^kubeletadm_controller_leader 1$/m.test(answer.body);
  const message = `the controller is ready${leads ? ', and the leader' : ''}`;
  reporter.report({ level: 'info', code: 'CONTROLLER_READY', host: host.name, phase, message });
}
