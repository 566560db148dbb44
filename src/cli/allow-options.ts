import { type Command, Option } from 'commander';
import { IMPACTS } from '../host/plan/impact.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';

/** The text of `--allow-pod-loss`. */
export const ALLOW_POD_LOSS =
  'also apply a change that would terminate running pods or prevent new pods from starting (default: refuse such a change, even with --allow unsafe)';

/** `--allow` and `--allow-pod-loss` of a command that changes a node. */
export function addAllowOptions(command: Command): Command {
  return addDrainOptions(
    addOptionGroup(command, HEADINGS.node, (node) => node.addOption(allowOption()).option('--allow-pod-loss', ALLOW_POD_LOSS)),
  );
}

/** `--no-drain`, `--force-drain`, `--drain-timeout` and `--settle` of a command that changes a node. */
export function addDrainOptions(command: Command): Command {
  return addOptionGroup(command, HEADINGS.rollout, (rollout) =>
    addDrainLimits(
      rollout.option(
        '--no-drain',
        'refuse a change of class drain or unsafe on a node with pods to evict, instead of draining the node; with --allow-pod-loss: change the node without evicting its pods',
      ),
    ).option(
      '--settle <duration>',
      'maximum time to wait, before the next node is changed, until the controllers of evicted pods have as many Ready pods as before; then the run continues with a warning; 0s: do not wait',
      '2m',
    ),
  );
}

/** `--force-drain` and `--drain-timeout`. */
export function addDrainLimits(command: Command): Command {
  return command
    .option(
      '--force-drain',
      'when a node is drained, also evict pods without a controller and pods with emptyDir volumes: these pods or their data are lost',
    )
    .option('--drain-timeout <duration>', 'time limit for draining a node; then the node is uncordoned and not changed', '10m');
}

/** The text of `--allow`. */
export function allowText(defaultClass: string): string {
  return `most disruptive class of changes to allow on a running kubelet; the classes are explained below (default: ${defaultClass})`;
}

/** `--allow` of a command that changes running kubelets. */
export function allowOption(text: string = allowText('new-pods-only')): Option {
  return new Option('--allow <class>', text).choices([...IMPACTS]);
}

/** The classes of `--allow`. */
const IMPACT_CLASSES = `Classes of changes for --allow, from least to most disruptive. "safe": the change does not affect running pods. "new-pods-only": new pods get the new value, running pods keep the old value. "drain": the change requires a drained node. "unsafe": the change can disconnect or stop the node.`;

/** The classes of `--allow`, for the help of the commands with that option. */
export const IMPACT_NOTES = `${IMPACT_CLASSES}

For the classes drain and unsafe, the node is cordoned and its pods are evicted before the change; after it, the node is uncordoned.

A change that would terminate running pods or prevent new pods from starting (for example, a maxPods below the number of running pods) is refused for every value of --allow, unless --allow-pod-loss is given.`;

/** The classes of `--allow`, for the help of the commands that configure an agent. */
export const AGENT_IMPACT_NOTES = `${IMPACT_CLASSES}

While the Node is cordoned and has no pods to evict, the agent applies changes up to class "drain", even if --allow is a lower class.

For every value of --allow, the agent refuses a change that would terminate running pods or prevent new pods from starting, unless the configuration was assigned with dynamic assign --allow-pod-loss.`;
