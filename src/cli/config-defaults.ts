import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import { type DefaultsProfile, profileDefaults } from '../kubeadm/render/profile-defaults.ts';
import { loadCatalogue, NEWEST_MINOR, OLDEST_MINOR } from '../kubelet/catalogue.ts';
import type { CommandOptions } from './command.ts';
import { readMinor } from './minor-option.ts';
import { flagText } from './read-options.ts';
import type { Services } from './services.ts';

/** `config defaults`: the configuration of a kubelet whose file says nothing, or the one kubeadm writes. */
export async function runDefaults(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const version = flagText(options, 'kubernetesVersion');
  const minor = version === undefined ? NEWEST_MINOR : readMinor(version, 'kubernetes-version', OLDEST_MINOR);
  const config = profileDefaults((flagText(options, 'profile') ?? 'kubelet') as DefaultsProfile, minor, await loadCatalogue());
  services.output.document(options.output === 'json' ? `${printableJson(config, 2)}\n` : encodeYaml(config));
  return 0;
}
