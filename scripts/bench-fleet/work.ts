import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file that every contestant writes to every host. */
export interface WorkFile {
  readonly path: string;
  readonly mode: number;
  readonly content: string;
}

/**
 * The files of a joining worker: the same bytes for all contestants, different ones per host where hosts
 * differ (name, socket).
 */
export function workFiles(host: string): readonly WorkFile[] {
  return [
    { path: '/var/lib/kubelet/config.yaml', mode: 0o644, content: KUBELET_CONFIG },
    {
      path: '/var/lib/kubelet/kubeadm-flags.env',
      mode: 0o644,
      content: `KUBELET_KUBEADM_ARGS="--hostname-override=${host} --pod-infra-container-image=registry.k8s.io/pause:3.10"\n`,
    },
    { path: '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf', mode: 0o644, content: DROP_IN },
    { path: '/etc/kubernetes/bootstrap-kubelet.conf', mode: 0o600, content: BOOTSTRAP_KUBECONFIG },
  ];
}

/** Directories that every host has, or that the kubelet package creates. */
const DIRECTORIES = ['/run', '/var/lib/kubelet', '/usr/lib/systemd/system/kubelet.service.d', '/etc/kubernetes'];

/** Restores the initial state of the host's root. */
export function resetRoot(root: string): void {
  rmSync(root, { recursive: true, force: true });
  for (const directory of DIRECTORIES) mkdirSync(join(root, directory), { recursive: true });
}

/** Edits one file of a host manually. */
export function touchRoot(root: string): void {
  appendFileSync(join(root, '/var/lib/kubelet/config.yaml'), '# by hand\n');
}

/**
 * Checks a host's root independently of the contestant.
 * @param restarts expected number of kubelet restarts
 * @returns the first difference; null if equal
 */
export function checkRoot(root: string, files: readonly WorkFile[], restarts: number): string | null {
  for (const { path, mode, content } of files) {
    const at = join(root, path);
    if (!existsSync(at)) return `${at} is missing`;
    if (sha256(readFileSync(at)) !== sha256(Buffer.from(content))) return `${at} has other bytes`;
    if ((statSync(at).mode & 0o7777) !== mode) return `${at} has mode ${(statSync(at).mode & 0o7777).toString(8)}`;
  }
  const log = join(root, 'restarts');
  const times = existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0;
  return times === restarts ? null : `${root}: ${times} restarts, not ${restarts}`;
}

/** Replaces systemctl on the hosts: records each restart in the root of the address that was connected to. */
export function writeRestartStub(directory: string, rootsDirectory: string): void {
  mkdirSync(directory, { recursive: true });
  const script = `#!/bin/sh\nset -- $SSH_CONNECTION\necho restart >>"${rootsDirectory}/$3/restarts"\n`;
  writeFileSync(join(directory, 'systemctl'), script, { mode: 0o755 });
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const KUBELET_CONFIG = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
maxPods: 110
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`;

const DROP_IN = `# The kubelet's flags, from kubeadm and from the host.
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;

const BOOTSTRAP_KUBECONFIG = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${Buffer.from('x'.repeat(1100)).toString('base64')}
    server: https://10.0.0.10:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: tls-bootstrap-token-user
  name: tls-bootstrap-token-user@kubernetes
current-context: tls-bootstrap-token-user@kubernetes
kind: Config
users:
- name: tls-bootstrap-token-user
  user:
    token: abcdef.0123456789abcdef
`;
