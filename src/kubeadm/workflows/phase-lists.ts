/** A phase as help shows it. Kept apart from the phases themselves, so that help loads none of them; a test holds the two together. */
export interface PhaseHelp {
  readonly name: string;
  readonly short: string;
}

const PREFLIGHT: PhaseHelp = { name: 'preflight', short: 'Run the checks before anything is touched' };
const KUBELET_START: PhaseHelp = { name: 'kubelet-start', short: 'Write the kubelet configuration and (re)start the kubelet' };
const REMEMBER: PhaseHelp = {
  name: 'kubelet-start/remember',
  short: 'Keep what was declared for this node on the host, for upgrades',
};
const WAIT_BOOTSTRAP: PhaseHelp = { name: 'kubelet-wait-bootstrap', short: 'Wait for the kubelet to bootstrap itself' };

const PULL_IMAGES: PhaseHelp = { name: 'preflight/pull-images', short: 'Pull the images of the control plane' };
const WAIT_CONTROL_PLANE: PhaseHelp = { name: 'wait-control-plane', short: 'Wait for the control plane to start' };

/** The phases of init, in order. At an API server that is given those of the control plane are left out. */
export const INIT_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  PULL_IMAGES,
  { name: 'certs', short: 'Make certificates: ca, apiserver, apiserver-kubelet-client, front-proxy-ca, front-proxy-client,' },
  { name: '', short: 'etcd-ca, etcd-server, etcd-peer, etcd-healthcheck-client, apiserver-etcd-client, sa' },
  { name: 'kubeconfig', short: 'Make kubeconfigs: admin, super-admin, kubelet, controller-manager, scheduler' },
  { name: 'etcd/local', short: 'Write the static Pod manifest of the local etcd member' },
  { name: 'control-plane', short: 'Write the static Pod manifests: apiserver, controller-manager, scheduler' },
  KUBELET_START,
  REMEMBER,
  { ...WAIT_BOOTSTRAP, short: `${WAIT_BOOTSTRAP.short} (at an API server that is given)` },
  WAIT_CONTROL_PLANE,
  { name: 'wait-control-plane/cluster-admins', short: 'Make an administrator of who has admin.conf' },
  { name: 'upload-config/kubeadm', short: 'Upload the cluster configuration to a ConfigMap' },
  { name: 'upload-config/kubelet', short: 'Upload the kubelet configuration to a ConfigMap' },
  { name: 'upload-certs', short: 'Upload certificates to kubeadm-certs (with --upload-certs)' },
  { name: 'mark-control-plane', short: 'Give the Node the labels and taints of a control plane' },
  { name: 'bootstrap-token', short: 'Make bootstrap tokens, cluster-info and the RBAC that lets nodes join' },
  { name: 'kubelet-finalize', short: 'Enable kubelet client certificate rotation: enable-client-cert-rotation' },
  { name: 'addon/coredns', short: 'Deploy CoreDNS' },
  { name: 'addon/kube-proxy', short: 'Deploy kube-proxy' },
  { name: 'show-join-command', short: 'Show the commands that join nodes' },
];

/** The phases of join, in order; those of the control plane with --control-plane. */
export const JOIN_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  PULL_IMAGES,
  { name: 'control-plane-prepare/download-certs', short: 'Download the certificates that control planes share' },
  { name: 'control-plane-prepare/certs', short: 'Make the certificates of the control plane' },
  { name: 'control-plane-prepare/kubeconfig', short: 'Make admin.conf, controller-manager.conf and scheduler.conf' },
  { name: 'control-plane-prepare/control-plane', short: 'Write the static Pod manifests of the control plane' },
  { name: 'check-etcd', short: 'Check that the etcd cluster is healthy' },
  KUBELET_START,
  REMEMBER,
  { name: 'etcd-join', short: 'Add the local etcd member to the cluster' },
  { name: 'etcd-join/promote', short: 'Let the new etcd member vote once it has caught up' },
  WAIT_BOOTSTRAP,
  { name: 'kubelet-wait-bootstrap/node', short: 'Wait for the Node, with --wait-ready until it is Ready' },
  { name: 'control-plane-join/mark-control-plane', short: 'Give the Node the labels and taints of a control plane' },
  { name: 'mark-node', short: 'Give the Node its labels and taints (with --kubeconfig)' },
  WAIT_CONTROL_PLANE,
];

/** The phases of upgrade node, in order. */
export const UPGRADE_NODE_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  { name: 'kubelet-config', short: 'Write the kubelet configuration of the cluster and restart the kubelet' },
  { name: 'kubelet-config/remember', short: REMEMBER.short },
  { name: 'kubelet-config/cri-socket-annotation', short: 'Remove the annotation of the CRI socket from the Node' },
];

/** The phases of reset, in order. */
export const RESET_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  { name: 'remove-agent', short: 'Stop the agent of dynamic configuration and remove it' },
  { name: 'delete-node', short: 'Stop the kubelet and delete the Node (with --delete-node)' },
  { name: 'agent-rights', short: "Delete the rights of the node's agent" },
  { name: 'remove-etcd-member', short: 'Take the etcd member of the host out of the etcd cluster' },
  { name: 'cleanup-node', short: 'Stop the kubelet and remove what init or join wrote' },
  { name: 'leftovers', short: 'Say what is left on the host' },
];
