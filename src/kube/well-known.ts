/**
 * Paths and names of Kubernetes and kubeadm, each defined only here. Certificates are below the configured
 * `certificatesDir`, whose default is `CERTIFICATES_DIR`.
 * @see kubernetes/kubernetes cmd/kubeadm/app/constants (1.36)
 */

export const KUBELET_DIR = '/var/lib/kubelet';
export const KUBELET_CONFIG_FILE = '/var/lib/kubelet/config.yaml';
export const INSTANCE_CONFIG = '/var/lib/kubelet/instance-config.yaml';
export const FLAGS_ENV = '/var/lib/kubelet/kubeadm-flags.env';
export const KUBELET_PKI_DIR = '/var/lib/kubelet/pki';
export const KUBELET_CLIENT_PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
export const KUBELET_SERVER_PEM = '/var/lib/kubelet/pki/kubelet-server-current.pem';
export const KUBELET_UNIT_FILE = '/etc/systemd/system/kubelet.service';
export const KUBELET_PROGRAM = '/usr/bin/kubelet';
export const EXTRA_ARGS_DEB = '/etc/default/kubelet';
export const EXTRA_ARGS_RPM = '/etc/sysconfig/kubelet';

export const KUBERNETES_DIR = '/etc/kubernetes';
export const MANIFESTS_DIR = '/etc/kubernetes/manifests';
export const KUBEADM_TMP_DIR = '/etc/kubernetes/tmp';
export const CERTIFICATES_DIR = '/etc/kubernetes/pki';
export const CA_CERT = '/etc/kubernetes/pki/ca.crt';
/** The directory that the Kubernetes documentation names for drop-in files of the kubelet's configuration. */
export const KUBELET_CONF_D = '/etc/kubernetes/kubelet.conf.d';
export const KUBELET_CONF = '/etc/kubernetes/kubelet.conf';
export const BOOTSTRAP_CONF = '/etc/kubernetes/bootstrap-kubelet.conf';
export const ADMIN_CONF = '/etc/kubernetes/admin.conf';
export const SUPER_ADMIN_CONF = '/etc/kubernetes/super-admin.conf';
export const CONTROLLER_MANAGER_CONF = '/etc/kubernetes/controller-manager.conf';
export const SCHEDULER_CONF = '/etc/kubernetes/scheduler.conf';
export const ETCD_DATA_DIR = '/var/lib/etcd';

export const KUBE_SYSTEM = 'kube-system';
export const KUBE_PUBLIC = 'kube-public';
/** ConfigMaps of kubeadm: two in kube-system, the last one in kube-public. */
export const KUBEADM_CONFIG_NAME = 'kubeadm-config';
export const KUBELET_CONFIG_NAME = 'kubelet-config';
export const CLUSTER_INFO_NAME = 'cluster-info';

/** Groups and the prefix of the user names of kubelets. */
export const NODES_GROUP_NAME = 'system:nodes';
export const MASTERS_GROUP_NAME = 'system:masters';
export const NODE_USER_PREFIX = 'system:node:';
