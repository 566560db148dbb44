import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-help.ts';
import type { CommandOptions, On, Run } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { addHostOptions, addKubeconfigOptions, addPlanOptions } from './options.ts';
import { definePhaseCommands } from './phase-commands.ts';
import { phaseName } from './phase-name.ts';
import { flagNode, flagText, hostsRequest, kubeadmFlags, kubeconfigRequest, planRequest, runRequest } from './request-parts.ts';
import type { ResetCommandRequest } from './reset.ts';
import { addHostRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addLockOption, addReasonOption, writingRequest } from './writing-options.ts';

/** `reset`, `reset phase`. */
export function defineReset(reset: Command, on: On, phases: PhaseLists): void {
  const load = async (): Promise<Run<ResetCommandRequest>> => (await import('./reset.ts')).runReset;
  const options = (command: Command): Command =>
    addReasonOption(
      addLockOption(
        addHostRolloutOptions(
          addHostOptions(addPlanOptions(addResetOptions(command)), 'directory to reset instead of /; no service is stopped'),
        ),
      ),
    );
  addSections(on(options(reset), resetRequest, load), { phases: phases.reset, examples: EXAMPLES });
  const phase = reset
    .command('phase')
    .description('Run one phase of reset, e.g. phase cleanup-node')
    .argument('<name...>', 'name of a phase');
  on(options(phase), resetRequest, load);
  definePhaseCommands(phase, phases.reset, {
    run: (command, words) => on(command, (_, given) => resetRequest(words, given), load),
  });
}

function addResetOptions(command: Command): Command {
  command
    .option('-f, --force', 'do not ask before resetting')
    .option('--config <file>', "ResetConfiguration document; '-' for standard input")
    .option('--cri-socket <socket>', 'CRI socket of the container runtime (default: detected)')
    .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
    .option('--cleanup-tmp-dir', 'also empty /etc/kubernetes/tmp');
  addOptionGroup(command, HEADINGS.cluster, (cluster) =>
    cluster
      .option('--delete-node', 'stop the kubelet and delete the Node, without draining the Node; needs the kubeconfig of an administrator')
      .option('--node-name <name>', 'with --delete-node: name of the Node (default: the name under which the host is registered)'),
  );
  return addKubeconfigOptions(
    command,
    'with --delete-node: kubeconfig of an administrator (default: KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)',
  );
}

function resetRequest(args: readonly string[], options: CommandOptions): ResetCommandRequest {
  const nodeName = flagNode(options, 'nodeName');
  if (options.deleteNode !== true && nodeName !== undefined)
    throw usageError('--node-name requires --delete-node', 'Add --delete-node, or omit --node-name');
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    hosts: hostsRequest(options),
    plan: planRequest(options),
    run: runRequest(options, phaseName(args)),
    rules: rulesRequest(options),
    writing: writingRequest(options, 'reset'),
    force: options.force === true,
    deleteNode: options.deleteNode === true ? { cluster: kubeconfigRequest(options), nodeName } : null,
  };
}

const EXAMPLES = `  # list the files and services that would be removed
  kubeletadm reset --host node2 --dry-run
  # after kubectl drain node2
  kubeletadm reset --host node2 --force --delete-node --kubeconfig admin.conf`;
