import type { Clock } from '../../src/base/clock.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { FileFact } from '../../src/host/facts/query.ts';
import { DEFAULT_RUN } from '../../src/host/run-settings.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { tokenCredentials } from '../../src/kubeadm/config/bootstrap-credentials.ts';
import { NodeGroups } from '../../src/kubeadm/render/node-groups.ts';
import type { JoinOptions } from '../../src/kubeadm/workflows/join.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';
import { type FakeHost, type FakeHostOptions, fakeHost } from './fake-host.ts';
import { fakeUnit, runs } from './fake-units.ts';

const KUBELET_CONF = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://cluster.test:6443"}}]
users: [{name: u, user: {token: of-the-node}}]
`;

/** A regular file of root. */
export const regular = (content: string): FileFact => ({ type: 'file', mode: 0o644, owner: 'root:root', content });

/** Commands of a host with that hostname. */
export const hostCommands = (hostname: string) => ({
  sh: (argv: readonly string[]) => ({ exitCode: argv.at(-1)?.includes('command -v systemctl') ? 0 : 1 }),
  id: { stdout: '0\n' },
  uname: (argv: readonly string[]) => ({ stdout: argv.includes('-r') ? '6.12.0\n' : argv.includes('-n') ? `${hostname}\n` : 'x86_64\n' }),
  stat: { stdout: 'cgroup2fs\n' },
  nproc: { stdout: '4\n' },
  hostname: { stdout: '10.0.0.1\n' },
  ip: { exitCode: 127 },
  kubelet: { stdout: 'Kubernetes v1.36.2\n' },
  timeout: { exitCode: 127 },
  crio: { exitCode: 127 },
  containerd: { exitCode: 127 },
  docker: { exitCode: 127 },
  getent: { exitCode: 2 },
});

/** Commands of the host `w1`. */
export const HOST_COMMANDS = hostCommands('w1');

/** Options that `join` and `upgrade node` have in common: without patches and settings of the node. */
export const NO_SETTINGS_OF_NODE = {
  declared: [],
  patches: [],
  run: DEFAULT_RUN,
  skipPreflight: false,
  staged: false,
} as const;

/**
 * Options of `join` for the host and cluster of `hostToJoin`.
 * @param more replaces some of them
 */
export function optionsToJoin(shared: Pick<JoinOptions, 'templates' | 'catalogue' | 'admin'>, more: Partial<JoinOptions>): JoinOptions {
  return {
    ...NO_SETTINGS_OF_NODE,
    ...shared,
    groups: new NodeGroups(),
    nodeRegistration: {},
    overlays: [],
    settings: [],
    kubeletHealthCheckMs: 10_000,
    apiServer: async () => ({ server: 'https://cluster.test:6443', caPem: 'ca\n' }),
    credentials: async () => tokenCredentials(new Secret('abcdef.0123456789abcdef')),
    caCertPath: '/etc/kubernetes/pki/ca.crt',
    controlPlane: false,
    tlsBootstrapMs: 10_000,
    takeOver: false,
    waitReadyMs: null,
    trust: null,
    ...more,
  };
}

const configMap = (name: string, data: Readonly<Record<string, string>>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'kube-system' },
  data,
});

/**
 * A host `w1` with a container runtime, and a cluster that it can join. Its kubelet registers the Node when it starts.
 * @param commands replace those of the host
 */
export function hostToJoin(
  clock: Pick<Clock, 'now'>,
  commands: FakeHostOptions['commands'] = {},
): { readonly cluster: FakeCluster; readonly host: FakeHost } {
  const cluster = fakeCluster({
    now: clock.now,
    objects: [
      configMap('kubeadm-config', {
        ClusterConfiguration: 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n',
      }),
      configMap('kubelet-config', { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n' }),
    ],
  });
  const kubelet = fakeUnit({ activeState: 'inactive' });
  const host = fakeHost({
    name: 'w1',
    units: { kubelet },
    files: {
      '/var/run/containerd/containerd.sock': { type: 'socket', mode: 0o660, owner: 'root:root' },
      '/usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n',
      '/etc/own.conf': 'nameserver 10.0.0.2\n',
      '/proc/net/tcp': '',
      '/proc/meminfo': 'MemTotal:        8000000 kB\n',
    },
    commands: { ...HOST_COMMANDS, date: () => ({ stdout: `${Math.floor(clock.now().getTime() / 1000)}\n` }), ...commands },
    http: () => (kubelet.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' }),
  });
  kubelet.onStart = (unit) => {
    runs(unit);
    host.files.set('/etc/kubernetes/kubelet.conf', regular(KUBELET_CONF));
    void cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' } }).catch(() => undefined);
  };
  return { cluster, host };
}
