import { goDurationMs } from '../../base/text/go-duration.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { keptPhases, type PlanOnHost, planWorkflow, type Workflow } from '../../host/run-workflow.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import { DEFAULT_TIMEOUTS } from '../../kubeadm/config/defaults.ts';
import type { Timeouts, UpgradeApply, UpgradeNode } from '../../kubeadm/config/model.ts';
import { localServer } from '../../kubeadm/control-plane/model.ts';
import { manifestPath } from '../../kubeadm/control-plane/paths.ts';
import { apiEndpointOf } from '../../kubeadm/upgrade/static-pod-state.ts';
import { controlPlaneConnector, etcdConnector, proxyEnvironment } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { isForKubelet } from '../../kubeadm/use-cases/node-options.ts';
import { type ApiAccess, apiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import { noControlPlane } from '../../kubeadm/workflows/upgrade/control-plane-host.ts';
import type { ControlPlaneUpgradeOptions } from '../../kubeadm/workflows/upgrade/control-plane-upgrade.ts';
import { planRecovery } from '../../kubeadm/workflows/upgrade/plan-recovery.ts';
import type { UpgradeNodeOptions } from '../../kubeadm/workflows/upgrade/upgrade-node.ts';
import type { PlannedPatch } from '../../kubelet/layers/patch-files.ts';
import { type HostTarget, isLocalHost } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { CommandScope } from './run-hosts.ts';

interface OpenControlPlaneUpgrade {
  readonly node: UpgradeNodeOptions;
  readonly settings: UpgradeApply | UpgradeNode;
  readonly timeouts: Timeouts | undefined;
  /** All patches of the directory; null: no directory was given. */
  readonly patches: readonly PlannedPatch[] | null;
  readonly targets: readonly HostTarget[];
  /** The cluster of `--kubeconfig`; null: admin.conf of the host is used. */
  readonly given: Cluster | null;
}

/**
 * Plans a workflow on a control plane host. If an interrupted upgrade left a component that does not run, its rollback is
 * planned instead.
 */
type PlanUpgrade = <Options, Input>(
  workflow: Workflow<Options, Input>,
  optionsOf: (common: ControlPlaneUpgradeOptions) => Options,
) => PlanOnHost;

/** The planner that `upgrade apply` and `upgrade node` share for control planes. */
export async function openControlPlaneUpgrades(
  services: NodeCommandPorts,
  { node, settings, timeouts = {}, patches, targets, given }: OpenControlPlaneUpgrade,
  opened: CommandScope['opened'],
): Promise<PlanUpgrade> {
  const common: Omit<ControlPlaneUpgradeOptions, 'api' | 'selects'> = {
    ...node,
    staticPodPatches: (patches ?? []).filter((patch) => !isForKubelet(patch)),
    certificateRenewal: settings.certificateRenewal ?? true,
    etcdUpgrade: settings.etcdUpgrade ?? true,
    imagePullPolicy: settings.imagePullPolicy ?? 'IfNotPresent',
    timeouts,
    proxyEnvironment: isLocalHost(targets[0]) ? proxyEnvironment(services.env) : null,
    issuer: await services.certificateIssuer(),
    connectEtcd: etcdConnector(services),
  };
  const timeoutMs = goDurationMs(timeouts.upgradeManifests ?? DEFAULT_TIMEOUTS.upgradeManifests);
  return (workflow, optionsOf) => async (context, run) => {
    const api = given === null ? opened(await adminAccess(services, context)) : fixedAccess(given);
    const recovery = await planRecovery(context, run, { api, timeoutMs });
    return recovery ?? planWorkflow(workflow, context, optionsOf({ ...common, api, selects: keptPhases(run) }), run);
  };
}

function fixedAccess(cluster: Cluster): ApiAccess {
  return { reach: async () => cluster, close: async () => undefined };
}

/**
 * Access to the API server of the host with its admin.conf.
 * @throws AppError CONTROL_PLANE_MISSING, exit code 3
 */
async function adminAccess(services: NodeCommandPorts, context: PhaseContext): Promise<ApiAccess> {
  const files = await observe(context.host, fileFacts([ADMIN_CONF, manifestPath('kube-apiserver')]), context.signal);
  const text = files.get(ADMIN_CONF)?.content;
  const endpoint = apiEndpointOf(files.get(manifestPath('kube-apiserver'))?.content ?? '');
  if (endpoint === null) throw noControlPlane(context.host.name);
  return apiAccess({
    connect: controlPlaneConnector(services),
    local: { server: localServer(endpoint), port: endpoint.bindPort },
    kubeconfig: () => (text === undefined ? null : { path: ADMIN_CONF, text: new SensitiveText([new Secret(text)]) }),
  });
}
