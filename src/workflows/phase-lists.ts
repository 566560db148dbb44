/** A phase as help shows it. Kept apart from the phases themselves, so that help loads none of them. */
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

/** The phases of init, in order. */
export const INIT_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  { name: 'bootstrap-token', short: 'Make bootstrap tokens, cluster-info and the RBAC that lets nodes join' },
  KUBELET_START,
  REMEMBER,
  WAIT_BOOTSTRAP,
  { name: 'upload-config/kubeadm', short: 'Upload the cluster configuration to a ConfigMap' },
  { name: 'upload-config/kubelet', short: 'Upload the kubelet configuration to a ConfigMap' },
  { name: 'show-join-command', short: 'Show the command that joins nodes' },
];

/** The phases of join, in order. */
export const JOIN_PHASES: readonly PhaseHelp[] = [
  PREFLIGHT,
  KUBELET_START,
  REMEMBER,
  WAIT_BOOTSTRAP,
  { name: 'kubelet-wait-bootstrap/node', short: 'Wait for the Node, with --wait-ready until it is Ready' },
  { name: 'mark-node', short: 'Give the Node its labels and taints (with --kubeconfig)' },
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
  { name: 'delete-node', short: 'Stop the kubelet and delete the Node (with --delete-node)' },
  { name: 'cleanup-node', short: 'Stop the kubelet and remove what init or join wrote' },
  { name: 'leftovers', short: 'Say what is left on the host' },
];
