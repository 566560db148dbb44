/**
 * The control plane phases of kubeadm's commands. Workflows without a control plane do not have these phases,
 * but configuration files and command lines written for kubeadm may skip them.
 * @see kubeadm 1.36 join, reset and upgrade node --help
 */
const CONTROL_PLANE_PHASES = {
  join: [
    'control-plane-prepare',
    'control-plane-prepare/download-certs',
    'control-plane-prepare/certs',
    'control-plane-prepare/kubeconfig',
    'control-plane-prepare/control-plane',
    'check-etcd',
    'etcd-join',
    'control-plane-join',
    'control-plane-join/etcd',
    'control-plane-join/mark-control-plane',
    'wait-control-plane',
  ],
  reset: ['remove-etcd-member'],
  'upgrade node': ['control-plane', 'kubeconfig', 'addon', 'addon/coredns', 'addon/kube-proxy', 'post-upgrade'],
};

/** A command of kubeadm with phases. */
type KubeadmWorkflow = keyof typeof CONTROL_PLANE_PHASES;

/**
 * The control plane phases of a kubeadm command. Skipping a phase that a workflow does not have is no error.
 */
export function controlPlanePhases(command: KubeadmWorkflow): readonly string[] {
  return CONTROL_PLANE_PHASES[command];
}
