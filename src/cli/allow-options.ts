import { type Command, Option } from 'commander';
import { IMPACTS } from '../host/plan/impact.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';

/** The text of `--allow-pod-loss`. */
export const ALLOW_POD_LOSS =
  'also apply a change that would terminate running pods or prevent new pods from starting (default: refuse such a change, even with --allow unsafe)';

/** `--allow` and `--allow-pod-loss` of a command that changes a node. */
export function addAllowOptions(command: Command): Command {
  return addOptionGroup(command, HEADINGS.node, (node) => node.addOption(allowOption()).option('--allow-pod-loss', ALLOW_POD_LOSS));
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
const IMPACT_CLASSES = `Classes of changes for --allow, from least to most disruptive. "safe": the change does not affect running pods. "new-pods-only": new pods get the new value, running pods keep the old value. "drain": the change requires a drained node. Drain the node yourself: kubeletadm does not drain nodes, and does not check that a node is drained. "unsafe": the change can disconnect or stop the node.`;

/** The classes of `--allow`, for the help of the commands with that option. */
export const IMPACT_NOTES = `${IMPACT_CLASSES}

A change that would terminate running pods or prevent new pods from starting (for example, a maxPods below the number of running pods) is refused for every value of --allow, unless --allow-pod-loss is given.`;

/** The classes of `--allow`, for the help of the commands that configure an agent. */
export const AGENT_IMPACT_NOTES = `${IMPACT_CLASSES}

If the Node is cordoned, the agent assumes that the node is drained: it then applies changes up to class "drain", even if --allow is a lower class.

For every value of --allow, the agent refuses a change that would terminate running pods or prevent new pods from starting, unless the configuration was assigned with dynamic assign --allow-pod-loss.`;
