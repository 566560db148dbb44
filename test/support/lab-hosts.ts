import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { untilTrue } from './until-true.ts';

const HOSTS_SH = fileURLToPath(new URL('../lab/hosts.sh', import.meta.url));
const STAND_IN = fileURLToPath(new URL('../lab/stand-in-kubelet.py', import.meta.url));

/** Real hosts as containers on the local host, with systemd, sshd and a separate network. */
export interface LabHosts {
  readonly sshConfig: string;
  readonly names: readonly string[];
  /** The network namespace that is connected to the lab network, for `nsenter --net=/run/netns/NAME`. */
  readonly namespace: string;
  /** Runs a shell line on a host as root and returns its output. Throws when it fails. */
  run(host: string, command: string): string;
  /**
   * The same without blocking this process, which may be the API server of the host. Rejects on failure or
   * after five seconds.
   */
  query(host: string, command: string): Promise<string>;
  /** Deletes and recreates a host. */
  reset(host: string): void;
  /** Powers a host off and boots it again. */
  powerCycle(host: string): void;
  /** Reboots the host cleanly, a moment later. */
  reboot(host: string): void;
  /** Waits until a rebooted host has booted. */
  booted(host: string): Promise<void>;
  /** Copies a file to the host, readable and executable for all. */
  put(host: string, path: string, content: string | Buffer): void;
  /** Imports an image into containerd on a host. */
  importImage(host: string, archive: Buffer): void;
  /** The host's address on the lab network. */
  address(host: string): string;
  /** Disconnects a host from its network, or reconnects it. */
  network(host: string, state: 'up' | 'down'): void;
  /**
   * Makes a port of the local loopback address available on the hosts' loopback: an API server then has one
   * address everywhere.
   */
  expose(port: number): void;
  /** Gives the local host an address on the lab network until the hosts end, so that it can connect to them. */
  attach(): void;
  /** Ends the hosts. */
  close(): void;
}

/** The reason why lab hosts are not available; null when they are. */
export function whyNoLabHosts(): string | null {
  if (process.platform !== 'linux') return 'lab hosts need Linux';
  if (process.getuid?.() !== 0) return 'lab hosts need root';
  if (!existsSync('/etc/debian_version')) return 'lab hosts need Debian or Ubuntu';
  if (spawnSync('unshare', ['--mount', '--uts', '--ipc', '--net', '--pid', '--fork', 'true']).status !== 0)
    return 'lab hosts need the right to make namespaces';
  return null;
}

/**
 * Boots hosts with a kubelet installed like by a package, without any configuration. Takes seconds; the first
 * time a minute.
 * @param kubelet a real one, which gets containerd and a pod network; default: the stand-in
 * @param kind separates these hosts from others of the same checkout
 */
