import type { Command } from 'commander';
import { UPGRADE_NODE_PHASES } from '../workflows/phase-lists.ts';
import { addClusterOptions, addPlanOptions, addSshOptions, collect, outputOption } from './options.ts';
import { phaseLines } from './phase-lines.ts';
import type { On, Run } from './program.ts';

/** Commands for nodes that are there: upgrade, certs, csr. */
export function addNodeLifecycleCommands(program: Command, on: On): void {
  upgradeCommand(program, on);
  certsCommand(program, on);
  csrCommand(program, on);
}

function upgradeCommand(program: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./upgrade-node.ts')).runUpgradeNode;
  const options = (command: Command): Command =>
    addSshOptions(addPlanOptions(command))
      .option('--host <[user@]address[:port]>', 'work on this host over SSH (repeatable); default: this machine', collect)
      .option('--config <file>', "an UpgradeConfiguration document; '-' is standard input")
      .option('--kubeconfig <file>', "read the cluster with these credentials (default: the node's own kubelet.conf)")
      .option('--context <name>', 'context of the kubeconfig')
      .option('--patches <dir>', 'directory of patches, in place of the ones remembered')
      .option('--overlay <file>', 'KubeletConfiguration for this node, in place of the one remembered')
      .option('--set <field=value>', 'one KubeletConfiguration field, in place of the ones remembered (repeatable)', collect)
      .option('--resolv-conf <file>', 'resolvConf of this node')
      .option('--cgroup-driver <driver>', 'cgroupDriver of this node')
      .option('--forget', 'take nothing from what the host remembers of init, join and earlier upgrades');
  const upgrade = program.command('upgrade').description('Bring nodes up to what the cluster says now');
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

function certsCommand(program: Command, on: On): void {
  const certs = program.command('certs').description("Kubelets' certificates: look at them, renew them");
  const host = (command: Command): Command =>
    addSshOptions(
      command.option('--host <[user@]address[:port]>', 'work on this host over SSH (repeatable); default: this machine', collect),
    );
  const check = host(certs.command('check').description('Check the certificates of kubelets; exit code 1 when one is not good'))
    .option('--expires-within <duration>', 'certificates that end sooner are not good, e.g. 720h (default: only those that ended)')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(check, async () => (await import('./certs-check.ts')).runCertsCheck);
  const renew = host(
    addClusterOptions(
      certs.command('renew-kubelet').description('Get a kubelet whose client certificate expired or was lost another one, through a token'),
    ),
  )
    .option('--token <token>', 'bootstrap token to use (default: an administrator makes one for the run and deletes it)')
    .option('--timeout <duration>', 'how long the certificate may take to come (default: 5m)')
    .option('--force', 'also renew a certificate that is good')
    .option('--dry-run', 'print the plan and change nothing')
    .addOption(outputOption(['text', 'json', 'yaml']))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending');
  on(renew, async () => (await import('./certs-renew.ts')).runCertsRenew).addHelpText('after', () => `\n${RENEW_EXAMPLES}`);
}

const RENEW_EXAMPLES = `The kubelet's kubeconfig and certificate are moved aside, it is restarted with a bootstrap kubeconfig and asks for a new certificate. When none comes, what was
moved aside is put back. Pods go on running.

Examples:
  kubeletadm certs check --host node2 --host node3
  kubeletadm certs renew-kubelet --host node2 --kubeconfig admin.conf
  kubeletadm certs renew-kubelet --host node2 --token abcdef.0123456789abcdef`;

function csrCommand(program: Command, on: On): void {
  const csr = program.command('csr').description("Kubelets' requests for certificates: look at them, approve those for serving");
  const hosts = (command: Command): Command =>
    addSshOptions(
      addClusterOptions(command).option(
        '--host <[user@]address[:port]>',
        'judge names by this host itself, over SSH, not by what its Node says (repeatable)',
        collect,
      ),
    );
  const list = hosts(csr.command('list').description('List pending requests for serving certificates and what speaks against them'))
    .option('--all', 'all requests of kubelets, also for client certificates and decided ones')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(list, async () => (await import('./csr.ts')).runCsrList);
  const approve = hosts(
    csr
      .command('approve')
      .description('Approve requests for serving certificates that stand every check')
      .argument('[name...]', 'requests'),
  )
    .option('--all', 'all that are pending and stand every check; the others are told')
    .option('--dry-run', 'say what would be approved');
  on(approve, async () => (await import('./csr.ts')).runCsrApprove).addHelpText('after', () => `\n${CSR_EXAMPLES}`);
}

const CSR_EXAMPLES = `With serverTLSBootstrap: true a kubelet asks for the certificate it serves with, and nobody approves that by itself. Checked are who asks, his groups, the
subject, the usages, and each name and address. What a Node says of itself was written by its kubelet; with --host the host itself is asked.

Examples:
  kubeletadm csr list
  # the requests of two nodes, names and addresses checked on the hosts
  kubeletadm csr approve --host node2 --host node3
  # all, by what the Nodes say of themselves
  kubeletadm csr approve --all --dry-run`;

const UPGRADE_EXAMPLES = `Overlays, patches and settings that init or join were given are remembered on the host and need not be given again.

Examples:
  # what an edited kubelet-config would change on two nodes
  kubeletadm upgrade node --host node2 --host node3 --dry-run
  # with other patches from now on
  kubeletadm upgrade node --host node2 --patches ./patches
  # as kubeadm's: on the node itself, after the package upgrade
  kubeletadm upgrade node phase kubelet-config`;
