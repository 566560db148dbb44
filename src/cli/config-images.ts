import type { ExitCode } from '../base/errors.ts';
import type { Flags } from '../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../kubeadm/config/flags.ts';
import { controlPlaneImages } from '../kubeadm/control-plane/images.ts';
import { releaseOf } from '../kubeadm/use-cases/control-plane-inputs.ts';
import { loadConfigFile, requireValid } from '../kubeadm/use-cases/load-config-file.ts';
import { settleCluster } from '../kubeadm/workflows/control-plane/settle-cluster.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface ListImagesRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  readonly format: DocumentFormat;
}

/** `config images list`: the images of a control plane with this configuration. */
export async function runListImages(services: Services, { config: file, flags, format }: ListImagesRequest): Promise<ExitCode> {
  const kinds = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;
  const config = mergeInitFlags(await loadConfigFile(services, file, kinds), flags);
  const found = requireValid(config);
  const { cluster, warnings } = await settleCluster({
    found: {},
    declared: config.cluster ?? {},
    bindPort: 6443,
    kubelet: null,
    releaseOf: (label, ci) => releaseOf(services, label, ci),
    skips: () => false,
  });
  const reporter = services.reporter({ verbosity: 0, format: 'text' });
  for (const { code, message } of [...found, ...warnings]) reporter.report({ level: 'warning', code, message });
  const images = controlPlaneImages(cluster);
  const document = { apiVersion: 'output.kubeadm.k8s.io/v1alpha3', kind: 'Images', images };
  services.output.stdout(format === 'text' ? images.map((image) => `${image}\n`).join('') : renderDocument(document, format));
  return 0;
}
