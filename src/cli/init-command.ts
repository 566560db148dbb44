import type { Command } from 'commander';
import { INIT_PHASES } from '../kubeadm/workflows/phase-lists.ts';
import type { On, Run } from './command.ts';
import { addSections } from './help-layout.ts';
import { addHostOptions, addInitOptions, addNodeOptions, addPlanOptions } from './options.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `init`, `init phase`. */
export function defineInit(init: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./init.ts')).runInit;
  const options = (command: Command): Command => addConfirmOptions(addHostOptions(addInitOptions(addNodeOptions(addPlanOptions(command)))));
  addSections(on(options(init), load), { phases: INIT_PHASES, examples: EXAMPLES });
  const phase = init
    .command('phase')
    .description('Run one phase of init')
    .argument('<name...>', 'name of a phase, e.g. upload-config kubelet');
  addSections(on(options(phase), load), { phases: INIT_PHASES });
}

const EXAMPLES = `  # a control plane on a new host, prepared for additional control planes
  kubeletadm init --host root@10.0.0.10 --control-plane-endpoint api.example:6443 --upload-certs
  # changes to the local host, with the source of each field
  kubeletadm init --kubeconfig admin.conf --dry-run --show-origin
  # a host over SSH, with its own address and a lower pod limit
  kubeletadm init --kubeconfig admin.conf --host root@10.0.0.11 --node-ip 10.0.0.11 --set maxPods=50
  # files only, written to a directory (for an image)
  kubeletadm init --config init.yaml --rootfs ./image
  # one phase
  kubeletadm init phase upload-config kubelet --kubeconfig admin.conf`;
