import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { OVERLAY_KIND } from '../dynamic/agent/overlay.ts';
import { overlayJsonSchema } from '../dynamic/overlay-json-schema.ts';
import { configJsonSchema } from '../kubeadm/config/json-schema.ts';
import type { ConfigKind } from '../kubeadm/config/model.ts';
import { NEWEST_MINOR, OLDEST_KNOWN_MINOR } from '../kubelet/catalogue.ts';
import { loadCatalogue } from '../kubelet/load-catalogue.ts';
import { readMinor } from '../kubelet/minor-option.ts';
import type { Services } from './services.ts';

export interface ConfigSchemaRequest {
  /** Undefined: all kinds. */
  readonly kind: ConfigKind | typeof OVERLAY_KIND | undefined;
  /** Undefined: the newest. */
  readonly kubernetesVersion: string | undefined;
}

/** `config schema [KIND]`. */
export async function runConfigSchema({ output }: Services, { kind, kubernetesVersion: version }: ConfigSchemaRequest): Promise<ExitCode> {
  const minor = version === undefined ? NEWEST_MINOR : readMinor(version, 'kubernetes-version', OLDEST_KNOWN_MINOR);
  const catalogue = await loadCatalogue();
  const schema = kind === OVERLAY_KIND ? overlayJsonSchema(catalogue, minor) : configJsonSchema(catalogue, minor, kind ?? null);
  output.stdout(`${printableJson(schema, 2)}\n`);
  return 0;
}
