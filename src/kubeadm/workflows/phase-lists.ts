/** A phase in the help. Separate from the phases, so that help does not load them; a test compares both lists. */
export interface PhaseHelp {
  readonly name: string;
  readonly short: string;
}

const PREFLIGHT: PhaseHelp = { name: 'preflight', short: 'Run the preflight checks' };
const KUBELET_START: PhaseHelp = { name: 'kubelet-start', short: 'Write the kubelet configuration and (re)start the kubelet' };
const SAVE_SETTINGS: PhaseHelp = {
  name: 'kubelet-start/remember',
  short: 'Store the settings of this command (options and files) on the host, for later upgrades',
};
const WAIT_BOOTSTRAP: PhaseHelp = { name: 'kubelet-wait-bootstrap', short: 'Wait for the TLS bootstrap of the kubelet' };

const PULL_IMAGES: PhaseHelp = { name: 'preflight/pull-images', short: 'Pull the control plane images' };
const WAIT_CONTROL_PLANE: PhaseHelp = { name: 'wait-control-plane', short: 'Wait for the control plane to start' };

/** The phases of init, in order. With an existing API server the control plane phases are skipped. */
export const INIT_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  PULL_IMAGES,
  {
    name: 'certs',
    short:
      'Generate certificates and keys: ca, apiserver, apiserver-kubelet-client, front-proxy-ca, front-proxy-client, ' +
      'etcd-ca, etcd-server, etcd-peer, etcd-healthcheck-client, apiserver-etcd-client, sa',
  },
  { name: 'kubeconfig', short: 'Generate kubeconfig files: admin, super-admin, kubelet, controller-manager, scheduler' },
  { name: 'etcd/local', short: 'Write the static Pod manifest of the local etcd member' },
  { name: 'control-plane', short: 'Write the static Pod manifests: apiserver, controller-manager, scheduler' },
  KUBELET_START,
  SAVE_SETTINGS,
  { ...WAIT_BOOTSTRAP, short: `${WAIT_BOOTSTRAP.short} (only with --kubeconfig)` },
  WAIT_CONTROL_PLANE,
  { name: 'wait-control-plane/cluster-admins', short: 'Bind the admin.conf user to cluster-admin' },
  { name: 'upload-config/kubeadm', short: 'Upload the cluster configuration to a ConfigMap' },
  { name: 'upload-config/kubelet', short: 'Upload the kubelet configuration to a ConfigMap' },
  { name: 'upload-certs', short: 'Upload certificates to kubeadm-certs (with --upload-certs)' },
  { name: 'mark-control-plane', short: 'Set the control plane labels and taints of the Node' },
  { name: 'bootstrap-token', short: 'Create bootstrap tokens, cluster-info and the RBAC rules for joining nodes' },
  { name: 'kubelet-finalize', short: 'Enable client certificate rotation of the kubelet (subphase enable-client-cert-rotation)' },
  { name: 'addon/coredns', short: 'Deploy CoreDNS' },
  { name: 'addon/kube-proxy', short: 'Deploy kube-proxy' },
  { name: 'show-join-command', short: 'Print the join commands' },
];

/** The phases of join, in order; those of the control plane with --control-plane. */
export const JOIN_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  PULL_IMAGES,
  { name: 'control-plane-prepare/download-certs', short: 'Download the certificates shared by control planes' },
  { name: 'control-plane-prepare/certs', short: 'Generate the certificates of the control plane' },
  { name: 'control-plane-prepare/kubeconfig', short: 'Generate admin.conf, controller-manager.conf and scheduler.conf' },
  { name: 'control-plane-prepare/control-plane', short: 'Write the static Pod manifests of the control plane' },
  { name: 'check-etcd', short: 'Check that the etcd cluster is healthy' },
  KUBELET_START,
  SAVE_SETTINGS,
  { name: 'etcd-join', short: 'Add the local etcd member to the cluster' },
  { name: 'etcd-join/promote', short: 'Promote the new etcd learner to a voting member' },
  WAIT_BOOTSTRAP,
  {
    name: 'kubelet-wait-bootstrap/node',
    short: 'Wait until the Node is registered; with --wait-ready, until it is Ready and starts a probe pod',
  },
  { name: 'control-plane-join/mark-control-plane', short: 'Set the control plane labels and taints of the Node' },
  { name: 'mark-node', short: 'Set the labels and taints of the Node (with --kubeconfig)' },
  WAIT_CONTROL_PLANE,
];

