import { AppError } from '../../../base/errors.ts';
import { releaseOfVersion } from '../../../base/kubernetes-version.ts';
import type { ClusterContext, PhaseContext } from '../../../host/phase.ts';
import type { CheckResult, Workflow } from '../../../host/run-workflow.ts';
import { KUBE_SYSTEM, KUBELET_CONFIG_NAME } from '../../../kube/well-known.ts';
import { NEWEST_MINOR, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { applyClusterDefaults } from '../../config/defaults.ts';
import { encodeClusterConfiguration } from '../../config/encode.ts';
import { bootstrapTokenRbac } from '../../phases/bootstrap-token.ts';
import { uploadConfigKubeadm, uploadConfigKubelet } from '../../phases/upload-config.ts';
import { migrateClusterDocuments } from '../../upgrade/migrate-documents.ts';
import { deferUntilApiServer } from '../control-plane/api-access.ts';
import { checkUpgrade } from './checks.ts';
import { type AdminCluster, readAdminCluster } from './control-plane-host.ts';
import {
  addonPhases,
  type ControlPlaneUpgradeOptions,
  kubeconfigPhase,
  kubeletConfigPhases,
  postUpgradePhase,
  prepareControlPlaneUpgrade,
  upgradeControlPlanePhases,
} from './control-plane-upgrade.ts';

export interface UpgradeApplyOptions extends ControlPlaneUpgradeOptions {
  /** The version to upgrade to: `v1.36.2`, or `ci/v1.36.2-10+abcdef`. */
  readonly version: string;
  readonly allowExperimental: boolean;
  readonly allowReleaseCandidates: boolean;
  /** Problems that kubeadm's `--force` skips are warnings. */
  readonly force: boolean;
  /** Whether the preflight checks of the cluster run. */
  readonly checks: boolean;
  /** Receives the ClusterConfiguration of the upgrade (`--print-config`); null: it is not printed. */
  readonly showConfig: ((cluster: ReturnType<typeof encodeClusterConfiguration>) => void) | null;
}

/** Upgrades the first control plane of a cluster and the cluster's configuration. Phases in the order of kubeadm 1.36. */
export const upgradeApplyWorkflow: Workflow<UpgradeApplyOptions, Awaited<ReturnType<typeof prepareUpgradeApply>>['input']> = {
  name: 'upgrade apply',
  phases: [
    ...upgradeControlPlanePhases,
    deferUntilApiServer(uploadConfigKubeadm, (input) => input.uploadKubeadm),
    deferUntilApiServer(uploadConfigKubelet, (input) => input.uploadKubelet),
    kubeconfigPhase,
    ...kubeletConfigPhases,
    deferUntilApiServer(bootstrapTokenRbac, () => null),
    ...addonPhases,
    postUpgradePhase,
  ],
  prepare: prepareUpgradeApply,
};

/** The phases of the static Pods, and their verification. */
const ESSENTIAL = /^(?:control-plane\/(?:etcd|apiserver|controller-manager|scheduler)|post-upgrade)$/;

/** The phases that a run skips, in order. */
export function skippedUpgradePhases(selects: (phase: string) => boolean): readonly string[] {
  return ['preflight', ...upgradeApplyWorkflow.phases.map(({ name }) => name)].filter((name) => !selects(name));
}

/** Whether the control plane is not upgraded, or not verified, without a phase. */
export function isEssentialPhase(name: string): boolean {
  return ESSENTIAL.test(name);
}

async function prepareUpgradeApply(context: PhaseContext, options: UpgradeApplyOptions) {
  const admin = await readAdminCluster(context, options.api);
  const { catalogue, force, version } = options;
  const { cluster } = admin;
  const target = releaseOfVersion(version);
  const checked = options.checks ? await checkCluster({ ...context, cluster }, options, admin) : NO_FINDINGS;
  const kubelet = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: KUBELET_CONFIG_NAME });
  const migrated = migrateClusterDocuments({ cluster: admin.model, kubelet, from: await cluster.version(), target, catalogue, force });
  const refusals = [...checked.refusals, ...migrated.refusals.map((problem) => ({ host: context.host.name, ...problem }))];
  // A refused configuration cannot be rendered, and hides no other problem.
  if (migrated.refusals.length > 0) throw new AppError(refusals, { exitCode: 3 });
  const model = { ...migrated.cluster, kubernetesVersion: version };
  const documents = { version, cluster: model, kubelet: migrated.kubelet?.yaml ?? null };
  const prepared = await prepareControlPlaneUpgrade({ ...context, cluster }, options, documents);
  const clusterConfiguration = encodeClusterConfiguration(applyClusterDefaults(model));
  options.showConfig?.(clusterConfiguration);
  return {
    ...prepared,
    input: {
      ...prepared.input,
      uploadKubeadm: {
        clusterConfiguration,
        currentConfiguration: encodeClusterConfiguration(applyClusterDefaults(admin.model)),
      },
      uploadKubelet: {
        controlPlaneMinor: parseMinor(target) ?? NEWEST_MINOR,
        yaml: migrated.kubelet?.yaml ?? '',
        generated: migrated.kubelet?.generated ?? true,
        forceUpload: true,
      },
    },
    warnings: [...admin.warnings, ...checked.warnings, ...migrated.notes, ...prepared.warnings],
    refusals: [...refusals, ...prepared.refusals],
  };
}

const NO_FINDINGS: CheckResult = { refusals: [], warnings: [] };

function checkCluster(context: ClusterContext, options: UpgradeApplyOptions, { model }: AdminCluster): Promise<CheckResult> {
  const { allowExperimental, allowReleaseCandidates, force, run, version } = options;
  return checkUpgrade(context, {
    cluster: model,
    target: releaseOfVersion(version),
    versions: { allowExperimental, allowReleaseCandidates, force },
    run,
  });
}
