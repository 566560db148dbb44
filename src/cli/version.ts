import { stringify } from 'yaml';
import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { VERSION } from '../version.ts';
import type { Services } from './services.ts';
import type { DocumentFormat } from './show-document.ts';

/** `version`. */
export async function runVersion(services: Services, format: DocumentFormat): Promise<ExitCode> {
  const info = { clientVersion: { version: VERSION }, kubernetes: { oldest: 'v1.20', newest: 'v1.36', kubeadm: 'v1.36.2' } };
  const text =
    format === 'json'
      ? `${printableJson(info, 2)}\n`
      : format === 'yaml'
        ? stringify(info)
        : `kubeletadm ${VERSION} (kubelets 1.20 to 1.36, as kubeadm v1.36.2)\n`;
  services.output.stdout(text);
  return 0;
}
