import type { Command } from 'commander';
import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { Secret } from '../base/text/secret.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { CheckCertificatesRequest, HostCertificates } from '../fleet/use-cases/check-certificates.ts';
import type { CheckExpirationRequest } from '../fleet/use-cases/check-expiration.ts';
import type { GenerateCsrRequest } from '../fleet/use-cases/open-generate-csr.ts';
import type { RenewCertsRequest } from '../fleet/use-cases/open-renew-certs.ts';
import type { RenewKubeletRequest } from '../fleet/use-cases/open-renew-kubelet.ts';
import { isBootstrapToken, TOKEN_FORM } from '../kubeadm/config/bootstrap-token.ts';
import type { PkiRequest } from '../kubeadm/use-cases/pki-settings.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { flagText } from './option-values.ts';
import {
  addClusterOptions,
  addDryRunOptions,
  addKubeconfigOptions,
  addPrinterFlags,
  addSshOptions,
  addTargetOption,
  readOutputOption,
} from './options.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import type { DocumentFormat, ReadFormat } from './output/show-document.ts';
import type { WithPlan } from './output/show-plan.ts';
import { outputOption } from './output-options.ts';
import {
  flagDuration,
  flagNode,
  hostDirectory,
  hostsRequest,
  kubeconfigRequest,
  outputRequest,
  planRequest,
  readFormat,
  runRequest,
  verbosityOf,
} from './request-parts.ts';
import { addHostRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addLockOption, writingRequest } from './writing-options.ts';

/** `certs check`, `certs check-expiration`, `certs renew`, `certs generate-csr`, `certs certificate-key`, `certs renew-kubelet`. */
export function defineCerts(certs: Command, on: On): void {
  defineCheck(certs, on);
  defineRenew(certs, on);
  defineGenerateCsr(certs, on);
  const key = certs.command('certificate-key').description('Generate a key to encrypt the certificates that init --upload-certs uploads');
  on(key, () => null, runCertificateKey);
  defineRenewKubelet(certs, on);
}

function defineCheck(certs: Command, on: On): void {
  const check = certs
    .command('check')
    .description('Check the certificates of kubelets and control planes; the exit code is 1 if a certificate is invalid')
    .option('--expires-within <duration>', 'also report certificates that expire within this time, e.g. 720h (default: only expired ones)')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(
    addHosts(check),
    (_, options): CertsCheckRequest => ({
      hosts: hostsRequest(options),
      format: outputRequest(options).format,
      withinMs: withinMs(options) ?? 0,
    }),
    runCertsCheck,
  );
  const expiration = certs
    .command('check-expiration')
    .description('Show the expiration of control plane certificates, like kubeadm')
    .addOption(readOutputOption());
  on(
    addHosts(addControlPlaneOptions(addPrinterFlags(expiration))),
    (_, options): CheckExpirationCommandRequest => ({
      ...pkiRequest(options),
      hosts: hostsRequest(options),
      output: { format: readFormat(options), verbosity: verbosityOf(options) },
    }),
    runCertsCheckExpiration,
  );
}

function defineRenew(certs: Command, on: On): void {
  const renew = certs
    .command('renew')
    .description('Renew control plane certificates with the CAs stored on each host')
    .argument('<name...>', "certificate names as shown by check-expiration, or 'all'")
    .option(
      '--expires-within <duration>',
      'renew only certificates that expire within this time, e.g. 720h (default: all named certificates)',
    )
    .option(
      '--restart',
      'restart the static Pods that use the renewed certificates, one after the other and one host at a time; the next is restarted when the previous one is healthy',
    );
  addHosts(addControlPlaneOptions(addDryRunOptions(renew)));
  addSections(on(addLockOption(renew), renewRequest, runRenewCerts), { notes: RENEW_NOTES, examples: RENEW_EXAMPLES });
}

