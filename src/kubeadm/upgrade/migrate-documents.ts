import { isAppError, type Problem } from '../../base/errors.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type Catalogue, type Minor, nearestKnownMinor, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import type { MigrationStep } from '../../kubelet/migrate/migrate-fields.ts';
import { migrateKubelet } from '../../kubelet/migrate/migrate-kubelet.ts';
import { dataOf } from '../cluster-objects/cluster-info.ts';
import { isGenerated, KUBELET_CONFIG_KEY } from '../cluster-objects/kubelet-config-map.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { releaseFacts } from '../config/releases.ts';

export interface ClusterMigrationInput {
  /** Of kubeadm-config. */
  readonly cluster: ClusterConfiguration;
  /** ConfigMap kubelet-config; null: it does not exist. */
  readonly kubelet: KubeObject | null;
  /** Versions of the control plane: `v1.35.6`. */
  readonly from: string;
  readonly target: string;
  readonly catalogue: Catalogue;
  /** `--force`: settings that the new kubelet does not support are removed instead of refused. Default false. */
  readonly force?: boolean;
}

const KUBEADM_CONFIG = 'ConfigMap kube-system/kubeadm-config';
const KUBELET_CONFIG = 'ConfigMap kube-system/kubelet-config';

/**
 * The ClusterConfiguration and KubeletConfiguration of a cluster for another version. Comments and order of the
 * KubeletConfiguration are kept.
 * @returns `cluster`: with the new `kubernetesVersion`, without feature gates that the new kubeadm does not know; `kubelet`:
 *   the new text of the ConfigMap's key, and whether it carries kubeadm's hash as before, null: no ConfigMap; `notes`: each
 *   change of the documents, and what changes without one; `refusals`: what the new kubelet would refuse
 */
export function migrateClusterDocuments(input: ClusterMigrationInput) {
  const { cluster, notes } = migrateCluster(input);
  const kubelet = migrateKubeletConfig(input);
  return { ...kubelet, cluster, notes: [...notes, ...kubelet.notes] };
}

function migrateCluster({ cluster, target }: ClusterMigrationInput) {
  const { featureGates: before, ...others } = cluster;
  const known = releaseFacts(target).featureGates;
  const gates = Object.entries(before ?? {});
  const [kept, removed] = [gates.filter(([name]) => known.includes(name)), gates.filter(([name]) => !known.includes(name))];
  const notes = removed.map(([name]) => note('featureGates', `feature gate ${name} is removed: kubeadm of ${target} does not know it`));
  const pinned = [
    { path: 'etcd.local.imageTag', tag: cluster.etcd?.local?.imageTag, own: releaseFacts(target).etcd },
    { path: 'dns.imageTag', tag: cluster.dns?.imageTag, own: releaseFacts(target).coredns },
  ].flatMap(({ path, tag, own }) =>
    tag === undefined || tag === own ? [] : [note(path, `${path} keeps the image tag ${tag}, although the default of ${target} is ${own}`)],
  );
  const featureGates = kept.length === 0 ? {} : { featureGates: Object.fromEntries(kept) };
  return { cluster: { ...others, ...featureGates, kubernetesVersion: target }, notes: [...notes, ...pinned] };
}

function note(path: string, message: string): Warning {
  return { code: 'UPGRADE_CONFIG_MIGRATED', field: path, message: `${KUBEADM_CONFIG}: ${message}` };
}

function migrateKubeletConfig(input: ClusterMigrationInput): {
  readonly kubelet: { readonly yaml: string; readonly generated: boolean } | null;
  readonly notes: readonly Warning[];
  readonly refusals: readonly Problem[];
} {
  const { kubelet, catalogue, force = false } = input;
  const text = kubelet === null ? undefined : dataOf(kubelet)[KUBELET_CONFIG_KEY];
  if (kubelet === null || text === undefined) return { kubelet: null, notes: [], refusals: [] };
  const options = { from: knownMinor(input.from), to: knownMinor(input.target), catalogue, flags: [], keepDefaults: false };
  try {
    const migrated = migrateKubelet(text, KUBELET_CONFIG, options);
    const [lost, done] = [migrated.steps.filter(({ lossy }) => lossy && !force), migrated.steps.filter(({ lossy }) => !lossy || force)];
    const errors = migrated.problems.filter(({ severity }) => severity !== 'warning');
    return {
      kubelet: { yaml: migrated.text, generated: isGenerated(kubelet) },
      notes: [...done.map(stepNote), ...migrated.problems.filter(({ severity }) => severity === 'warning').map(problemNote)],
      refusals: [...lost.map(lostProblem), ...errors],
    };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { kubelet: { yaml: text, generated: isGenerated(kubelet) }, notes: [], refusals: error.problems };
  }
}

/** A version outside of the catalogue has the rules of the nearest minor in it. */
function knownMinor(version: string): Minor {
  return nearestKnownMinor(parseMinor(version) ?? Number.POSITIVE_INFINITY);
}

function stepNote({ did, what, message }: MigrationStep): Warning {
  return { code: 'UPGRADE_CONFIG_MIGRATED', field: what, message: `${KUBELET_CONFIG}: ${did}: ${what}: ${message}` };
}

function problemNote({ code, path, message }: Problem): Warning {
  return { code, field: path, message: `${KUBELET_CONFIG}: ${path ?? ''} ${message}` };
}

function lostProblem({ what, message }: MigrationStep): Problem {
  return {
    code: 'MIGRATION_LOSES',
    path: what,
    message: `${KUBELET_CONFIG}: ${message}`,
    hint: 'Remove the setting from the ConfigMap (kubectl -n kube-system edit configmap kubelet-config), or accept the loss with --force',
  };
}
