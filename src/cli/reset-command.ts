import type { Command } from 'commander';
import { RESET_PHASES } from '../kubeadm/workflows/phase-lists.ts';
import type { On, Run } from './command.ts';
import { addHostOptions, addPlanOptions } from './options.ts';
import { phaseLines } from './phase-lines.ts';
import { addLockOption } from './writing-options.ts';

/** `reset`, `reset phase`. */
export function defineReset(reset: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./reset.ts')).runReset;
  const options = (command: Command): Command =>
    addLockOption(addHostOptions(addPlanOptions(command)))
      .option('--config <file>', "a ResetConfiguration document; '-' is standard input")
      .option('--cri-socket <socket>', 'socket of the container runtime (default: detected)')
      .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
      .option('--cleanup-tmp-dir', 'empty /etc/kubernetes/tmp as well')
      .option('--delete-node', 'stop the kubelet and delete its Node as well (pods are not drained); needs credentials of an administrator')
      .option('--node-name <name>', 'with --delete-node: the Node (default: the one the host is registered as)')
      .option('--kubeconfig <file>', 'with --delete-node: credentials of an administrator (default: as for init)')
      .option('--context <name>', 'context of the kubeconfig')
      .option('-f, --force', 'do not ask');
  on(options(reset), load);
  reset.addHelpText('after', () => `\nPhases:\n${phaseLines(RESET_PHASES)}\n\n${RESET_EXAMPLES}`);
  const phase = options(reset.command('phase').description('Run one phase of reset').argument('<name...>', 'a phase'));
  on(phase, load).addHelpText('after', () => `\nPhases:\n${phaseLines(RESET_PHASES)}`);
}

const RESET_EXAMPLES = `Examples:
  # what would be removed
  kubeletadm reset --host node2 --dry-run
  # after kubectl drain node2
  kubeletadm reset --host node2 --force --delete-node --kubeconfig admin.conf`;
