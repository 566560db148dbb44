import { isAppError } from '../../../base/errors.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { KUBERNETES_DIR } from '../../../kube/well-known.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../../config/defaults.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { type FoundCa, type FoundRenewable, findCertificates, renewablePaths } from '../../pki/renewable.ts';
import { readClusterConfiguration } from '../node/cluster-baseline.ts';

export interface PkiSettings {
  /** As declared; null: kubeadm-config of the cluster, or kubeadm's defaults if it cannot be read. */
  readonly cluster: ClusterConfiguration | null;
  /** Overrides certificatesDir of the cluster. */
  readonly certificatesDir: string | null;
}

export interface ExistingCertificates {
  readonly cluster: DefaultedCluster;
  readonly facts: ReadonlyMap<string, FileFact | null>;
  readonly found: (path: string) => string | null;
  readonly certificates: readonly FoundRenewable[];
  readonly cas: readonly FoundCa[];
  readonly warnings: readonly Warning[];
  /** Whether kubeadm-config of the cluster was read; null: it was not requested. */
  readonly hasReadCluster: boolean | null;
}

/** Reads the certificates of a control plane host, and the settings for issuing them. */
export async function inspectCertificates(
  context: Pick<PhaseContext, 'host' | 'cluster' | 'signal'>,
  settings: PkiSettings,
): Promise<ExistingCertificates> {
  const { model, warnings, hasReadCluster } = await settingsOf(context.cluster, settings);
  const { certificatesDir } = settings;
  const cluster = applyClusterDefaults({ ...model, ...(certificatesDir === null ? {} : { certificatesDir }) });
  const places = { cluster, kubernetesDir: KUBERNETES_DIR };
  const facts = await observe(context.host, fileFacts(renewablePaths(places)), context.signal);
  const found = (path: string): string | null => facts.get(path)?.content ?? null;
  return { cluster, facts, found, ...findCertificates(places, found), warnings, hasReadCluster };
}

/** An unreachable cluster is only a warning: expired certificates, which are about to be renewed, may be the cause. */
async function settingsOf(
  cluster: PhaseContext['cluster'],
  settings: PkiSettings,
): Promise<Pick<ExistingCertificates, 'warnings' | 'hasReadCluster'> & { readonly model: ClusterConfiguration }> {
  if (settings.cluster !== null) return { model: settings.cluster, warnings: [], hasReadCluster: null };
  if (cluster === null) return { model: {}, warnings: [], hasReadCluster: null };
  try {
    const { model, warnings } = await readClusterConfiguration(cluster);
    return { model: model ?? {}, warnings, hasReadCluster: model !== null };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const why = error.problems[0]?.message ?? '';
    const message = `cannot read kubeadm-config: ${why}. kubeadm's defaults are used; override them with --config`;
    return { model: {}, warnings: [{ code: 'CLUSTER_CONFIG_UNKNOWN', message }], hasReadCluster: false };
  }
}