function defineGenerateCsr(certs: Command, on: On): void {
  const generate = certs
    .command('generate-csr')
    .description('Generate keys and CSRs for control plane certificates that an external CA will sign')
    .option('--config <file>', "InitConfiguration and ClusterConfiguration documents; '-' for standard input")
    .option(
      '--cert-dir <dir>',
      'directory to write keys and CSRs to (default: certificatesDir of the configuration, otherwise /etc/kubernetes/pki)',
    )
    .option('--kubeconfig-dir <dir>', 'directory to write kubeconfig files and their CSRs to (default: /etc/kubernetes)');
  addHosts(addDryRunOptions(generate));
  addSections(on(generate, generateRequest, runGenerateCsr), { notes: GENERATE_NOTES, examples: GENERATE_EXAMPLES });
}

function defineRenewKubelet(certs: Command, on: On): void {
  const renew = certs
    .command('renew-kubelet')
    .description('Replace an expired or lost client certificate of a kubelet by TLS bootstrap with a token')
    .option('--token <token>', 'bootstrap token (default: a temporary token, created with the kubeconfig of an administrator)')
    .option(
      '--node-name <name>',
      'name of the Node (default: from the client certificate of the kubelet; required if that certificate was lost)',
    )
    .option('--timeout <duration>', 'time limit to receive the new certificate (default: 5m)')
    .option('--force', 'also renew a certificate that is still valid');
  addHostRolloutOptions(addHosts(addClusterOptions(addDryRunOptions(renew))));
  addSections(on(addLockOption(renew), renewKubeletRequest, runRenewKubelet), { notes: KUBELET_NOTES, examples: KUBELET_EXAMPLES });
}

function addHosts(command: Command): Command {
  return addSshOptions(addTargetOption(command));
}

function addControlPlaneOptions(command: Command): Command {
  return addKubeconfigOptions(
    command
      .option('--config <file>', "ClusterConfiguration document; '-' for standard input (default: from the cluster)")
      .option(
        '--cert-dir <dir>',
        'directory of the certificates (default: certificatesDir of the configuration, otherwise /etc/kubernetes/pki)',
      ),
    'kubeconfig to read the cluster configuration with (default: /etc/kubernetes/kubelet.conf on the host)',
  );
}

function renewRequest(args: readonly string[], options: CommandOptions): WithPlan<RenewCertsRequest> {
  return {
    ...pkiRequest(options),
    names: namesOf(args),
    withinMs: withinMs(options) ?? null,
    restarts: options.restart === true,
    hosts: hostsRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
    writing: writingRequest(options),
  };
}

function namesOf(args: readonly string[]): readonly string[] | 'all' {
  if (!args.includes('all')) return args;
  if (args.length > 1) throw usageError("'all' cannot be combined with other certificate names");
  return 'all';
}

function generateRequest(_: readonly string[], options: CommandOptions): WithPlan<GenerateCsrRequest> {
  return {
    config: flagText(options, 'config'),
    certificatesDir: hostDirectory(options, 'certDir', '--cert-dir'),
    kubeconfigDir: hostDirectory(options, 'kubeconfigDir', '--kubeconfig-dir'),
    hosts: hostsRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
  };
}

const RENEW_TIMEOUT_MS = 300_000;

function renewKubeletRequest(_: readonly string[], options: CommandOptions): WithPlan<RenewKubeletRequest> {
  return {
    token: readToken(flagText(options, 'token')),
    nodeName: flagNode(options, 'nodeName') ?? null,
    timeoutMs: flagDuration(options, 'timeout', { example: 'Use a duration such as 90s or 5m', least: 1 }) ?? RENEW_TIMEOUT_MS,
    force: options.force === true,
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
    rules: rulesRequest(options),
    writing: writingRequest(options),
  };
}

function readToken(text: string | undefined): Secret | null {
  if (text === undefined) return null;
  if (isBootstrapToken(text)) return new Secret(text);
  throw usageError('the value of --token is not a bootstrap token', `Pass a token of the form ${TOKEN_FORM}`);
}

function pkiRequest(options: CommandOptions): PkiRequest {
  return {
    config: flagText(options, 'config'),
    certificatesDir: hostDirectory(options, 'certDir', '--cert-dir') ?? null,
    cluster: kubeconfigRequest(options),
  };
}