export function startLabHosts(count: number, kubelet: string | null = null, kind = kubelet === null ? '' : 'real'): LabHosts {
  const own = ownLab(kind);
  const directory = kubelet === null ? (process.env.LAB_DIR ?? own.LAB_DIR) : own.LAB_DIR;
  const hostsSh = (...args: string[]): string =>
    execFileSync(HOSTS_SH, args, {
      encoding: 'utf8',
      env: {
        ...(kubelet === null ? {} : { LAB_EXTRA_PACKAGES: 'containerd,containernetworking-plugins' }),
        ...own,
        ...process.env,
        LAB_DIR: directory,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 900_000,
    });
  // An aborted run may have left its hosts running.
  hostsSh('down');
  hostsSh('up', String(count));
  const sshConfig = join(directory, 'ssh_config');
  const names = Array.from({ length: count }, (_, i) => `node${i + 1}`);
  const run = (host: string, command: string, input?: string | Buffer): string =>
    execFileSync('ssh', ['-F', sshConfig, host, command], {
      encoding: 'utf8',
      timeout: 60_000,
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(input === undefined ? {} : { input }),
    });
  const put = (host: string, path: string, content: string | Buffer): void => {
    run(host, `cat > ${path}.new && chmod 755 ${path}.new && mv ${path}.new ${path}`, content);
  };
  const install = (host: string): void => {
    put(host, '/usr/bin/kubelet', readFileSync(kubelet ?? STAND_IN));
    run(host, INSTALL);
    run(host, kubelet === null ? STAND_IN_RUNTIME : POD_NETWORK);
  };
  for (const name of names) install(name);
  return {
    sshConfig,
    names,
    namespace: `${process.env.LAB_NAME ?? own.LAB_NAME}-sw`,
    run: (host, command) => run(host, command),
    query: async (host, command) => {
      const words = ['-F', sshConfig, '-o', 'ConnectTimeout=3', host, command];
      return (await promisify(execFile)('ssh', words, { encoding: 'utf8', timeout: 5_000 })).stdout;
    },
    reset: (host) => {
      hostsSh('reset', host);
      install(host);
    },
    powerCycle: (host) => {
      hostsSh('kill', host);
      hostsSh('start', host);
      // The socket was in a directory that a boot clears.
      if (kubelet === null) run(host, `mkdir -p /var/run/containerd${STAND_IN_RUNTIME}`);
    },
    reboot: (host) => void run(host, ': >/run/lab/boot; systemd-run -q --on-active=1 systemctl reboot'),
    booted: async (host) => {
      await untilTrue(async () => {
        const words = ['-F', sshConfig, '-o', 'ConnectTimeout=3', host, '[ ! -e /run/lab/boot ]'];
        return promisify(execFile)('ssh', words, { timeout: 5_000 }).then(
          () => true,
          () => false,
        );
      }, 120_000);
      if (kubelet === null) run(host, `mkdir -p /var/run/containerd${STAND_IN_RUNTIME}`);
    },
    put,
    importImage: (host, archive) => void run(host, 'ctr -n k8s.io images import - >/dev/null', archive),
    address: (host) => run(host, "ip -o -4 address show dev eth0 | sed -E 's/.* inet ([0-9.]+).*/\\1/'").trim(),
    network: (host, state) => {
      const space = `${process.env.LAB_NAME ?? own.LAB_NAME}-${host}`;
      execFileSync('ip', ['-n', space, 'link', 'set', 'eth0', state]);
      const gateway = `${process.env.LAB_NET ?? own.LAB_NET}.1`;
      if (state === 'up') execFileSync('ip', ['-n', space, 'route', 'replace', 'default', 'via', gateway]);
    },
    expose: (port) => {
      hostsSh('expose', String(port));
      for (const name of names) run(name, forwardUnits(port));
    },
    attach: () => {
      const { LAB_NAME, LAB_NET } = { ...own, ...process.env };
      const ip = (words: string): Buffer => execFileSync('ip', words.split(' '));
      ip(`link add ${LAB_NAME}-up type veth peer name local netns ${LAB_NAME}-sw`);
      ip(`-n ${LAB_NAME}-sw link set local master br0 up`);
      ip(`address add ${LAB_NET}.2/24 dev ${LAB_NAME}-up`);
      ip(`link set ${LAB_NAME}-up up`);
    },
    close: () => void hostsSh('down'),
  };
}

/**
 * Names and addresses of a lab that belongs to this checkout, so that tests of two checkouts can run in
 * parallel.
 */
function ownLab(kind: string): {
  readonly LAB_DIR: string;
  readonly LAB_NAME: string;
  readonly LAB_NET: string;
  readonly LAB_LOOP: string;
} {
  const key = createHash('sha256')
    .update((process.env.LAB_DIR ?? HOSTS_SH) + kind)
    .digest();
  const net = key.readUInt8(0);
  return {
    LAB_DIR: join(process.env.KUBELETADM_LAB_TMPDIR ?? tmpdir(), `kubeletadm-lab-${key.toString('hex', 0, 3)}`),
    LAB_NAME: `k${key.toString('hex', 0, 3)}`,
    LAB_NET: `10.78.${net}`,
    LAB_LOOP: `127.78.${net}`,
  };
}

/** The files of the kubelet package. */
const INSTALL = `
systemctl disable -q --now kubelet 2>/dev/null
rm -rf /etc/kubernetes /var/lib/kubelet /etc/systemd/system/kubelet.service* /usr/lib/systemd/system/kubelet.service.d
mkdir -p /usr/lib/systemd/system /var/run/containerd
echo KUBELET_EXTRA_ARGS= > /etc/default/kubelet
cat > /usr/lib/systemd/system/kubelet.service <<'X'
[Unit]
Description=kubelet: The Kubernetes Node Agent
[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=1
[Install]
WantedBy=multi-user.target
X
sysctl -qw net.ipv4.ip_forward=1 || true
systemctl daemon-reload
`;

/**
 * A service in place of the container runtime: answers each gRPC call with an empty message (HTTP/2: settings, the headers
 * `:status: 200`, and the trailers `grpc-status: 0`).
 */
const STAND_IN_RUNTIME = `
cat > /usr/local/lib/lab-cri.py <<'X'
import os, socket, threading
path = "/var/run/containerd/containerd.sock"
os.path.exists(path) and os.remove(path)
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen(16)
frame = lambda kind, flags, stream, data=b"": len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + data
field = lambda name, value: bytes([0, len(name)]) + name + bytes([len(value)]) + value
def serve(client):
    read = client.makefile("rb"); read.read(24); client.sendall(frame(4, 0, 0))
    while len(head := read.read(9)) == 9:
        read.read(int.from_bytes(head[:3], "big")); stream = int.from_bytes(head[5:], "big")
        if head[3] == 4 and not head[4] & 1: client.sendall(frame(4, 1, 0))
        if head[3] in (0, 1) and head[4] & 1:
            client.sendall(frame(1, 4, stream, b"\\x88" + field(b"content-type", b"application/grpc")) + frame(0, 0, stream, bytes(5)) + frame(1, 5, stream, field(b"grpc-status", b"0")))
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
X
systemctl stop lab-cri 2>/dev/null
systemd-run -q --unit=lab-cri python3 /usr/local/lib/lab-cri.py
for i in 1 2 3 4 5 6 7 8 9 10; do [ -S /var/run/containerd/containerd.sock ] && break; sleep 0.2; done
`;

/** The pod network: without it a Node does not become Ready. */
const POD_NETWORK = `
mkdir -p /etc/cni/net.d
cat > /etc/cni/net.d/10-lab.conflist <<'X'
{"cniVersion":"0.4.0","name":"lab","plugins":[{"type":"ptp","ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
X
# A lab host must not lower oom_score_adj, as static pods of a control plane do.
cat > /etc/containerd/config.toml <<'X'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
X
systemctl restart containerd
`;

const forwardUnits = (port: number): string => `
cat > /etc/systemd/system/forward-${port}.socket <<'X'
[Socket]
ListenStream=127.0.0.1:${port}
[Install]
WantedBy=sockets.target
X
cat > /etc/systemd/system/forward-${port}.service <<'X'
[Service]
ExecStart=/lib/systemd/systemd-socket-proxyd lab-gw:${port}
X
systemctl daemon-reload
systemctl enable -q --now forward-${port}.socket
`;

/** Writes the drop-in of the kubeadm package. */
export const KUBEADM_DROP_IN = `mkdir -p /usr/lib/systemd/system/kubelet.service.d
cat > /usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf <<'X'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
X
systemctl daemon-reload`;

/** Installs the built program on a host as `kubeletadm`. @param dist what `npm run build` made */
export function installProgram(lab: LabHosts, host: string, dist: string): void {
  const archive = execFileSync('tar', ['-czf', '-', '-C', dist, 'kubeletadm.mjs', 'chunks'], { maxBuffer: 64 * 1024 * 1024 });
  lab.put(host, '/usr/local/lib/kubeletadm.tgz', archive);
  lab.run(
    host,
    'cd /usr/local/lib && mkdir -p kubeletadm && tar -xzf kubeletadm.tgz -C kubeletadm && ln -sf ../lib/kubeletadm/kubeletadm.mjs /usr/local/bin/kubeletadm',
  );
}
