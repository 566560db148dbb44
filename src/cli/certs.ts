import type { ExitCode } from '../base/errors.ts';
import { type GenerateCsrRequest, openGenerateCsr } from '../fleet/use-cases/open-generate-csr.ts';
import { openRenewCerts, type RenewCertsRequest } from '../fleet/use-cases/open-renew-certs.ts';
import { openRenewKubelet, type RenewKubeletRequest } from '../fleet/use-cases/open-renew-kubelet.ts';
import { newCertificateKey } from '../kubeadm/workflows/certificates/shared-certs.ts';
import { certsRenewed } from './kubeadm-output.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

export interface RenewCertsCommandRequest extends RenewCertsRequest {
  readonly plan: PlanRequest;
}

export interface RenewKubeletCommandRequest extends RenewKubeletRequest {
  readonly plan: PlanRequest;
}

export interface GenerateCsrCommandRequest extends GenerateCsrRequest {
  readonly plan: PlanRequest;
}

/** `certs renew NAME... | all`. */
export function runRenewCerts(services: Services, request: RenewCertsCommandRequest): Promise<ExitCode> {
  return runOnHosts(services, request, {
    title: 'certs renew',
    open: (scope) => openRenewCerts(services, request, scope),
    afterwards: ({ inspected, targets, run }, changes) => {
      const [existing] = inspected;
      if (services.programName !== 'kubeadm' || run.dryRun || request.plan.format !== 'text') return;
      if (existing !== undefined && targets.length === 1) services.output.stdout(certsRenewed(existing, request.names, changes));
    },
  });
}

/** `certs renew-kubelet`. */
export function runRenewKubelet(services: Services, request: RenewKubeletCommandRequest): Promise<ExitCode> {
  return runOnHosts(services, request, { title: 'certs renew', open: (scope) => openRenewKubelet(services, request, scope) });
}

/** `certs generate-csr`. */
export function runGenerateCsr(services: Services, request: GenerateCsrCommandRequest): Promise<ExitCode> {
  return runOnHosts(services, request, { title: 'certs generate-csr', open: () => openGenerateCsr(services, request) });
}

/** `certs certificate-key`: needs neither host nor cluster. */
export async function runCertificateKey(services: Services): Promise<ExitCode> {
  services.output.stdout(`${newCertificateKey(await services.certificateIssuer()).reveal()}\n`);
  return 0;
}
