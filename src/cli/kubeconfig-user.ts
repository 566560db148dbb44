import type { ExitCode } from '../base/errors.ts';
import type { HostsRequest } from '../fleet/use-cases/host-access.ts';
import { readHostTargets } from '../fleet/use-cases/named-hosts.ts';
import { type UserKubeconfigRequest, userKubeconfig } from '../fleet/use-cases/user-kubeconfig.ts';
import type { Services } from './output/services.ts';

export interface UserKubeconfigCommandRequest extends UserKubeconfigRequest {
  readonly hosts: HostsRequest;
  readonly verbosity: number;
}

/** The period above which a certificate is unusual. @see kubeadm 1.36 CertificateValidityPeriod */
const LONG_MS = 365 * 86_400_000;

/** `kubeconfig user`: prints the kubeconfig on standard output. */
export async function runUserKubeconfig(
  services: Services,
  { hosts, verbosity, ...request }: UserKubeconfigCommandRequest,
): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity, format: 'text' });
  if (request.validMs > LONG_MS && request.token === null) {
    const message = 'the client certificate is valid for more than a year and cannot be revoked. Hint: choose a shorter --validity-period';
    reporter.report({ level: 'warning', code: 'CERTIFICATE_LONG_VALIDITY', message });
  }
  const [target = {}] = await readHostTargets(services, hosts);
  services.output.document(`${(await userKubeconfig(services, target, request, reporter)).reveal()}\n`);
  return 0;
}
