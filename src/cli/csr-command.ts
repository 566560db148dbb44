import type { Command } from 'commander';
import type { On } from './command.ts';
import { addClusterOptions, addSshOptions, collect, outputOption } from './options.ts';

/** `csr list`, `csr approve`. */
export function defineCsr(csr: Command, on: On): void {
  const sources = (command: Command): Command =>
    addSshOptions(
      addClusterOptions(command)
        .option(
          '--host <[user@]address[:port]>',
          'compare names and addresses with those of this host, read over SSH (repeatable)',
          collect,
        )
        .option('-f, --file <file>', "compare names and addresses with those a fleet file declares; '-' is standard input"),
    );
  const list = sources(csr.command('list').description('List pending CSRs for serving certificates and the result of each check'))
    .option('--all', 'include CSRs for client certificates, and CSRs that are approved or denied')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(list, async () => (await import('./csr.ts')).runCsrList);
  const approve = sources(
    csr
      .command('approve')
      .description('Approve CSRs for serving certificates that pass every check')
      .argument('[name...]', 'names of CSRs'),
  )
    .option('--all', 'all pending CSRs that pass every check; the others are listed with the reason')
    .option('--trust-node-status', 'approve without asking where only the status of the Node, which its kubelet writes, confirms a name')
    .option('--dry-run', 'print the CSRs that would be approved');
  on(approve, async () => (await import('./csr.ts')).runCsrApprove).addHelpText('after', () => `\n${CSR_EXAMPLES}`);
}

const CSR_EXAMPLES = `With serverTLSBootstrap: true a kubelet requests its serving certificate with a CSR, which no controller of Kubernetes approves. Checked are the
requester, the subject, the usages and each name and address (SAN). Names and addresses of the API server, of Services, of pods and of other Nodes are always
refused. A name that only the status of the Node confirms needs a confirmation, because the kubelet writes that status itself: give a fleet file or --host as
another source, answer the question on a terminal, or add --trust-node-status. The exit code is 1 when a CSR was refused.

Examples:
  kubeletadm csr list
  # CSRs of two nodes, names and addresses compared with those of the hosts
  kubeletadm csr approve --host node2 --host node3
  # all CSRs whose names and addresses the fleet file declares
  kubeletadm csr approve --all -f fleet.yaml
  # all CSRs, without a source other than the Nodes
  kubeletadm csr approve --all --trust-node-status`;
