import type { ExitCode } from '../base/errors.ts';
import { newCertificateKey } from '../kubeadm/workflows/shared-certs.ts';
import type { Services } from './services.ts';

/** `certs certificate-key`: needs neither host nor cluster. */
export async function runCertificateKey(services: Services): Promise<ExitCode> {
  services.output.stdout(`${newCertificateKey(await services.certificateIssuer()).reveal()}\n`);
  return 0;
}