/** The time of `--expires-within`. */
function withinMs(options: CommandOptions): number | undefined {
  return flagDuration(options, 'expiresWithin', { flag: '--expires-within', example: 'Use a duration such as 720h' });
}

const GENERATE_NOTES = `Sign each NAME.csr with the CA. For a CSR next to a key file, save the certificate as NAME.crt, and the CA certificate as ca.crt. For a CSR of a kubeconfig file, add the certificate to this file as client-certificate-data, and the CA certificate as certificate-authority-data. Existing keys are kept.`;

const GENERATE_EXAMPLES = `  kubeletadm certs generate-csr --config init.yaml --host cp1
  kubeletadm certs generate-csr --cert-dir ./pki --kubeconfig-dir .`;

const RENEW_NOTES =
  'Each certificate is reissued with a new key and the same names. Components use the old certificate until they are restarted: --restart restarts etcd, kube-apiserver, kube-controller-manager and kube-scheduler in this order, and stops at the first one that does not become healthy in a new container. CA certificates are not renewed.';

const RENEW_EXAMPLES = `  kubeletadm certs check-expiration --host cp1 --host cp2
  kubeletadm certs renew all --host cp1 --dry-run
  kubeletadm certs renew apiserver admin.conf --host cp1
  kubeletadm certs renew all --restart --host cp1 --host cp2 --host cp3
  # from a timer: renews a certificate only in its last 30 days
  kubeletadm certs renew all --expires-within 720h`;

const KUBELET_NOTES =
  'The command renames the kubeconfig and the certificate of the kubelet, and restarts the kubelet with a bootstrap kubeconfig to request a new certificate. If the kubelet receives no certificate, the renamed files are restored. Pods keep running.';

const KUBELET_EXAMPLES = `  kubeletadm certs check --host node2 --host node3
  kubeletadm certs renew-kubelet --host node2 --kubeconfig admin.conf
  # the certificate was lost
  kubeletadm certs renew-kubelet --host node2 --node-name node2 --kubeconfig admin.conf
  kubeletadm certs renew-kubelet --host node2 --token abcdef.0123456789abcdef`;

/** `certs renew NAME... | all`. */
async function runRenewCerts(services: Services, request: WithPlan<RenewCertsRequest>): Promise<ExitCode> {
  const [{ openRenewCerts }, { certsRenewed }, { renewedLines }, { isLocalHost }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-renew-certs.ts'),
    import('./kubeadm-output.ts'),
    import('./output/certs-renewed.ts'),
    import('../fleet/host-target.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, {
    title: 'certs renew',
    open: (scope) => openRenewCerts(services, request, scope),
    applied: ({ inspected, targets }, { results, changes }) => {
      const [existing] = inspected;
      if (services.programName !== 'kubeadm') services.output.stdout(renewedLines(results, targets.every(isLocalHost)));
      else if (existing !== undefined && targets.length === 1) services.output.stdout(certsRenewed(existing, request.names, changes));
    },
  });
}

/** `certs renew-kubelet`. */
async function runRenewKubelet(services: Services, request: WithPlan<RenewKubeletRequest>): Promise<ExitCode> {
  const [{ openRenewKubelet }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-renew-kubelet.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, { title: 'certs renew', open: (scope) => openRenewKubelet(services, request, scope) });
}

/** `certs generate-csr`. */
async function runGenerateCsr(services: Services, request: WithPlan<GenerateCsrRequest>): Promise<ExitCode> {
  const [{ openGenerateCsr }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-generate-csr.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, { title: 'certs generate-csr', open: () => openGenerateCsr(services, request) });
}

/** `certs certificate-key`: needs neither host nor cluster. */
async function runCertificateKey(services: Services): Promise<ExitCode> {
  const { newCertificateKey } = await import('../kubeadm/workflows/certificates/shared-certs.ts');
  services.output.stdout(`${newCertificateKey(await services.certificateIssuer()).reveal()}\n`);
  return 0;
}

interface CertsCheckRequest extends CheckCertificatesRequest {
  readonly format: DocumentFormat;
}

