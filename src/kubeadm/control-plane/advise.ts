import { cidrContains, formatCidr, parseIp } from '../../base/text/ip.ts';
import type { Warning } from '../../host/plan/change.ts';
import { parseSubnets } from '../config/dns-ip.ts';
import { argValue } from '../config/model.ts';
import { staticPodNames, staticPodOf } from './manifests.ts';
import type { ControlPlaneNode } from './model.ts';

/**
 * Warnings about settings that may not work as intended, where kubeadm prints nothing or only logs a line.
 * The settings are applied anyway.
 */
export function adviseControlPlane(node: ControlPlaneNode): readonly Warning[] {
  return [...adviseRootless(node), ...adviseAuthorization(node), ...adviseDataDir(node), ...adviseMounts(node), ...adviseNetworks(node)];
}

function adviseRootless({ cluster }: ControlPlaneNode): readonly Warning[] {
  if (cluster.featureGates?.RootlessControlPlane !== true) return [];
  const message =
    'the feature gate RootlessControlPlane has no effect: kubeletadm does not implement it, and the control plane components run as root';
  return [{ code: 'ROOTLESS_NOT_DONE', field: 'featureGates.RootlessControlPlane', message }];
}

const MODES: ReadonlySet<string> = new Set(['Node', 'RBAC', 'Webhook', 'ABAC', 'AlwaysAllow', 'AlwaysDeny']);

/** @see kubeadm 1.36 phases/controlplane, which warns of unknown modes and of missing default modes */
function adviseAuthorization({ cluster }: ControlPlaneNode): readonly Warning[] {
  const given = argValue(cluster.apiServer.extraArgs, 'authorization-mode');
  if (given === undefined) return [];
  const field = 'apiServer.extraArgs.authorization-mode';
  const modes = given.split(',');
  const unknown = modes.filter((mode) => !MODES.has(mode));
  const lacking = ['Node', 'RBAC'].filter((mode) => !modes.includes(mode) && !modes.includes('AlwaysAllow'));
  const warnings: Warning[] = [];
  if (unknown.length > 0) {
    const message = `authorization-mode of kube-apiserver contains the unknown mode ${unknown.map((mode) => JSON.stringify(mode)).join(', ')}: kube-apiserver will fail at startup`;
    warnings.push({ code: 'AUTHORIZATION_MODE_UNKNOWN', field, message });
  }
  if (lacking.length > 0) {
    const message = `authorization-mode of kube-apiserver is ${given}, without ${lacking.join(' and ')}. Add ${lacking.join(' and ')}, unless another authorizer grants nodes and components their permissions`;
    warnings.push({ code: 'AUTHORIZATION_MODE_DIFFERS', field, message });
  }
  return warnings;
}

function adviseDataDir({ cluster }: ControlPlaneNode): readonly Warning[] {
  const { local } = cluster.etcd;
  const given = argValue(local?.extraArgs, 'data-dir');
  if (local === undefined || given === undefined || given === local.dataDir) return [];
  const message = `etcd would write its data to ${given} (data-dir), which is not a directory of the host: the data is lost when the Pod is replaced. Set etcd.local.dataDir instead of the argument data-dir`;
  return [{ code: 'ETCD_DATA_DIR', field: 'etcd.local.extraArgs.data-dir', message }];
}

/** A kubelet rejects a Pod that mounts one path twice. */
function adviseMounts(node: ControlPlaneNode): readonly Warning[] {
  return staticPodNames(node).flatMap((name) => {
    const { spec } = staticPodOf(node, name) as {
      readonly spec?: { readonly containers?: readonly { readonly volumeMounts?: readonly { readonly mountPath?: string }[] }[] };
    };
    const twice = (spec?.containers ?? []).flatMap(({ volumeMounts = [] }) =>
      repeated(volumeMounts.map(({ mountPath = '' }) => mountPath)),
    );
    return twice.map((path): Warning => {
      const message = `${name}: two volumes are mounted at ${path}, so the kubelet will reject the Pod. Give the volume in extraVolumes the name of the volume that it replaces`;
      return { code: 'MOUNTED_TWICE', message };
    });
  });
}

function repeated(values: readonly string[]): readonly string[] {
  return [...new Set(values.filter((value, i) => values.indexOf(value) !== i))];
}

/**
 * Addresses in Service and Pod subnets are translated or routed inside the cluster, so a node with such an
 * address is unreachable.
 */
function adviseNetworks({ cluster, localAPIEndpoint: { advertiseAddress } }: ControlPlaneNode): readonly Warning[] {
  const address = parseIp(advertiseAddress);
  return (['serviceSubnet', 'podSubnet'] as const).flatMap((name) => {
    const subnets = parseSubnets(cluster.networking[name] ?? '') ?? [];
    const found = address === null ? undefined : subnets.find((subnet) => cidrContains(subnet, address));
    if (found === undefined) return [];
    const clients = name === 'podSubnet' ? 'pods' : 'services';
    const message = `the node address ${advertiseAddress} is inside the subnet of ${clients} (${formatCidr(found)}), so the node would be unreachable. Choose another subnet`;
    return [{ code: 'NODE_IN_SUBNET', field: `networking.${name}`, message }];
  });
}
