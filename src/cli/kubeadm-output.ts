import type { JoinCommands } from '../fleet/use-cases/open-init.ts';
import type { Change } from '../host/plan/change.ts';
import { BOOTSTRAP_CONF } from '../kube/well-known.ts';
import type { ExistingCertificates } from '../kubeadm/workflows/certificates/inspect-certificates.ts';

/** The lines of kubeadm's standard output that scripts read, for the program started as kubeadm. See docs/kubeadm.md. */

/** Last lines of kubeadm's `init`, once for each token. @see kubeadm 1.36 cmd/phases/init/showjoincommand.go */
export function initDone(commands: JoinCommands, uploadedCerts: boolean): string {
  let controlPlane = '';
  return [...commands]
    .map(([command, joins]) => {
      if (joins === 'control-plane') {
        controlPlane = command;
        return '';
      }
      const others = controlPlane === '' ? [] : joinControlPlaneLines(controlPlane, uploadedCerts);
      controlPlane = '';
      const worker = ['Then you can join any number of worker nodes by running the following on each as root:', '', wrapped(command)];
      return linesOf([...INIT_DONE, ...others, ...worker]);
    })
    .join('');
}

const INIT_DONE = [
  '',
  'Your Kubernetes control-plane has initialized successfully!',
  '',
  'To start using your cluster, you need to run the following as a regular user:',
  '',
  '  mkdir -p $HOME/.kube',
  '  sudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config',
  '  sudo chown $(id -u):$(id -g) $HOME/.kube/config',
  '',
  'Alternatively, if you are the root user, you can run:',
  '',
  '  export KUBECONFIG=/etc/kubernetes/admin.conf',
  '',
  'You should now deploy a pod network to the cluster.',
  'Run "kubectl apply -f [podnetwork].yaml" with one of the options listed at:',
  '  https://kubernetes.io/docs/concepts/cluster-administration/addons/',
  '',
];

function joinControlPlaneLines(command: string, uploadedCerts: boolean): readonly string[] {
  if (!uploadedCerts)
    return [
      'You can now join any number of control-plane nodes by copying certificate authorities',
      'and service account keys on each node and then running the following as root:',
      '',
      `  ${wrapped(command)}`,
      '',
    ];
  return [
    'You can now join any number of control-plane nodes running the following command on each as root:',
    '',
    `  ${wrapped(command)}`,
    '',
    'Please note that the certificate-key gives access to cluster sensitive data, keep it secret!',
    'As a safeguard, uploaded-certs will be deleted in two hours; If necessary, you can use',
    '"kubeadm init phase upload-certs --upload-certs" to reload certs afterward.',
    '',
  ];
}

/** A join command on several lines. @see kubeadm 1.36 cmd/util/join.go */
function wrapped(command: string): string {
  return command
    .replace('--discovery-token-ca-cert-hash', '\\\n\t--discovery-token-ca-cert-hash')
    .replace('--control-plane', '\\\n\t--control-plane');
}

/** kubeadm's output of the phase upload-certs. @see kubeadm 1.36 cmd/phases/init/uploadcerts.go */
export function uploadedCertificates(key: string | null): string {
  return linesOf([
    '[upload-certs] Storing the certificates in Secret "kubeadm-certs" in the "kube-system" Namespace',
    ...(key === null ? [] : ['[upload-certs] Using certificate key:', key]),
  ]);
}

/**
 * Last lines of kubeadm's `join`, without those that are not true: a host with a certificate requests none, and an external
 * or existing etcd member is not added. @see kubeadm 1.36 cmd/join.go
 * @param changes the applied ones
 */
export function joinDone(joins: 'worker' | 'control-plane', changes: readonly Change[]): string {
  const sendsRequest = changes.some((change) => change.kind === 'write-file' && change.path === BOOTSTRAP_CONF);
  const addsEtcdMember = changes.some(({ kind }) => kind === 'add-etcd-learner');
  const bootstrap = (answer: string): readonly string[] =>
    sendsRequest
      ? [
          `* Certificate signing request was sent to apiserver and ${answer} was received.`,
          '* The Kubelet was informed of the new secure connection details.',
        ]
      : [];
  if (joins === 'worker')
    return linesOf([
      '',
      'This node has joined the cluster:',
      ...bootstrap('a response'),
      '',
      "Run 'kubectl get nodes' on the control-plane to see this node join the cluster.",
      '',
    ]);
  return linesOf([
    '',
    'This node has joined the cluster and a new control plane instance was created:',
    '',
    ...bootstrap('approval'),
    '* Control plane label and taint were applied to the new node.',
    '* The Kubernetes control plane instances scaled up.',
    addsEtcdMember ? '* A new etcd member was added to the local/stacked etcd cluster.' : '',
    '',
    'To start administering your cluster from this node, you need to run the following as a regular user:',
    '',
    '\tmkdir -p $HOME/.kube',
    '\tsudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config',
    '\tsudo chown $(id -u):$(id -g) $HOME/.kube/config',
    '',
    "Run 'kubectl get nodes' to see this node join the cluster.",
    '',
  ]);
}

