import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { EXTRA_ARGS_DEB, KUBELET_PROGRAM } from '../../src/kube/well-known.ts';

/** Below the root directory of a host. */
export const RUNTIME_SOCKET = 'var/run/containerd/containerd.sock';

export interface RootTreeOptions {
  readonly hostname: string;
  /** The host's address inside the lab, e.g. `192.168.99.11`. */
  readonly address: string;
  /** systemd-resolved runs: the kubelet must then read another resolv.conf. */
  readonly resolved: boolean;
}

/**
 * Creates the root directory of a Linux host with a kubelet package and a container runtime, but without
 * configuration.
 * @returns the server behind the runtime's socket, to be closed at the end
 */
export async function createRootTree(directory: string, options: RootTreeOptions): Promise<Server> {
  const files = {
    ...FILES,
    ...(options.resolved ? { '/run/systemd/resolve/resolv.conf': RESOLV_CONF } : {}),
    '/etc/hostname': `${options.hostname}\n`,
    '/etc/machine-id': `${machineId(options.hostname)}\n`,
    '/proc/net/fib_trie': fibTrie(options.address),
  };
  for (const path of DIRECTORIES) await mkdir(join(directory, path), { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  return listenOn(join(directory, RUNTIME_SOCKET));
}

/** 32 hexadecimal digits, different for each host. */
function machineId(hostname: string): string {
  return createHash('sha256').update(hostname).digest('hex').slice(0, 32);
}

const RESOLV_CONF = 'nameserver 192.168.99.1\n';

/**
 * The kubelet package as Debian's pkgs.k8s.io ships it, without kubeadm's drop-in, which kubeletadm itself
 * installs.
 */
const FILES: Readonly<Record<string, string>> = {
  '/etc/os-release': 'PRETTY_NAME="Lab Linux 1"\nID=lab\nID_LIKE=debian\n',
  [EXTRA_ARGS_DEB]: 'KUBELET_EXTRA_ARGS=\n',
  '/usr/lib/systemd/system/kubelet.service': `[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`,
  [KUBELET_PROGRAM]: 'a stand-in\n',
  '/etc/resolv.conf': RESOLV_CONF,
  '/proc/swaps': 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n',
  '/proc/sys/net/ipv4/ip_forward': '1\n',
  '/proc/sys/net/ipv6/conf/default/forwarding': '1\n',
  '/proc/net/route': 'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0163A8C0\t0003\t0\t0\t0\t00000000\n',
  '/proc/net/tcp': '  sl  local_address rem_address   st\n',
};

const DIRECTORIES = [
  'etc/kubernetes/manifests',
  'run/systemd/system',
  'var/lib/kubelet',
  'etc/kubernetes',
  'var/run/containerd',
  'etc/systemd/system',
];

function fibTrie(address: string): string {
  return `Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- ${address}\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n`;
}

function listenOn(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.end());
    server.unref();
    server.once('error', reject).listen(path, () => resolve(server));
  });
}
