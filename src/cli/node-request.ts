import type { Arg } from '../base/arg.ts';
import { usageError } from '../base/errors.ts';
import type { NodeRequest } from '../kubeadm/use-cases/node-options.ts';
import type { CommandOptions } from './command.ts';
import { fieldsRequest, flagList, flagText } from './request-parts.ts';

/**
 * Settings declared for a node, in addition to those in kubeadm's documents.
 * @throws AppError USAGE (exit code 2)
 */
export function nodeRequest(options: CommandOptions): NodeRequest {
  return {
    ...fieldsRequest(options),
    ...extraArgsOf(options),
  };
}

function extraArgsOf(options: CommandOptions): Pick<NodeRequest, 'extraArgs' | 'droppedFlags'> {
  const one = (name: string, value: string | undefined): readonly Arg[] => (value === undefined ? [] : [{ name, value }]);
  const labels = flagList(options, 'nodeLabels');
  const given = flagList(options, 'kubeletExtraArgs');
  const droppedFlags = given.flatMap((text) => DROPPED.exec(text)?.[1] ?? []);
  const extraArgs = [
    ...one('node-ip', flagText(options, 'nodeIp')),
    ...one('node-labels', labels.length === 0 ? undefined : labels.join(',')),
    ...one('cloud-provider', flagText(options, 'cloudProvider')),
    ...one('cloud-config', flagText(options, 'cloudConfig')),
    ...given.filter((text) => !DROPPED.test(text)).map(parseExtraArg),
  ];
  const both = droppedFlags.find((name) => extraArgs.some((arg) => arg.name === name));
  if (both === undefined) return { extraArgs, droppedFlags };
  throw usageError(`the kubelet flag ${both} is set and dropped (${both}-) in the same command`, 'Pass one of them');
}

/** `NAME-`, like labels of kubectl. */
const DROPPED = /^-{0,2}([^=\s]*[^=\s-])-$/;

function parseExtraArg(text: string): Arg {
  const match = /^-{0,2}([^=]+)=([\s\S]*)$/.exec(text);
  if (match) return { name: match[1] as string, value: match[2] as string };
  throw usageError(`--kubelet-extra-args ${text} has neither the form name=value nor name-`, 'For example: --kubelet-extra-args v=4');
}
