import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import { OVERLAY_KIND, overlayJsonSchema } from '../dynamic/agent/overlay.ts';
import { configJsonSchema } from '../kubeadm/config/json-schema.ts';
import type { ConfigKind } from '../kubeadm/config/model.ts';
import { type DefaultsProfile, profileDefaults } from '../kubeadm/render/profile-defaults.ts';
import { DEFAULT_MINOR, OLDEST_KNOWN_MINOR, OLDEST_MINOR } from '../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../kubelet/catalogue/load-catalogue.ts';
import { readMinor } from '../kubelet/minor-option.ts';
import type { Services } from './output/services.ts';

export interface ConfigDefaultsRequest {
  /** Undefined: `DEFAULT_MINOR`. */
  readonly kubernetesVersion: string | undefined;
  readonly profile: DefaultsProfile;
  readonly format: 'yaml' | 'json';
}

/** `config defaults`: the kubelet's defaults (an empty file), or the configuration that kubeadm writes. */
export async function runDefaults(services: Services, request: ConfigDefaultsRequest): Promise<ExitCode> {
  const version = request.kubernetesVersion;
  const minor = version === undefined ? DEFAULT_MINOR : readMinor(version, 'kubernetes-version', OLDEST_MINOR);
  const config = profileDefaults(request.profile, minor, await loadCatalogue());
  services.output.document(request.format === 'json' ? `${printableJson(config, 2)}\n` : encodeYaml(config));
  return 0;
}

export interface ConfigSchemaRequest {
  /** Undefined: all kinds. */
  readonly kind: ConfigKind | typeof OVERLAY_KIND | undefined;
  /** Undefined: `DEFAULT_MINOR`. */
  readonly kubernetesVersion: string | undefined;
}

/** `config schema [KIND]`. */
export async function runConfigSchema({ output }: Services, { kind, kubernetesVersion: version }: ConfigSchemaRequest): Promise<ExitCode> {
  const minor = version === undefined ? DEFAULT_MINOR : readMinor(version, 'kubernetes-version', OLDEST_KNOWN_MINOR);
  const catalogue = await loadCatalogue();
  const schema = kind === OVERLAY_KIND ? overlayJsonSchema(catalogue, minor) : configJsonSchema(catalogue, minor, kind ?? null);
  output.stdout(`${printableJson(schema, 2)}\n`);
  return 0;
}
