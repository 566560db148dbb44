import { type DefaultsAction, printDefaults } from '../core/config/print.ts';
import type { ExitCode } from '../core/errors.ts';
import { loadCatalogue, NEWEST_MINOR } from '../core/kubelet/catalogue.ts';
import { encodeClusterConfig } from '../core/render/cluster-config.ts';
import { kubeadmProfile } from '../core/render/profile-defaults.ts';
import { encodeYaml } from '../core/text/yaml-encode.ts';
import type { Services } from '../ports/services.ts';
import type { CommandOptions } from './command.ts';
import { flagList } from './read-options.ts';

/** `config print init-defaults` and its like. */
export async function runPrintDefaults(services: Services, action: DefaultsAction, options: CommandOptions): Promise<ExitCode> {
  const componentConfigs = flagList(options, 'componentConfigs');
  const kubeletConfiguration = encodeYaml(encodeClusterConfig(kubeadmProfile(), NEWEST_MINOR, await loadCatalogue()));
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
