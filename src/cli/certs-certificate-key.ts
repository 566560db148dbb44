import type { ExitCode } from '../core/errors.ts';
import type { Services } from '../ports/services.ts';
import { newCertificateKey } from '../workflows/shared-certs.ts';

/** `certs certificate-key`: needs neither host nor cluster. */
export async function runCertificateKey(services: Services): Promise<ExitCode> {
  services.output.stdout(`${newCertificateKey(await services.certificateIssuer()).reveal()}\n`);
  return 0;
}