/** `certs check`: exit code 1 when a certificate of a host is not valid. */
async function runCertsCheck(services: Services, request: CertsCheckRequest): Promise<ExitCode> {
  const [{ checkCertificates }, { renderDocument }] = await Promise.all([
    import('../fleet/use-cases/check-certificates.ts'),
    import('./output/show-document.ts'),
  ]);
  const { format } = request;
  const { reports, problems } = await checkCertificates(services, request);
  if (reports.length > 0) services.output.stdout(format === 'text' ? renderReports(reports) : renderDocument(document(reports), format));
  if (problems.length > 0) throw new AppError(problems);
  return 0;
}

function renderReports(reports: readonly HostCertificates[]): string {
  const node = nodeColumn(reports.map(({ name, node }) => ({ host: name, node })));
  const header = ['HOST', ...node.header, 'CERTIFICATE', 'SUBJECT', 'ISSUER', 'EXPIRES', 'RESIDUAL TIME', 'STATE'];
  const rows = reports.flatMap(({ name, certificates }) =>
    certificates.map((one) => [
      name,
      ...node.cells(name),
      one.role,
      one.subject ?? '-',
      one.issuer ?? '-',
      one.notAfter === null ? '-' : one.notAfter.toISOString().replace('.000', ''),
      one.residualMs === null ? '-' : one.residualMs < 0 ? 'expired' : formatAge(one.residualMs),
      one.notes.length === 0 ? one.state : `${one.state}: ${one.notes.join('; ')}`,
    ]),
  );
  const issues = reports.flatMap(({ name, issue }) => (issue === null ? [] : [`${name}: ${issue}`]));
  return joinLines([...renderTable([header, ...rows]), ...issues]);
}

function document(reports: readonly HostCertificates[]): object {
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'CertificateReport',
    hosts: reports.map(({ name, node, certificates, issue }) => ({
      name,
      node,
      ok: issue === null && certificates.every(({ state }) => state !== 'error'),
      ...(issue === null ? {} : { issue }),
      certificates: certificates.map(({ role, path, subject, issuer, notBefore, notAfter, residualMs, state, notes }) => ({
        role,
        path,
        subject,
        issuer,
        notBefore: notBefore?.toISOString() ?? null,
        notAfter: notAfter?.toISOString() ?? null,
        residualSeconds: residualMs === null ? null : Math.floor(residualMs / 1000),
        state,
        notes,
      })),
    })),
  };
}

interface CheckExpirationCommandRequest extends CheckExpirationRequest {
  readonly output: { readonly format: ReadFormat; readonly verbosity: number };
}

/** `certs check-expiration`: one host in kubeadm's format, several hosts one after the other. */
async function runCertsCheckExpiration(services: Services, request: CheckExpirationCommandRequest): Promise<ExitCode> {
  const [{ checkExpiration }, { expirationDocument, expirationTables }, { certsConfigSource }, { renderKubeadmDocument }] =
    await Promise.all([
      import('../fleet/use-cases/check-expiration.ts'),
      import('../kubeadm/pki/expiration-info.ts'),
      import('./kubeadm-output.ts'),
      import('./output/show-document.ts'),
    ]);
  const { format, verbosity } = request.output;
  const { reports, problems } = await checkExpiration(services, request, services.reporter({ verbosity, format: 'text' }));
  const [first] = reports;
  const only = reports.length === 1 ? first : undefined;
  if (first !== undefined && format === 'text') {
    const source =
      only !== undefined && services.programName === 'kubeadm' ? certsConfigSource('check-expiration', only.hasReadCluster) : '';
    const tables = reports.map(({ name, info }) => `${only === undefined ? `host ${name}\n` : ''}${expirationTables(info)}`);
    services.output.stdout(`${source}${tables.join('\n')}`);
  } else if (first !== undefined && format !== 'text') {
    const hosts = reports.map(({ name, info }) => ({ name, ...expirationDocument(info) }));
    const list = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'CertificateExpirationList', hosts };
    services.output.document(renderKubeadmDocument(only === undefined ? list : expirationDocument(only.info), format));
  }
  if (problems.length > 0) throw new AppError(problems);
  return 0;
}
