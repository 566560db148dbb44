import type { ExitCode } from '../base/errors.ts';
import { type DefaultsAction, printDefaults } from '../kubeadm/config/print.ts';
import { NEWEST_RELEASE_FACTS } from '../kubeadm/config/releases.ts';
import { renderClusterConfig } from '../kubeadm/render/cluster-config.ts';
import { kubeadmProfile } from '../kubeadm/render/profile-defaults.ts';
import { loadCatalogue } from '../kubelet/catalogue/load-catalogue.ts';
import type { Services } from './output/services.ts';

export interface PrintDefaultsRequest {
  readonly action: DefaultsAction;
  readonly componentConfigs: readonly string[];
}

/** `config print init-defaults` and its like, for the minor of kubeadm whose files the program writes. */
export async function runPrintDefaults(services: Services, { action, componentConfigs }: PrintDefaultsRequest): Promise<ExitCode> {
  const { minor } = NEWEST_RELEASE_FACTS;
  const kubeletConfiguration = renderClusterConfig(kubeadmProfile(), minor, await loadCatalogue());
  services.output.document(
    printDefaults(action, {
      hostname: services.hostname,
      kubernetesVersion: `1.${minor}.0`,
      kubeletConfiguration,
      ...(componentConfigs.length === 0 ? {} : { componentConfigs }),
    }),
  );
  return 0;
}
