import { ETCD_PROBES } from './control-plane-images.ts';
import type { LabHosts } from './lab-hosts.ts';

/** A command line of an installer, in the order in which it is run. */
interface Line {
  readonly host: 'node1' | 'node2';
  /** Words after `kubeadm`; `$JOIN` is the last line of the command before, without `kubeadm`, `$KEY` the last line. */
  readonly words: string;
  /** The lines of standard output that the installer reads; default: none. */
  readonly reads?: RegExp;
  /** A file of node1 that the installer copies to the host first. */
  readonly copies?: string;
}

interface Installer {
  readonly files: (addresses: { readonly node1: string; readonly node2: string }) => Readonly<Record<string, string>>;
  readonly lines: readonly Line[];
}

const TOKEN = 'abcdef.0123456789abcdef';
const ALL = /^.*$/;
const INITIALIZED = /initialized successfully|^kubeadm join |^\t--|^ {4}--/;
const JOINED = /^This node has joined the cluster/;
/** The lab hosts have cgroup v1, a sandbox without swap control, and no CoreDNS. */
const LAB_HOST = '--ignore-preflight-errors=all --skip-phases=addon/coredns';

const document = (apiVersion: string, kind: string, fields: string): string => `apiVersion: ${apiVersion}\nkind: ${kind}\n${fields}\n---\n`;
const V1BETA3 = 'kubeadm.k8s.io/v1beta3';
const V1BETA4 = 'kubeadm.k8s.io/v1beta4';
const KUBELET = 'kubelet.config.k8s.io/v1beta1';
const PROXY = 'kubeproxy.config.k8s.io/v1alpha1';
const NETWORK = 'networking: {dnsDomain: cluster.local, serviceSubnet: 10.96.0.0/16, podSubnet: 10.244.0.0/16}';
const REGISTRATION = 'criSocket: "unix:///var/run/containerd/containerd.sock"';
const PATCHES = 'patches: {directory: /root/patches}';

