import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { Secret } from '../base/text/secret.ts';
import type { HostsRequest } from '../fleet/use-cases/host-access.ts';
import type { UserKubeconfigRequest } from '../fleet/use-cases/user-kubeconfig.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { addSshOptions, addTargetOption, collectList } from './options.ts';
import type { Services } from './output/services.ts';
import { flagDuration, flagList, flagText, hostsRequest, verbosityOf } from './request-parts.ts';

/** `kubeconfig user`. */
export function defineKubeconfig(kubeconfig: Command, on: On): void {
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

const YEAR_MS = 8760 * 3_600_000;

function userRequest(_: readonly string[], options: CommandOptions): UserKubeconfigCommandRequest {
  const clientName = flagText(options, 'clientName') ?? '';
  if (clientName === '') throw usageError('kubeconfig user: --client-name is missing', 'Name the user, e.g. --client-name alice');
  const hosts = hostsRequest(options);
  if (hosts.addresses.length > 1) throw usageError('kubeconfig user: --host is given more than once', 'Name one control plane');
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
