import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { Secret } from '../base/text/secret.ts';
import type { KubeconfigFile } from '../fleet/use-cases/admin-kubeconfig.ts';
import type { HostsRequest } from '../fleet/use-cases/host-access.ts';
import type { UserKubeconfigRequest } from '../fleet/use-cases/user-kubeconfig.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { flagList, flagText } from './option-values.ts';
import { addSshOptions, addTargetOption, collectList } from './options.ts';
import type { Services } from './output/services.ts';
import { addKubeconfigOut } from './output-options.ts';
import { flagDuration, hostsRequest, verbosityOf } from './request-parts.ts';

/** `kubeconfig admin`, `kubeconfig user`. */
export function defineKubeconfig(kubeconfig: Command, on: On): void {
  defineAdmin(kubeconfig, on);
  const user = kubeconfig
    .command('user')
    .description('Print a kubeconfig for an additional user, with a new client certificate or a token')
    .option('--client-name <name>', 'name of the user, and CN of the client certificate (required)')
    .option('--org <groups>', 'groups of the user, O of the client certificate (repeatable)', collectList)
    .option(
      '--token <token>',
      "token of the user, in place of a client certificate; '-' reads it from standard input, which keeps it out of the process list",
    )
    .option('--validity-period <duration>', 'validity of the client certificate (default: 8760h)')
    .option('--config <file>', "InitConfiguration and ClusterConfiguration documents; '-' for standard input");
  addSshOptions(addTargetOption(user, 'control plane with the key of the CA, reached over SSH (default: the local host)'));
  on(user, userRequest, runUserKubeconfig);
  addSections(user, {
    examples: `  kubeletadm kubeconfig user --client-name alice --org developers --validity-period 24h > alice.conf
  kubeletadm kubeconfig user --client-name ci --config cluster.yaml --host root@cp1`,
  });
}

function defineAdmin(kubeconfig: Command, on: On): void {
  const admin = kubeconfig
    .command('admin')
    .description('Print or save the kubeconfig of the cluster administrator, read from a control plane');
  addKubeconfigOut(admin).option('--force', 'with --kubeconfig-out: replace a file that is not the kubeconfig of this cluster alone');
  addSshOptions(addTargetOption(admin, 'control plane, reached over SSH (default: the local host)'));
  on(admin, adminRequest, runAdminKubeconfig);
  addSections(admin, {
    notes:
      'The kubeconfig is that of /etc/kubernetes/admin.conf on the control plane, with its server: the control plane endpoint of the cluster. Before it is printed, the API server must accept it. Its client certificate cannot be revoked: for other people, run kubeconfig user.',
    examples: `  kubeletadm kubeconfig admin --host root@cp1 --kubeconfig-out admin.conf
  kubeletadm kubeconfig admin --host root@cp1 > admin.conf`,
  });
}

interface AdminKubeconfigRequest {
  readonly hosts: HostsRequest;
  /** Null: standard output. */
  readonly file: KubeconfigFile | null;
  readonly verbosity: number;
}

function adminRequest(_: readonly string[], options: CommandOptions): AdminKubeconfigRequest {
  const path = flagText(options, 'kubeconfigOut');
  const force = options.force === true;
  if (force && path === undefined) throw usageError('--force requires --kubeconfig-out', 'Omit --force');
  return { hosts: oneHost(options, 'admin'), file: path === undefined ? null : { path, force }, verbosity: verbosityOf(options) };
}

function oneHost(options: CommandOptions, command: 'admin' | 'user'): HostsRequest {
  const hosts = hostsRequest(options);
  if (hosts.addresses.length > 1) throw usageError(`kubeconfig ${command}: --host is given more than once`, 'Name one control plane');
  return hosts;
}

const YEAR_MS = 8760 * 3_600_000;

function userRequest(_: readonly string[], options: CommandOptions): UserKubeconfigCommandRequest {
  const clientName = flagText(options, 'clientName') ?? '';
  if (clientName === '') throw usageError('kubeconfig user: --client-name is missing', 'Name the user, e.g. --client-name alice');
  const hosts = oneHost(options, 'user');
  const token = flagText(options, 'token');
  return {
    config: flagText(options, 'config'),
    clientName,
    organizations: flagList(options, 'org'),
    token: token === undefined || token === '' ? null : token === '-' ? 'stdin' : new Secret(token),
    validMs:
      flagDuration(options, 'validityPeriod', { flag: '--validity-period', example: 'Use a duration such as 24h', least: 1 }) ?? YEAR_MS,
    hosts,
    verbosity: verbosityOf(options),
  };
}

interface UserKubeconfigCommandRequest extends UserKubeconfigRequest {
  readonly hosts: HostsRequest;
  readonly verbosity: number;
}

/** `kubeconfig admin`: writes the kubeconfig to the file, or prints it on standard output. */
async function runAdminKubeconfig(services: Services, { hosts, file, verbosity }: AdminKubeconfigRequest): Promise<ExitCode> {
  const [{ readHostTargets }, { asAdministrator, writeAdminKubeconfig }, { revealText }] = await Promise.all([
    import('../fleet/use-cases/named-hosts.ts'),
    import('../fleet/use-cases/admin-kubeconfig.ts'),
    import('../base/text/secret.ts'),
  ]);
  const reporter = services.reporter({ verbosity, format: 'text' });
  const [target = {}] = await readHostTargets(services, hosts);
  await asAdministrator(services, target, async ({ kubeconfig }) => {
    if (file === null) services.output.document(revealText(kubeconfig.text));
    else await writeAdminKubeconfig(services, kubeconfig, file, reporter);
  });
  return 0;
}

/** The period above which a certificate is unusual. @see kubeadm 1.36 CertificateValidityPeriod */
const LONG_MS = 365 * 86_400_000;

/** `kubeconfig user`: prints the kubeconfig on standard output. */
async function runUserKubeconfig(services: Services, { hosts, verbosity, ...request }: UserKubeconfigCommandRequest): Promise<ExitCode> {
  const [{ readHostTargets }, { userKubeconfig }] = await Promise.all([
    import('../fleet/use-cases/named-hosts.ts'),
    import('../fleet/use-cases/user-kubeconfig.ts'),
  ]);
  const reporter = services.reporter({ verbosity, format: 'text' });
  if (request.validMs > LONG_MS && request.token === null) {
    const message = 'the client certificate is valid for more than a year and cannot be revoked. Hint: choose a shorter --validity-period';
    reporter.report({ level: 'warning', code: 'CERTIFICATE_LONG_VALIDITY', message });
  }
  const [target = {}] = await readHostTargets(services, hosts);
  services.output.document(`${(await userKubeconfig(services, target, request, reporter)).reveal()}\n`);
  return 0;
}