/** What installers run, with files in the form of theirs, written from their behaviour. */
export const INSTALLERS: Readonly<Record<string, Installer>> = {
  kubespray: {
    files: ({ node1, node2 }) => ({
      'kubeadm-config.yaml': [
        document(
          V1BETA4,
          'InitConfiguration',
          `bootstrapTokens: [{token: ${TOKEN}, ttl: 24h0m0s}]\nlocalAPIEndpoint: {advertiseAddress: ${node1}, bindPort: 6443}\n` +
            `nodeRegistration: {name: node1, taints: [{effect: NoSchedule, key: node-role.kubernetes.io/control-plane}], ${REGISTRATION}, imagePullPolicy: Never}\n${PATCHES}`,
        ),
        document(
          V1BETA4,
          'ClusterConfiguration',
          `clusterName: cluster.local\nkubernetesVersion: v1.36.2\nimageRepository: registry.k8s.io\n${NETWORK}\ncertificatesDir: /etc/kubernetes/ssl\n` +
            `controlPlaneEndpoint: "${node1}:6443"\netcd: {local: {dataDir: /var/lib/etcd}}\n` +
            'apiServer: {certSANs: [kubernetes, localhost, 127.0.0.1], extraArgs: [{name: authorization-mode, value: "Node,RBAC"}, {name: profiling, value: "False"}]}\n' +
            'controllerManager: {extraArgs: [{name: node-monitor-grace-period, value: 40s}, {name: bind-address, value: "::"}]}\n' +
            'scheduler: {extraArgs: [{name: bind-address, value: "::"}]}',
        ),
        document(
          V1BETA4,
          'UpgradeConfiguration',
          `apply: {kubernetesVersion: v1.36.2, forceUpgrade: true, ignorePreflightErrors: [all], certificateRenewal: true, etcdUpgrade: true, imagePullPolicy: Never, ${PATCHES}}\n` +
            `node: {ignorePreflightErrors: [all], imagePullPolicy: Never, ${PATCHES}}`,
        ),
        document(
          PROXY,
          'KubeProxyConfiguration',
          'bindAddress: "0.0.0.0"\nclusterCIDR: 10.244.0.0/16\nmode: iptables\nconntrack: {maxPerCore: 0}',
        ),
        document(KUBELET, 'KubeletConfiguration', 'clusterDNS: [169.254.25.10]\nfailCgroupV1: false'),
      ].join(''),
      'kubeadm-controlplane.yaml': document(
        V1BETA4,
        'JoinConfiguration',
        `discovery: {bootstrapToken: {apiServerEndpoint: "${node1}:6443", token: ${TOKEN}, unsafeSkipCAVerification: true}, tlsBootstrapToken: ${TOKEN}}\n` +
          `controlPlane: {localAPIEndpoint: {advertiseAddress: ${node2}, bindPort: 6443}, certificateKey: $KEY}\n` +
          `nodeRegistration: {name: node2, ${REGISTRATION}, imagePullPolicy: Never}\n${PATCHES}`,
      ),
    }),
    lines: [
      { host: 'node1', words: 'version -o short', reads: ALL },
      { host: 'node1', words: 'config validate --config kubeadm-config.yaml', reads: ALL },
      { host: 'node1', words: 'config images list --config=kubeadm-config.yaml', reads: ALL },
      { host: 'node1', words: `init --config=kubeadm-config.yaml ${LAB_HOST} --upload-certs`, reads: INITIALIZED },
      { host: 'node1', words: `--kubeconfig /etc/kubernetes/admin.conf token delete ${TOKEN}`, reads: ALL },
      { host: 'node1', words: `--kubeconfig /etc/kubernetes/admin.conf token create ${TOKEN}`, reads: ALL },
      { host: 'node1', words: 'init phase certs apiserver --config=kubeadm-config.yaml' },
      { host: 'node1', words: 'init phase upload-config all --config=kubeadm-config.yaml' },
      { host: 'node1', words: 'init phase addon kube-proxy --config=kubeadm-config.yaml' },
      { host: 'node1', words: 'init phase kubeconfig all --config=kubeadm-config.yaml' },
      { host: 'node1', words: 'certs renew apiserver --config=kubeadm-config.yaml' },
      { host: 'node1', words: 'init phase --config kubeadm-config.yaml upload-certs --upload-certs', reads: ALL },
      { host: 'node2', words: 'join --config kubeadm-controlplane.yaml --ignore-preflight-errors=all --skip-phases=', reads: JOINED },
      { host: 'node1', words: 'upgrade apply --yes --config=kubeadm-config.yaml', reads: /^\[upgrade\] (?:SUCCESS|Now please)/ },
      { host: 'node2', words: 'reset -f --cert-dir=/etc/kubernetes/ssl --cri-socket=unix:///var/run/containerd/containerd.sock' },
      { host: 'node1', words: 'reset -f --cert-dir=/etc/kubernetes/ssl --cri-socket=unix:///var/run/containerd/containerd.sock' },
    ],
  },
  kind: {
    files: ({ node1, node2 }) => {
      const metadata = 'metadata: {name: config}';
      const registration = (address: string, more: string): string =>
        `nodeRegistration: {${REGISTRATION}, kubeletExtraArgs: {node-ip: "${address}", provider-id: "kind://docker/kind/${more}", node-labels: ""}, imagePullPolicy: Never}`;
      const cluster = (init: string, join: string): string =>
        [
          document(
            V1BETA3,
            'ClusterConfiguration',
            `${metadata}\nkubernetesVersion: v1.36.2\nclusterName: kind\ncontrolPlaneEndpoint: "${node1}:6443"\n` +
              'apiServer: {certSANs: [localhost, 127.0.0.1], extraArgs: {runtime-config: ""}}\n' +
              'controllerManager: {extraArgs: {enable-hostpath-provisioner: "true"}}\nscheduler: {extraArgs: }\n' +
              'networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}',
          ),
          document(V1BETA3, 'InitConfiguration', `${metadata}\nbootstrapTokens: [{token: ${TOKEN}}]\n${init}`),
          document(V1BETA3, 'JoinConfiguration', `${metadata}\n${join}`),
          document(
            KUBELET,
            'KubeletConfiguration',
            `${metadata}\ncgroupDriver: cgroupfs\nfailCgroupV1: false\nfailSwapOn: false\nimageGCHighThresholdPercent: 100\nevictionHard: {nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}\nfeatureGates: {}`,
          ),
          document(
            PROXY,
            'KubeProxyConfiguration',
            `${metadata}\nmode: iptables\niptables: {minSyncPeriod: 1s}\nconntrack: {maxPerCore: 0}`,
          ),
        ].join('');
      const discovery = `discovery: {bootstrapToken: {apiServerEndpoint: "${node1}:6443", token: ${TOKEN}, unsafeSkipCAVerification: true}}`;
      return {
        'kubeadm.conf': cluster(
          `localAPIEndpoint: {advertiseAddress: "${node1}", bindPort: 6443}\n${registration(node1, 'node1')}\n${PATCHES}`,
          `${registration(node1, 'node1')}\n${discovery}`,
        ),
        'kubeadm-2.conf': cluster(
          `localAPIEndpoint: {advertiseAddress: "${node2}", bindPort: 6443}\n${registration(node2, 'node2')}`,
          `${registration(node2, 'node2')}\n${discovery}`,
        ),
      };
    },
    lines: [
      {
        host: 'node1',
        words: 'init --skip-phases=preflight,addon/coredns --config=kubeadm.conf --skip-token-print --v=6',
        reads: INITIALIZED,
      },
      { host: 'node2', words: 'join --config=kubeadm-2.conf --skip-phases=preflight --v=6', reads: JOINED },
      { host: 'node2', words: 'reset --force' },
      { host: 'node1', words: 'reset --force' },
    ],
  },
  minikube: {
    files: ({ node1 }) => ({
      'kubeadm.yaml': [
        document(
          V1BETA4,
          'InitConfiguration',
          `localAPIEndpoint: {advertiseAddress: ${node1}, bindPort: 8443}\nbootstrapTokens: [{groups: ["system:bootstrappers:kubeadm:default-node-token"], ttl: 24h0m0s, usages: [signing, authentication]}]\n` +
            `nodeRegistration: {${REGISTRATION}, name: node1, kubeletExtraArgs: [{name: node-ip, value: ${node1}}], taints: [], imagePullPolicy: Never}\n${PATCHES}`,
        ),
        document(
          V1BETA4,
          'ClusterConfiguration',
          `apiServer: {certSANs: ["127.0.0.1", localhost, "${node1}"], extraArgs: [{name: enable-admission-plugins, value: "NamespaceLifecycle,LimitRanger,ServiceAccount,ResourceQuota"}]}\n` +
            'controllerManager: {extraArgs: [{name: allocate-node-cidrs, value: "true"}, {name: leader-elect, value: "false"}]}\nscheduler: {extraArgs: [{name: leader-elect, value: "false"}]}\n' +
            `certificatesDir: /var/lib/minikube/certs\nclusterName: mk\ncontrolPlaneEndpoint: ${node1}:8443\netcd: {local: {dataDir: /var/lib/minikube/etcd}}\nkubernetesVersion: v1.36.2\n${NETWORK}`,
        ),
        document(
          KUBELET,
          'KubeletConfiguration',
          'authentication: {x509: {clientCAFile: /var/lib/minikube/certs/ca.crt}}\ncgroupDriver: cgroupfs\nfailCgroupV1: false\ncontainerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock\nhairpinMode: hairpin-veth\nruntimeRequestTimeout: 15m\nclusterDomain: cluster.local\nimageGCHighThresholdPercent: 100\nevictionHard: {nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}\nfailSwapOn: false\nstaticPodPath: /etc/kubernetes/manifests',
        ),
        document(
          PROXY,
          'KubeProxyConfiguration',
          'clusterCIDR: 10.244.0.0/16\nmetricsBindAddress: 0.0.0.0:10249\nconntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}',
        ),
      ].join(''),
    }),
    lines: [
      {
        host: 'node1',
        words:
          'init --config kubeadm.yaml --ignore-preflight-errors=DirAvailable--etc-kubernetes-manifests,DirAvailable--var-lib-minikube,DirAvailable--var-lib-minikube-etcd,FileAvailable--etc-kubernetes-manifests-kube-scheduler.yaml,FileAvailable--etc-kubernetes-manifests-etcd.yaml,Port-10250,Swap,NumCPU,Mem,SystemVerification,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables,ImagePull,FileExisting-losetup --skip-phases=addon/coredns',
        reads: INITIALIZED,
      },
      // `minikube start` of a stopped cluster.
      { host: 'node1', words: 'init phase certs all --config kubeadm.yaml' },
      { host: 'node1', words: 'init phase kubeconfig all --config kubeadm.yaml' },
      { host: 'node1', words: 'init phase kubelet-start --config kubeadm.yaml' },
      { host: 'node1', words: 'init phase control-plane all --config kubeadm.yaml' },
      { host: 'node1', words: 'init phase etcd local --config kubeadm.yaml' },
      { host: 'node1', words: 'init phase addon kube-proxy --config kubeadm.yaml' },
      { host: 'node1', words: 'token create --print-join-command --ttl=0', reads: ALL },
      {
        host: 'node2',
        words: '$JOIN --ignore-preflight-errors=all --cri-socket unix:///var/run/containerd/containerd.sock --node-name=node2-m02',
        reads: JOINED,
        copies: '/var/lib/minikube/certs/ca.crt',
      },
      { host: 'node2', words: 'reset --cri-socket /var/run/containerd/containerd.sock --force' },
      { host: 'node1', words: 'reset --cri-socket /var/run/containerd/containerd.sock --force' },
    ],
  },
  'Cluster API': {
    files: ({ node1 }) => ({
      'kubeadm.yaml': [
        document(
          V1BETA4,
          'ClusterConfiguration',
          `apiServer: {certSANs: [localhost, 127.0.0.1]}\ncontrolPlaneEndpoint: ${node1}:6443\nclusterName: capi\ndns: {}\netcd: {local: {}}\nkubernetesVersion: v1.36.2\nnetworking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12}\nscheduler: {}\ncontrollerManager: {extraArgs: [{name: cluster-name, value: capi}]}`,
        ),
        document(
          V1BETA4,
          'InitConfiguration',
          `localAPIEndpoint: {advertiseAddress: ${node1}}\nbootstrapTokens: [{token: ${TOKEN}, ttl: 1h0m0s}]\nnodeRegistration: {criSocket: "unix:///var/run/containerd/containerd.sock", imagePullPolicy: Never, kubeletExtraArgs: [{name: eviction-hard, value: "nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%"}], ignorePreflightErrors: [all]}\nskipPhases: [addon/coredns]\n${PATCHES}`,
        ),
        document(KUBELET, 'KubeletConfiguration', 'failCgroupV1: false'),
      ].join(''),
      'kubeadm-join-config.yaml': document(
        V1BETA4,
        'JoinConfiguration',
        `discovery: {bootstrapToken: {apiServerEndpoint: "${node1}:6443", token: ${TOKEN}, unsafeSkipCAVerification: true}}\nnodeRegistration: {imagePullPolicy: Never, kubeletExtraArgs: [{name: node-labels, value: "role=worker"}], taints: [], ignorePreflightErrors: [all]}`,
      ),
    }),
    lines: [
      { host: 'node1', words: 'init --config kubeadm.yaml --v 5', reads: INITIALIZED },
      { host: 'node2', words: 'join --config kubeadm-join-config.yaml --v 5', reads: JOINED },
      { host: 'node2', words: 'reset -f' },
      { host: 'node1', words: 'reset -f' },
    ],
  },
  'geerlingguy.kubernetes': {
    files: ({ node1 }) => ({
      'kubeadm-kubelet-config.yaml': [
        document(
          V1BETA4,
          'InitConfiguration',
          `localAPIEndpoint: {advertiseAddress: "${node1}"}\nnodeRegistration: {imagePullPolicy: Never}\n${PATCHES}`,
        ),
        document(V1BETA4, 'ClusterConfiguration', 'kubernetesVersion: "v1.36.2"\nnetworking: {podSubnet: "10.244.0.0/16"}'),
        document(KUBELET, 'KubeletConfiguration', 'cgroupDriver: systemd\nfailCgroupV1: false'),
        document(PROXY, 'KubeProxyConfiguration', 'mode: iptables'),
      ].join(''),
    }),
    lines: [
      { host: 'node1', words: `init --config kubeadm-kubelet-config.yaml ${LAB_HOST}`, reads: INITIALIZED },
      { host: 'node1', words: 'token create --print-join-command', reads: ALL },
      { host: 'node2', words: '$JOIN --ignore-preflight-errors=all', reads: JOINED },
      { host: 'node2', words: 'reset -f' },
      { host: 'node1', words: 'reset -f' },
    ],
  },
};

