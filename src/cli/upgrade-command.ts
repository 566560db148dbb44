import type { Command } from 'commander';
import { UPGRADE_NODE_PHASES } from '../kubeadm/workflows/phase-lists.ts';
import type { On, Run } from './command.ts';
import { addPlanOptions, addSshOptions, collect } from './options.ts';
import { phaseLines } from './phase-lines.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `upgrade node`, `upgrade node phase`. */
export function defineUpgrade(upgrade: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./upgrade-node.ts')).runUpgradeNode;
  const options = (command: Command): Command =>
    addConfirmOptions(addSshOptions(addPlanOptions(command)))
      .option('--host <[user@]address[:port]>', 'work on this host over SSH (repeatable); default: this machine', collect)
      .option('--config <file>', "an UpgradeConfiguration document; '-' is standard input")
      .option('--kubeconfig <file>', "read the cluster with these credentials (default: the node's own kubelet.conf)")
      .option('--context <name>', 'context of the kubeconfig')
      .option('--node-name <name>', 'with --kubeconfig: Node of the host, where it cannot prove which one it is')
      .option('--patches <dir>', 'directory of patches, in place of the ones remembered')
      .option('--overlay <file>', 'KubeletConfiguration for this node, in place of the one remembered')
      .option('--set <field=value>', 'one KubeletConfiguration field, in place of the ones remembered (repeatable)', collect)
      .option('--resolv-conf <file>', 'resolvConf of this node')
      .option('--cgroup-driver <driver>', 'cgroupDriver of this node')
      .option('--forget', 'take nothing from what the host remembers of init, join and earlier upgrades');
  const node = on(
    options(upgrade.command('node').description("Renew the kubelet's configuration of a node and restart the kubelet")),
    load,
  );
  node.addHelpText('after', () => `\nPhases:\n${phaseLines(UPGRADE_NODE_PHASES)}\n\n${UPGRADE_EXAMPLES}`);
  const phase = options(
    node.command('phase').description('Run one phase of upgrade node').argument('<name...>', 'a phase, e.g. kubelet-config'),
  );
  on(phase, load).addHelpText('after', () => `\nPhases:\n${phaseLines(UPGRADE_NODE_PHASES)}`);
}

const UPGRADE_EXAMPLES = `Overlays, patches and settings that init or join were given are remembered on the host and need not be given again.

Examples:
  # what an edited kubelet-config would change on two nodes
  kubeletadm upgrade node --host node2 --host node3 --dry-run
  # with other patches from now on
  kubeletadm upgrade node --host node2 --patches ./patches
  # as kubeadm's: on the node itself, after the package upgrade
  kubeletadm upgrade node phase kubelet-config`;
