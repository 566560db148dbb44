import { type ExitCode, formatProblem } from '../base/errors.ts';
import { type ConnectionRequest, readHostTarget } from '../fleet/use-cases/host-access.ts';
import type { Host } from '../host/host.ts';
import { clusterOnUse } from '../kubeadm/use-cases/cluster-on-use.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { type ReadSide, readSide } from '../kubeadm/use-cases/read-side.ts';
import { loadCatalogue, type Minor, NEWEST_MINOR, OLDEST_MINOR } from '../kubelet/catalogue.ts';
import { type ConfigSide, diffConfigs } from '../kubelet/diff/diff-configs.ts';
import { diffDocument, renderDiff } from '../kubelet/diff/render-diff.ts';
import { readMinor } from '../kubelet/minor-option.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface ConfigDiffRequest {
  /** The compared configurations, as the user names them. */
  readonly sides: readonly [string, string];
  /** Undefined: the version of each side. */
  readonly kubernetesVersion: string | undefined;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
  readonly format: DocumentFormat;
  /** Exit code 6 if they differ. */
  readonly failsIfDifferent: boolean;
}

/** `config diff A B`: exit code 6 with `--exit-code` when the effective configurations differ. */
export async function runDiff(services: Services, request: ConfigDiffRequest): Promise<ExitCode> {
  const { sides, kubernetesVersion: version, connection, format } = request;
  const chosen = version === undefined ? null : readMinor(version, 'kubernetes-version', OLDEST_MINOR);
  const catalogue = await loadCatalogue();
  const cluster = clusterOnUse(services, request.cluster);
  try {
    const { input, signal } = services;
    const connectTo = async (address: string): Promise<Host> => services.connectHost(await readHostTarget(services, address, connection));
    const context = { input, signal, connectTo, catalogue, cluster: cluster.open };
    const [a, b] = [await readSide(sides[0], context), await readSide(sides[1], context)];
    const [before, after] = [toSide(services, a, chosen ?? a.minor ?? b.minor), toSide(services, b, chosen ?? b.minor ?? a.minor)];
    const diff = diffConfigs(before, after, catalogue);
    services.output.stdout(format === 'text' ? renderDiff(diff, before, after) : renderDocument(diffDocument(diff, before, after), format));
    return request.failsIfDifferent && diff.differences.length > 0 ? 6 : 0;
  } finally {
    await cluster.close();
  }
}

/** Warns of settings that the kubelet ignores, because they are not compared. */
function toSide({ output }: Services, { name, configOf }: ReadSide, minor: Minor | null): ConfigSide {
  const known = minor ?? NEWEST_MINOR;
  const { config, warnings } = configOf(known);
  for (const warning of warnings) output.stderr(`warning: ${formatProblem(warning)}\n`);
  return { name, minor: known, config };
}
