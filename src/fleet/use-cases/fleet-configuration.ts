import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import type { InitConfiguration, NodeRegistration } from '../../kubeadm/config/model.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { readPatches } from '../../kubeadm/use-cases/node-options.ts';
import type { PlannedPatch } from '../../kubelet/layers/patch-files.ts';
import type { ResolvedFleet } from '../file/model.ts';
import { resolveFleetPath } from './load-fleet.ts';

/** The documents of `cluster.configuration`. */
export const CONFIGURATION_KINDS = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;

/**
 * The kubeadm documents of `cluster.configuration`. If they contain no endpoint, the endpoint of the fleet
 * file applies to all control planes.
 * @throws AppError with exit code 2: errors in the documents
 */
export async function readFleetConfiguration(
  services: LocalFiles,
  { cluster, file }: Pick<ResolvedFleet, 'cluster' | 'file'>,
): Promise<LoadedConfig> {
  const path = cluster.configuration && resolveFleetPath(cluster.configuration, file, services.homeDirectory);
  const loaded = await loadConfigFile(services, path ?? undefined, CONFIGURATION_KINDS);
  const isDeclared = loaded.cluster?.controlPlaneEndpoint !== undefined;
  const flags = !isDeclared && cluster.endpoint !== null ? { 'control-plane-endpoint': cluster.endpoint } : {};
  const config = mergeInitFlags(loaded, flags);
  requireValid(config);
  return config;
}

export async function readFleetPatches(
  services: LocalFiles,
  { patches }: InitConfiguration,
  { file, reporter }: { readonly file: string; readonly reporter: Reporter },
): Promise<readonly PlannedPatch[]> {
  if (patches?.directory === undefined) return [];
  return readPatches(services, resolveFleetPath(patches.directory, file, services.homeDirectory), reporter);
}

/** The settings in the InitConfiguration that apply to every control plane of a fleet. */
export interface ControlPlaneSettings {
  /** Without the name, which is unique per host. */
  readonly init: InitConfiguration;
  /** Null: the fleet has no configuration that could set patches. */
  readonly patches: readonly PlannedPatch[] | null;
}

/** @throws AppError with exit code 2 */
export async function readControlPlaneSettings(
  services: LocalFiles,
  input: Pick<ResolvedFleet, 'cluster' | 'file'> & { readonly reporter: Reporter },
): Promise<ControlPlaneSettings> {
  if (input.cluster.configuration === null) return { init: {}, patches: null };
  const { init = {} } = await readFleetConfiguration(services, input);
  const { name: _, ...nodeRegistration } = init.nodeRegistration ?? {};
  return { init: { ...init, nodeRegistration }, patches: await readFleetPatches(services, init, input) };
}

/**
 * The registration settings of a host: those of all control planes, overridden by the settings of the host.
 */
export function registrationOf({ nodeRegistration = {} }: InitConfiguration, own: NodeRegistration): NodeRegistration {
  const kubeletExtraArgs = [...(nodeRegistration.kubeletExtraArgs ?? []), ...(own.kubeletExtraArgs ?? [])];
  return { ...nodeRegistration, ...own, kubeletExtraArgs };
}
