import type { Command } from 'commander';
import type { On } from './command.ts';
import { addClusterOptions, addSshOptions, collect, outputOption } from './options.ts';
import { addLockOption } from './writing-options.ts';

/** `certs check`, `certs check-expiration`, `certs renew`, `certs generate-csr`, `certs certificate-key`, `certs renew-kubelet`. */
export function defineCerts(certs: Command, on: On): void {
  const host = (command: Command): Command =>
    addSshOptions(
      command.option('--host <[user@]address[:port]>', 'work on this host over SSH (repeatable); default: this machine', collect),
    );
  const check = host(
    certs.command('check').description('Check the certificates of kubelets and control planes; exit code 1 when one is not good'),
  )
    .option('--expires-within <duration>', 'certificates that end sooner are not good, e.g. 720h (default: only those that ended)')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(check, async () => (await import('./certs-check.ts')).runCertsCheck);
  const settings = (command: Command): Command =>
    command
      .option('--config <file>', "a ClusterConfiguration document; '-' is standard input (default: the cluster's)")
      .option('--cert-dir <dir>', 'where the certificates are (default: as configured, else /etc/kubernetes/pki)')
      .option('--kubeconfig <file>', "read the cluster's configuration with these credentials (default: the node's own)")
      .option('--context <name>', 'context of the kubeconfig');
  const expiration = settings(
    host(certs.command('check-expiration').description('Show when the certificates of control planes end, as kubeadm does')),
  );
  on(
    expiration.addOption(outputOption(['text', 'json', 'yaml'])),
    async () => (await import('./certs-check-expiration.ts')).runCertsCheckExpiration,
  );
  const control = addLockOption(
    settings(host(certs.command('renew').description('Renew certificates of control planes with the authorities on their hosts'))),
  )
    .argument('<name...>', 'all, or names of certificates as check-expiration shows them')
    .option('--expires-within <duration>', 'only those that end within this time, e.g. 720h (default: all that are named)')
    .option('--dry-run', 'print the plan and change nothing')
    .addOption(outputOption(['text', 'json', 'yaml']))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending');
  on(control, async () => (await import('./certs-renew-control-plane.ts')).runCertsRenewControlPlane).addHelpText(
    'after',
    () => `\n${CONTROL_PLANE_EXAMPLES}`,
  );
  const request = host(
    certs.command('generate-csr').description('Make keys and requests for certificates, for an authority that is elsewhere'),
  )
    .option('--config <file>', "InitConfiguration and ClusterConfiguration documents; '-' is standard input")
    .option('--cert-dir <dir>', 'where keys and requests are put (default: as configured, else /etc/kubernetes/pki)')
    .option('--kubeconfig-dir <dir>', 'where kubeconfigs and their requests are put (default: /etc/kubernetes)')
    .option('--dry-run', 'print the plan and change nothing')
    .addOption(outputOption(['text', 'json', 'yaml']))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending');
  on(request, async () => (await import('./certs-generate-csr.ts')).runCertsGenerateCsr).addHelpText(
    'after',
    () => `\n${REQUEST_EXAMPLES}`,
  );
  const key = certs.command('certificate-key').description('Make a key that uploaded certificates of a control plane are encrypted with');
  on(key, async () => (await import('./certs-certificate-key.ts')).runCertificateKey);
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
    .option('--node-name <name>', 'Node of the host, where it has no certificate to prove it with')
    .option('--timeout <duration>', 'how long the certificate may take to come (default: 5m)')
    .option('--force', 'also renew a certificate that is good')
    .option('--dry-run', 'print the plan and change nothing')
    .addOption(outputOption(['text', 'json', 'yaml']))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending');
  on(renew, async () => (await import('./certs-renew.ts')).runCertsRenew).addHelpText('after', () => `\n${RENEW_EXAMPLES}`);
}

const REQUEST_EXAMPLES = `Have each NAME.csr signed, put the certificates beside the keys as NAME.crt and into the kubeconfigs as client-certificate-data, with the authority's
certificate as ca.crt and certificate-authority-data. Keys that are there are kept.

Examples:
  kubeletadm certs generate-csr --config init.yaml --host cp1
  kubeletadm certs generate-csr --cert-dir ./pki --kubeconfig-dir .`;

const CONTROL_PLANE_EXAMPLES = `Each gets another key and the names it has. What uses it goes on with the old one until it is started again. Authorities are not renewed.

Examples:
  kubeletadm certs check-expiration --host cp1 --host cp2
  kubeletadm certs renew all --host cp1 --dry-run
  kubeletadm certs renew apiserver admin.conf --host cp1
  # from a timer: nothing to do on most days
  kubeletadm certs renew all --expires-within 720h`;

const RENEW_EXAMPLES = `The kubelet's kubeconfig and certificate are moved aside, it is restarted with a bootstrap kubeconfig and asks for a new certificate. When none comes, what was
moved aside is put back. Pods go on running.

Examples:
  kubeletadm certs check --host node2 --host node3
  kubeletadm certs renew-kubelet --host node2 --kubeconfig admin.conf
  # the certificate was lost
  kubeletadm certs renew-kubelet --host node2 --node-name node2 --kubeconfig admin.conf
  kubeletadm certs renew-kubelet --host node2 --token abcdef.0123456789abcdef`;