/** Last lines of kubeadm's `upgrade apply`. @see kubeadm 1.36 cmd/upgrade/apply.go */
export function upgradeDone(version: string): string {
  return linesOf([
    '',
    `[upgrade] SUCCESS! A control plane node of your cluster was upgraded to "${version}".`,
    '',
    '[upgrade] Now please proceed with upgrading the rest of the nodes by following the right order.',
  ]);
}

/** The lines that kubeadm prints before it reads kubeadm-config. @see kubeadm 1.36 util/config/cluster.go */
export function readsClusterConfig(prefix: string): string {
  return linesOf([
    `[${prefix}] Reading configuration from the "kubeadm-config" ConfigMap in namespace "kube-system"...`,
    `[${prefix}] Use 'kubeadm init phase upload-config kubeadm --config your-config-file' to re-upload it.`,
  ]);
}

/**
 * Where kubeadm's commands of certificates read the configuration.
 * @param hasReadCluster null: kubeadm-config was not requested
 * @see kubeadm 1.36 cmd/certs.go getInternalCfg
 */
export function certsConfigSource(prefix: string, hasReadCluster: boolean | null): string {
  if (hasReadCluster === null) return '';
  const fallback = `[${prefix}] Error reading configuration from the Cluster. Falling back to default configuration\n`;
  return `${readsClusterConfig(prefix)}${hasReadCluster ? '' : fallback}\n`;
}

/**
 * kubeadm's output of `certs renew`, for the certificates that it may renew, with the applied changes.
 * @see kubeadm 1.36 cmd/certs.go renewCert
 */
export function certsRenewed(
  { certificates, hasReadCluster }: Pick<ExistingCertificates, 'certificates' | 'hasReadCluster'>,
  names: readonly string[] | 'all',
  changes: readonly Change[],
): string {
  const lines = certificates.flatMap(({ name, ca, certificate, crt, isExternal }) => {
    if (names !== 'all' && !names.includes(name)) return [];
    const longName = LONG_NAMES[name];
    if (certificate === null) return [`MISSING! ${longName}`];
    if (isExternal) return [`Detected external ${ca === 'etcd-ca' ? 'etcd/ca' : ca}, ${longName} can't be renewed`];
    return changes.some((change) => change.kind === 'write-file' && change.path === crt) ? [`${longName} renewed`] : [];
  });
  const components = 'kube-apiserver, kube-controller-manager, kube-scheduler and etcd';
  const done = `Done renewing certificates. You must restart the ${components}, so that they can use the new certificates.`;
  return certsConfigSource('renew', hasReadCluster) + linesOf([...lines, ...(names === 'all' ? ['', done] : [])]);
}

/** @see kubeadm 1.36 phases/certs/certlist.go, phases/certs/renewal/manager.go */
const LONG_NAMES: Readonly<Record<string, string>> = {
  'admin.conf': 'certificate embedded in the kubeconfig file for the admin to use and for kubeadm itself',
  apiserver: 'certificate for serving the Kubernetes API',
  'apiserver-etcd-client': 'certificate the apiserver uses to access etcd',
  'apiserver-kubelet-client': 'certificate for the API server to connect to kubelet',
  'controller-manager.conf': 'certificate embedded in the kubeconfig file for the controller manager to use',
  'etcd-healthcheck-client': 'certificate for liveness probes to healthcheck etcd',
  'etcd-peer': 'certificate for etcd nodes to communicate with each other',
  'etcd-server': 'certificate for serving etcd',
  'front-proxy-client': 'certificate for the front proxy client',
  'scheduler.conf': 'certificate embedded in the kubeconfig file for the scheduler manager to use',
  'super-admin.conf': 'certificate embedded in the kubeconfig file for the super-admin',
};

function linesOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
