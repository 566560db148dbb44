import { type Problem, usageError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import { type DiffSide, type DiffSideContext, readDiffSide } from '../../kubeadm/use-cases/read-diff-side.ts';
import { DEFAULT_MINOR, type Minor, OLDEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { type ConfigSide, diffConfigs } from '../../kubelet/diff/diff-configs.ts';
import { decodeDeclaredFields } from '../../kubelet/documents/decode.ts';
import { mergeConfig } from '../../kubelet/layers/layers.ts';
import { readMinor } from '../../kubelet/minor-option.ts';
import { declaredConfiguration } from '../file/inventory-document.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { ConnectionRequest } from './host-access.ts';
import { fleetFileOf } from './load-fleet.ts';
import { findTarget } from './named-hosts.ts';

export interface CompareRequest {
  /** The compared configurations, as the user names them. */
  readonly sides: readonly [string, string];
  /** The fleet file of names; undefined: `fleet.yaml`, if it exists. */
  readonly file?: string | undefined;
  /** Undefined: the version of each side. */
  readonly kubernetesVersion: string | undefined;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/**
 * Compares the effective configurations of two kubelets. A side without a version has the version of the other.
 * @param warning receives the settings that the kubelet ignores, because they are not compared
 * @throws AppError USAGE (exit code 2) for an unknown version; the errors of `readDiffSide`
 */
export async function compareConfigs(services: NodeCommandPorts, request: CompareRequest, warning: (problem: Problem) => void) {
  const { sides, kubernetesVersion: version, connection } = request;
  const chosen = version === undefined ? null : readMinor(version, 'kubernetes-version', OLDEST_MINOR);
  const catalogue = await loadCatalogue();
  const cluster = lazyCluster(services, request.cluster);
  try {
    const { input, signal } = services;
    const connectTo = async (address: string): Promise<Host> => {
      const found = await findTarget(services, { name: address, file: request.file, connection }, { changes: false, others: 'addresses' });
      return services.connectHost(found.target);
    };
    const context = { input, signal, connectTo, catalogue, cluster: cluster.open };
    const read = (side: string): Promise<DiffSide> => readSide(services, request, { side, context });
    const [a, b] = [await read(sides[0]), await read(sides[1])];
    const before = toSide(a, chosen ?? a.minor ?? b.minor, warning);
    const after = toSide(b, chosen ?? b.minor ?? a.minor, warning);
    return { before, after, diff: diffConfigs(before, after, catalogue) };
  } finally {
    await cluster.close();
  }
}

/**
 * A side of `readDiffSide`, or `fleet/NAME`: the configuration on a host with the fields that the fleet file declares for the
 * host, as `apply` would write them. A file of this name is read as a file.
 */
async function readSide(
  services: NodeCommandPorts,
  { file, connection }: CompareRequest,
  { side, context }: { readonly side: string; readonly context: DiffSideContext },
): Promise<DiffSide> {
  const name = /^fleet\/(.+)$/.exec(side)?.[1];
  if (name === undefined || (await services.input.exists(side))) return readDiffSide(side, context);
  const { member, target } = await findTarget(services, { name, file, connection }, { changes: false });
  if (member === null)
    throw usageError(`${side}: ${fleetFileOf(file)} does not exist, or has no host ${name}`, 'Pass the fleet file with --fleet');
  const declared = declaredConfiguration(member);
  const found = await readDiffSide(`host/${name}`, { ...context, connectTo: () => services.connectHost(target) });
  return {
    name: side,
    minor: found.minor,
    configOf: (minor) => {
      const { config, warnings } = found.configOf(minor);
      return { config: mergeConfig(config, decodeDeclaredFields(declared, { minor, catalogue: context.catalogue })), warnings };
    },
  };
}

function toSide({ name, configOf }: DiffSide, minor: Minor | null, warning: (problem: Problem) => void): ConfigSide {
  const known = minor ?? DEFAULT_MINOR;
  const { config, warnings } = configOf(known);
  for (const one of warnings) warning(one);
  return { name, minor: known, config };
}
