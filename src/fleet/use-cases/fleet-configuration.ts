import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import type { InitConfiguration, NodeRegistration } from '../../kubeadm/config/model.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { readPatches } from '../../kubeadm/use-cases/node-options.ts';
import type { PlannedPatch } from '../../kubelet/patch-files.ts';
import type { FleetCluster } from '../model.ts';
import { besideFleet } from './load-fleet.ts';

export interface FleetConfigurationInput {
  readonly cluster: FleetCluster;
  /** The fleet file: relative paths count from there. */
  readonly file: string;
}

/**
 * The kubeadm documents of `cluster.configuration`. Where they name no endpoint, the one that the file names is that of all control planes.
 * @throws AppError with exit code 2: what is wrong in them
 */
export async function readFleetConfiguration(services: LocalFiles, { cluster, file }: FleetConfigurationInput): Promise<LoadedConfig> {
  const path = cluster.configuration && besideFleet(cluster.configuration, file, services.homeDirectory);
  const kinds = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration', 'KubeProxyConfiguration'] as const;
  const loaded = await loadConfigFile(services, path ?? undefined, kinds);
  const isDeclared = loaded.cluster?.controlPlaneEndpoint !== undefined;
  const flags = !isDeclared && cluster.endpoint !== null ? { 'control-plane-endpoint': cluster.endpoint } : {};
  const config = mergeInitFlags(loaded, flags);
  requireValid(config);
  return config;
}

/** The patches that an InitConfiguration of a fleet names. */
export async function readFleetPatches(
  services: LocalFiles,
  { patches }: InitConfiguration,
  { file, reporter }: { readonly file: string; readonly reporter: Reporter },
): Promise<readonly PlannedPatch[]> {
  if (patches?.directory === undefined) return [];
  return readPatches(services, besideFleet(patches.directory, file, services.homeDirectory), reporter);
}

/** What the InitConfiguration says of every control plane of a fleet, whichever of them made the cluster. */
export interface ControlPlaneSettings {
  /** Without the name, which is one host's. */
  readonly init: InitConfiguration;
  /** Null: the fleet has no configuration that could name some. */
  readonly patches: readonly PlannedPatch[] | null;
}

/** @throws AppError with exit code 2 */
export async function readControlPlaneSettings(
  services: LocalFiles,
  input: FleetConfigurationInput & { readonly reporter: Reporter },
): Promise<ControlPlaneSettings> {
  if (input.cluster.configuration === null) return { init: {}, patches: null };
  const { init = {} } = await readFleetConfiguration(services, input);
  const { name: _, ...nodeRegistration } = init.nodeRegistration ?? {};
  return { init: { ...init, nodeRegistration }, patches: await readFleetPatches(services, init, input) };
}

/** What a host registers with: what is declared for all control planes, and the host's own over it. */
export function registrationOf({ nodeRegistration = {} }: InitConfiguration, own: NodeRegistration): NodeRegistration {
  const kubeletExtraArgs = [...(nodeRegistration.kubeletExtraArgs ?? []), ...(own.kubeletExtraArgs ?? [])];
  return { ...nodeRegistration, ...own, kubeletExtraArgs };
}
