import { isAppError } from '../../base/errors.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { observe } from '../../host/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import { KUBERNETES_DIR } from '../../kube/well-known.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../config/defaults.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { type FoundAuthority, type FoundRenewable, findCertificates, renewablePaths } from '../pki/renewable.ts';
import { readClusterConfiguration } from './cluster-baseline.ts';

export interface PkiSettings {
  /** As declared; null: what the cluster says, and kubeadm's defaults where it cannot be asked. */
  readonly cluster: ClusterConfiguration | null;
  /** In place of the cluster's. */
  readonly certificatesDir: string | null;
}

export interface ExistingCertificates {
  readonly cluster: DefaultedCluster;
  readonly facts: ReadonlyMap<string, FileFact | null>;
  readonly found: (path: string) => string | null;
  readonly certificates: readonly FoundRenewable[];
  readonly authorities: readonly FoundAuthority[];
  readonly warnings: readonly Warning[];
}

/** The certificates of a control plane as they are on a host, and the settings by which they are made. */
export async function inspectCertificates(
  context: Pick<PhaseContext, 'host' | 'cluster' | 'signal'>,
  settings: PkiSettings,
): Promise<ExistingCertificates> {
  const { model, warnings } = await settingsOf(context.cluster, settings);
  const { certificatesDir } = settings;
  const cluster = applyClusterDefaults({ ...model, ...(certificatesDir === null ? {} : { certificatesDir }) });
  const places = { cluster, kubernetesDir: KUBERNETES_DIR };
  const facts = await observe(context.host, fileFacts(renewablePaths(places)), context.signal);
  const found = (path: string): string | null => facts.get(path)?.content ?? null;
  return { cluster, facts, found, ...findCertificates(places, found), warnings };
}

/** A cluster that does not answer is no reason not to renew: perhaps it is because its certificates ended. */
async function settingsOf(
  cluster: PhaseContext['cluster'],
  settings: PkiSettings,
): Promise<{ readonly model: ClusterConfiguration; readonly warnings: readonly Warning[] }> {
  if (settings.cluster !== null) return { model: settings.cluster, warnings: [] };
  if (cluster === null) return { model: {}, warnings: [] };
  try {
    const { model, warnings } = await readClusterConfiguration(cluster);
    return { model: model ?? {}, warnings };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const why = error.problems[0]?.message ?? '';
    const message = `kubeadm-config cannot be read, so kubeadm's defaults count (--config says otherwise): ${why}`;
    return { model: {}, warnings: [{ code: 'CLUSTER_CONFIG_UNKNOWN', message }] };
  }
}
