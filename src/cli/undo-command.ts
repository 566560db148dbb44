import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { UndoRequest } from '../fleet/use-cases/open-undo.ts';
import { addAllowOptions, IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { isSelection, namedHostsOf } from './fleet-options.ts';
import { addSections } from './help-layout.ts';
import { flagList } from './option-values.ts';
import {
  addFleetFileOption,
  addFleetSelectionOptions,
  addHostOption,
  addKubeconfigOptions,
  addPlanOptions,
  addSshOptions,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import { connectionRequest, fleetRequest, kubeconfigRequest, kubeletRunRequest, planRequest } from './request-parts.ts';
import { addHostRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addConfirmOptions, addReasonOption, undoIdOf, writingRequest } from './writing-options.ts';

/** `undo HOST...`. */
export function defineUndo(undo: Command, on: On): void {
  undo
    .argument('[host...]', 'names of hosts or Nodes in the fleet file, or [user@]address[:port]; localhost: the local host')
    .option(
      '--to <id>',
      "run after which the hosts had the desired state (an id of fleet history), or 'oldest' (default: before the last change)",
    )
    .option('-y, --yes', 'do not ask before changing the hosts');
  addHostOption(undo, 'same as a host argument (repeatable)');
  addPlanOptions(undo);
  addFleetSelectionOptions(addFleetFileOption(undo));
  addHostRolloutOptions(undo, '1');
  addKubeconfigOptions(undo, 'kubeconfig to read the cluster configuration with (default: /etc/kubernetes/kubelet.conf on the host)');
  addReasonOption(addConfirmOptions(addSshOptions(addAllowOptions(undo))));
  on(undo, undoRequest, runUndo);
  addSections(undo, { notes: NOTES, examples: EXAMPLES });
}

function undoRequest(args: readonly string[], options: CommandOptions): WithPlan<UndoRequest> & { readonly yes: boolean } {
  const fleet = fleetRequest(options);
  const hosts = namedHostsOf([...args, ...flagList(options, 'host')], options);
  if (hosts.length === 0 && !isSelection(fleet.selection))
    throw usageError('undo needs a host', 'Name the hosts, or select hosts of the fleet file with --limit, --group or --selector');
  return {
    hosts: { ...fleet, hosts, connection: connectionRequest(options) },
    to: undoIdOf(options),
    cluster: kubeconfigRequest(options),
    plan: planRequest(options),
    run: kubeletRunRequest(options),
    rules: rulesRequest(options),
    writing: writingRequest(options, 'undo'),
    yes: options.yes === true,
  };
}

const NOTES = `undo restores the files that the last change of kubeletadm wrote on each host: the kubelet configuration, its flags, the settings for later upgrades, and files of the fleet file. The plan, the question, the verification and the rollback are those of upgrade node. A host whose files were changed since is refused, and so is a change that undo cannot revert: joining, resetting, certificates, programs and the version of a control plane. undo is recorded as a change: a second undo restores the state before the first.\n\n${IMPACT_NOTES}`;

const EXAMPLES = `  kubeletadm undo worker-7 --dry-run
  # back to the state after a run, whose id is in the column RUN
  kubeletadm fleet history worker-7
  kubeletadm undo worker-7 worker-8 --to 3f2a9c10 --reason "OPS-1234: pods were evicted"`;

/** `undo HOST...`. */
async function runUndo(services: Services, request: WithPlan<UndoRequest> & { readonly yes: boolean }): Promise<ExitCode> {
  const [{ openUndo }, { runOnHosts }] = await Promise.all([import('../fleet/use-cases/open-undo.ts'), import('./run-on-hosts.ts')]);
  return runOnHosts(services, request, {
    title: 'undo',
    approval: request.yes ? undefined : { question: 'Apply these changes?' },
    open: (scope) => openUndo(services, request, scope),
  });
}
