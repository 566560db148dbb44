import type { Command } from 'commander';
import { INIT_PHASES } from '../kubeadm/workflows/phase-lists.ts';
import type { On, Run } from './command.ts';
import { addHostOptions, addInitOptions, addNodeOptions, addPlanOptions } from './options.ts';
import { phaseLines } from './phase-lines.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `init`, `init phase`. */
export function defineInit(init: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./init.ts')).runInit;
  const options = (command: Command): Command => addConfirmOptions(addInitOptions(addHostOptions(addNodeOptions(addPlanOptions(command)))));
  on(options(init), load);
  init.addHelpText('after', () => `\nPhases:\n${phaseLines(INIT_PHASES)}\n\n${INIT_EXAMPLES}`);
  const phase = options(
    init.command('phase').description('Run one phase of init').argument('<name...>', 'a phase, e.g. upload-config kubelet'),
  );
  on(phase, load).addHelpText('after', () => `\nPhases:\n${phaseLines(INIT_PHASES)}`);
}

const INIT_EXAMPLES = `Examples:
  # a control plane on a bare host, with more to come
  kubeletadm init --host root@10.0.0.10 --control-plane-endpoint api.example:6443 --upload-certs
  # what would change on this machine, and why each field is what it is
  kubeletadm init --kubeconfig admin.conf --dry-run --show-origin
  # a host over SSH, with its own address and a smaller pod limit
  kubeletadm init --kubeconfig admin.conf --host root@10.0.0.11 --node-ip 10.0.0.11 --set maxPods=50
  # only the files, into a directory (for an image)
  kubeletadm init --config init.yaml --rootfs ./image
  # one phase
  kubeletadm init phase upload-config kubelet --kubeconfig admin.conf`;
