import type { Command } from 'commander';
import { addClusterOptions, addSshOptions, collect, outputOption } from './options.ts';
import type { On } from './program.ts';

/** `csr list`, `csr approve`. */
export function defineCsr(csr: Command, on: On): void {
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
