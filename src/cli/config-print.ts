import type { ExitCode } from '../base/errors.ts';
import { type DefaultsAction, printDefaults } from '../kubeadm/config/print.ts';
import { renderClusterConfig } from '../kubeadm/render/cluster-config.ts';
import { kubeadmProfile } from '../kubeadm/render/profile-defaults.ts';
import { loadCatalogue, NEWEST_MINOR } from '../kubelet/catalogue.ts';
import type { Services } from './services.ts';

export interface PrintDefaultsRequest {
  readonly action: DefaultsAction;
  readonly componentConfigs: readonly string[];
}

/** `config print init-defaults` and its like. */
export async function runPrintDefaults(services: Services, { action, componentConfigs }: PrintDefaultsRequest): Promise<ExitCode> {
  const kubeletConfiguration = renderClusterConfig(kubeadmProfile(), NEWEST_MINOR, await loadCatalogue());
  services.output.document(
    printDefaults(action, {
      hostname: services.hostname,
      kubernetesVersion: `1.${NEWEST_MINOR}.0`,
      kubeletConfiguration,
      ...(componentConfigs.length === 0 ? {} : { componentConfigs }),
    }),
  );
  return 0;
}
