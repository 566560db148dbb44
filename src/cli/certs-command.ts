import type { Command } from 'commander';
import { addClusterOptions, addSshOptions, collect, outputOption } from './options.ts';
import type { On } from './program.ts';
import { addLockOption } from './writing-options.ts';

/** `certs check`, `certs renew-kubelet`. */
export function defineCerts(certs: Command, on: On): void {
  const host = (command: Command): Command =>
    addSshOptions(
      command.option('--host <[user@]address[:port]>', 'work on this host over SSH (repeatable); default: this machine', collect),
    );
  const check = host(certs.command('check').description('Check the certificates of kubelets; exit code 1 when one is not good'))
    .option('--expires-within <duration>', 'certificates that end sooner are not good, e.g. 720h (default: only those that ended)')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(check, async () => (await import('./certs-check.ts')).runCertsCheck);
  const renew = addLockOption(
    host(
      addClusterOptions(
        certs
          .command('renew-kubelet')
          .description('Get a kubelet whose client certificate expired or was lost another one, through a token'),
      ),
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
