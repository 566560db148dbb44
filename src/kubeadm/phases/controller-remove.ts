import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { mustBeStopped, unitState } from '../../host/facts/unit.ts';
import { definePhase } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import {
  CONTROLLER_CONF,
  CONTROLLER_DIRECTORY,
  CONTROLLER_SERVICE,
  CONTROLLER_UNIT,
  CONTROLLER_WANTS_LINK,
} from '../control-plane/controller-unit.ts';

/** The unit is removed last, so that an interrupted run finds it. */
const FILES = [CONTROLLER_CONF, CONTROLLER_WANTS_LINK, CONTROLLER_UNIT];
const REASON = 'the controller is removed';

/** What remains of the controller of rollouts on a control plane. Its private key is not read. */
export const controllerOnHost = combineFacts({
  unit: unitState(CONTROLLER_SERVICE),
  files: fileFacts(FILES, { content: false }),
  programs: defineFact({ names: { kind: 'list', path: CONTROLLER_DIRECTORY } }, ({ names }) => names),
});

/** Stops the controller of rollouts on a control plane, and removes its program, its unit and its kubeconfig. */
export const removeController = definePhase<
  {
    /** Its rights in the cluster remain. */
    readonly keepsRights: boolean;
  },
  ReturnType<typeof controllerOnHost.parse>
>({
  name: 'remove-controller',
  short: 'Stop and remove the controller of rollouts on this control plane',
  observe: ({ host, signal }) => observe(host, controllerOnHost, signal),
  plan: ({ unit, files, programs }, { keepsRights }) => {
    const found = FILES.filter((path) => files.get(path) != null);
    const changes: readonly HostChange[] = [
      ...(mustBeStopped(unit) ? [{ kind: 'stop-unit', unit: CONTROLLER_SERVICE, reason: 'its files are removed' } as const] : []),
      ...(programs === null ? [] : [{ kind: 'remove-directory', path: CONTROLLER_DIRECTORY, reason: REASON } as const]),
      ...found.map((path) => ({ kind: 'remove-file', path, before: null, reason: REASON }) as const),
      ...(found.includes(CONTROLLER_UNIT) || unit?.needsReload === true
        ? [{ kind: 'daemon-reload', reason: 'the unit files change' } as const]
        : []),
    ];
    if (changes.length === 0) return { changes, noop: 'the controller is not installed' };
    return keepsRights ? { changes, warnings: [RIGHTS_STAY] } : { changes };
  },
});

const RIGHTS_STAY = {
  code: 'CONTROLLER_RIGHTS_STAY',
  message:
    'the user of the controller on this host keeps its rights in the cluster. Delete them: kubeletadm controller uninstall --host HOST --node-name NAME',
};
