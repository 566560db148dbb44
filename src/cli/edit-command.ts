import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import { ALLOW_POD_LOSS, allowText, IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { readRolloutOptions } from './dynamic-rollout-options.ts';
import type { EditRequest } from './edit.ts';
import { addRunOptions, fleetRunRequest, isSelection } from './fleet-options.ts';
import { addSections } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { TAKE_OVER } from './options.ts';
import { DIFF_OF_PLAN, diffOption } from './output-options.ts';
import { kubeconfigRequest, nodeArgument, planRequest, runRequest } from './request-parts.ts';
import { addHostRolloutOptions } from './rollout-options.ts';
import { addConfirmOptions, addReasonOption, readReason } from './writing-options.ts';

/** `edit [fleet|HOST|NODE]`. */
export function defineEdit(edit: Command, on: On): void {
  edit
    .argument(
      '[fleet|host|node]',
      'fleet: the whole fleet file (default); a host of the fleet file: its entry; a Node, also as node/NAME: its assigned KubeletConfiguration',
    )
    .option('-y, --yes', 'apply a valid edit without asking')
    .option('--sign <key>', 'for a Node that requires signatures: SSH key with which the edited configuration is signed')
    .addOption(diffOption(DIFF_OF_PLAN));
  addHostRolloutOptions(edit, '1');
  addReasonOption(
    addConfirmOptions(
      addRunOptions(edit, { takeOver: TAKE_OVER, bundle: BUNDLE, allow: allowText('new-pods-only'), allowPodLoss: ALLOW_POD_LOSS }),
    ),
  );
  on(edit, editRequest, async (...args) => (await import('./edit.ts')).runEdit(...args));
  addSections(edit, { notes: `${NOTES}\n\n${IMPACT_NOTES}`, examples: EXAMPLES });
}

const BUNDLE = 'file made by kubeletadm bundle create; images and files that a host lacks are copied from it';

const NOTES = `The editor is that of KUBE_EDITOR or EDITOR, otherwise vi. A text with errors is opened again with the errors above it. After a valid edit, the plan is shown and a question follows; only then is the fleet file written and applied, or the configuration stored as a new ConfigMap and assigned. Other nodes that use the current ConfigMap keep it. If nothing is written, the edited text is kept in a file that the message names.`;

const EXAMPLES = `  kubeletadm edit -f fleet.yaml
  # the entry of one host, and the changes of this host
  kubeletadm edit worker-7
  # the ConfigMap that is assigned to a Node
  KUBE_EDITOR="code --wait" kubeletadm edit node/worker-7 --reason OPS-1234`;

function editRequest([word, ...more]: readonly string[], options: CommandOptions): EditRequest {
  if (more.length > 0) throw usageError('edit needs one host or Node', 'Pass one name, or none for the fleet file');
  const name = word === undefined || word === 'fleet' ? undefined : nodeArgument(word);
  const plan = planRequest(options);
  const fleet = fleetRunRequest(options);
  if (name !== undefined && isSelection(fleet.selection))
    throw usageError(
      'a name cannot be combined with --limit, --group or --selector',
      'To apply the whole fleet file to some hosts, omit the name',
    );
  return {
    name,
    yes: options.yes === true,
    output: plan,
    fleet: {
      ...fleet,
      planFile: undefined,
      isApproved: options.yes === true,
      inspectsFirst: true,
      retriesFailed: false,
    },
    node: {
      report: undefined,
      serve: undefined,
      choice: { kind: 'names', names: name === undefined ? [] : [name], file: fleet.file, connection: fleet.connection },
      rollout: readRolloutOptions({}),
      backend: undefined,
      reason: readReason(options),
      cluster: kubeconfigRequest(options),
      plan,
      run: runRequest(options),
      allowPodLoss: options.allowPodLoss === true,
      sign: flagText(options, 'sign'),
    },
  };
}