const CONTROL_PLANE_UPGRADE: readonly PhaseHelp[] = [
  PULL_IMAGES,
  { name: 'control-plane', short: 'Upgrade the static Pods (all phases of this group)' },
  { name: 'control-plane/backup', short: 'Back up the static Pod manifests and the etcd data' },
  { name: 'control-plane/etcd', short: 'Upgrade etcd' },
  { name: 'control-plane/apiserver', short: 'Upgrade kube-apiserver' },
  { name: 'control-plane/controller-manager', short: 'Upgrade kube-controller-manager' },
  { name: 'control-plane/scheduler', short: 'Upgrade kube-scheduler' },
  { name: 'control-plane/kubeconfig', short: 'Renew the certificates of admin.conf and super-admin.conf' },
  {
    name: 'control-plane/complete',
    short: 'Record on the host that the upgrade of its static Pods is complete',
  },
];
const KUBELET_SERVER: PhaseHelp = { name: 'kubeconfig', short: 'Let the kubelet use the API server of its own host' };
const KUBELET_CONFIG: readonly PhaseHelp[] = [
  { name: 'kubelet-config', short: 'Write the kubelet configuration of the cluster and restart the kubelet' },
  { name: 'kubelet-config/remember', short: SAVE_SETTINGS.short },
  { name: 'kubelet-config/cri-socket-annotation', short: 'Remove the CRI socket annotation from the Node' },
];
const ADDONS: readonly PhaseHelp[] = [
  { name: 'addon/coredns', short: 'Deploy CoreDNS, if all control planes have been upgraded' },
  { name: 'addon/kube-proxy', short: 'Deploy kube-proxy, if all control planes have been upgraded' },
];
const POST_UPGRADE: PhaseHelp = { name: 'post-upgrade', short: 'Verify the versions of the running components' };

/** The phases of upgrade apply, in order. */
export const UPGRADE_APPLY_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  ...CONTROL_PLANE_UPGRADE,
  { name: 'upload-config/kubeadm', short: 'Upload the cluster configuration to a ConfigMap' },
  { name: 'upload-config/kubelet', short: 'Upload the kubelet configuration to a ConfigMap' },
  KUBELET_SERVER,
  ...KUBELET_CONFIG,
  { name: 'bootstrap-token', short: 'Create the RBAC rules for joining nodes' },
  ...ADDONS,
  POST_UPGRADE,
];

/** The phases of upgrade node, in order; on workers only preflight and kubelet-config. */
export const UPGRADE_NODE_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  ...CONTROL_PLANE_UPGRADE,
  KUBELET_SERVER,
  ...KUBELET_CONFIG,
  ...ADDONS,
  POST_UPGRADE,
];

/** The phases of reset, in order. */
export const RESET_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  { name: 'remove-agent', short: 'Stop and remove the kubeletadm agent' },
  { name: 'delete-node', short: 'Stop the kubelet and delete the Node (with --delete-node)' },
  { name: 'agent-rights', short: 'Delete the RBAC rules of the kubeletadm agent of this node' },
  { name: 'remove-etcd-member', short: 'Remove the local etcd member from the etcd cluster' },
  { name: 'cleanup-node', short: 'Stop the kubelet and remove the files written by init or join' },
  { name: 'proxy', short: 'Remove the HTTP proxy settings that a fleet file configured' },
  { name: 'leftovers', short: 'List the files and settings that reset does not remove, and the commands that remove them' },
];
