/**
 * The phases of kubeadm's commands that are about the control plane. A workflow at an API server that is given, or of a worker, does without them, so leaving them out changes nothing:
 * configuration files and command lines written for kubeadm may name them.
 * @see kubeadm 1.36 init, join and reset --help
 */
const CONTROL_PLANE_PHASES = {
  init: [
    'certs',
    'certs/ca',
    'certs/apiserver',
    'certs/apiserver-kubelet-client',
    'certs/front-proxy-ca',
    'certs/front-proxy-client',
    'certs/etcd-ca',
    'certs/etcd-server',
    'certs/etcd-peer',
    'certs/etcd-healthcheck-client',
    'certs/apiserver-etcd-client',
    'certs/sa',
    'kubeconfig',
    'kubeconfig/admin',
    'kubeconfig/super-admin',
    'kubeconfig/kubelet',
    'kubeconfig/controller-manager',
    'kubeconfig/scheduler',
    'etcd',
    'etcd/local',
    'control-plane',
    'control-plane/apiserver',
    'control-plane/controller-manager',
    'control-plane/scheduler',
    'wait-control-plane',
    'upload-certs',
    'mark-control-plane',
    'kubelet-finalize',
    'kubelet-finalize/enable-client-cert-rotation',
    'addon',
    'addon/coredns',
    'addon/kube-proxy',
  ],
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
};

/** The control plane's phases of a kubeadm command. Skipping one that a workflow does not have is no error. */
export function controlPlanePhases(command: 'init' | 'join' | 'reset'): readonly string[] {
  return CONTROL_PLANE_PHASES[command];
}