/** A command line, its exit code, and the lines that the installer reads, with new names for secrets. */
export interface Outcome {
  readonly line: string;
  readonly code: number;
  readonly read: readonly string[];
}

/**
 * Runs the command lines of an installer one after the other. After a failure, only those of reset.
 * @param program the path of a kubeadm on the hosts
 * @param show called with the end of the output of a line that fails
 */
export function runInstaller(lab: LabHosts, installer: Installer, program: string, show: (text: string) => void): readonly Outcome[] {
  const addresses = { node1: lab.address('node1'), node2: lab.address('node2') };
  const files = installer.files(addresses);
  const outcomes: Outcome[] = [];
  let last = '';
  let failed = false;
  for (const { host, words, reads, copies } of installer.lines) {
    if (failed && !words.startsWith('reset')) continue;
    const line = words.replace('$JOIN', last.replace(/^kubeadm /, '').trim());
    for (const [name, text] of Object.entries(files))
      if (line.includes(name)) lab.put(host, `/root/${name}`, text.replaceAll('$KEY', last));
    if (copies !== undefined) {
      lab.run(host, `mkdir -p $(dirname ${copies})`);
      lab.put(host, copies, lab.run('node1', `cat ${copies}`));
    }
    const code = runLine(lab, host, `${program} ${line}`);
    const stdout = lab.run(host, 'cat /root/line.out');
    last = stdout.trimEnd().split('\n').at(-1) ?? '';
    const read = reads === undefined ? [] : stdout.split('\n').filter((each) => reads.test(each));
    outcomes.push({ line: words, code, read: read.map(anonymous) });
    if (code === 0) continue;
    failed = true;
    show(
      `${host}: ${program} ${line}\n${lab.run(host, 'tail -40 /root/line.out; tail -40 /root/line.err; journalctl -u kubelet -n 15 --no-pager -o cat')}`,
    );
  }
  for (const host of lab.names) lab.run(host, 'rm -rf /etc/kubernetes/ssl /var/lib/minikube');
  return outcomes;
}

/** Runs a line in the background: one SSH command has a minute, and a control plane on a busy machine needs more. */
function runLine(lab: LabHosts, host: string, line: string): number {
  lab.run(host, `mkdir -p /root/patches && cat > /root/patches/etcd.yaml <<'X'\n${ETCD_PROBES}X`);
  const record = `(cd /root; ${line} </dev/null >/root/line.out 2>/root/line.err; echo $? >/root/line.rc)`;
  lab.run(host, `rm -f /root/line.rc; setsid sh -c '${record}' >/dev/null 2>&1 </dev/null &`);
  const wait = 'for i in $(seq 400); do [ -s /root/line.rc ] && break; sleep 0.1; done; cat /root/line.rc 2>/dev/null || true';
  for (let i = 0; i < 10; i++) {
    const code = lab.run(host, wait).trim();
    if (code !== '') return Number(code);
  }
  return -1;
}

function anonymous(line: string): string {
  return line
    .replace(/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, 'TOKEN')
    .replace(/\b[0-9a-f]{64}\b/g, 'HASH')
    .trimEnd();
}
