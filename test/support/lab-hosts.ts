import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HOSTS_SH = fileURLToPath(new URL('../lab/hosts.sh', import.meta.url));
const STAND_IN = fileURLToPath(new URL('../lab/stand-in-kubelet.py', import.meta.url));

/** Real hosts on this machine: systemd, sshd, a network of their own. */
export interface LabHosts {
  readonly sshConfig: string;
  readonly names: readonly string[];
  /** Runs a shell line on a host as root; its output. Throws when it fails. */
  run(host: string, command: string): string;
  /** Deletes and recreates a host. */
  reset(host: string): void;
  /** Pulls the plug and boots again. */
  powerCycle(host: string): void;
}

/** Why lab hosts can't be had here; null when they can. */
export function whyNoLabHosts(): string | null {
  if (process.platform !== 'linux') return 'lab hosts need Linux';
  if (process.getuid?.() !== 0) return 'lab hosts need root';
  if (!existsSync('/etc/debian_version')) return 'lab hosts need Debian or Ubuntu';
  if (spawnSync('unshare', ['--mount', '--uts', '--ipc', '--net', '--pid', '--fork', 'true']).status !== 0)
    return 'lab hosts need the right to make namespaces';
  return null;
}

/** Boots hosts with a stand-in kubelet installed the way a package would, nothing configured. Takes seconds; the first time on a machine a minute. */
export function startLabHosts(count: number): LabHosts {
  const own = ownLab();
  const directory = process.env.LAB_DIR ?? own.LAB_DIR;
  const hostsSh = (...args: string[]): string =>
    execFileSync(HOSTS_SH, args, {
      encoding: 'utf8',
      env: { ...own, ...process.env, LAB_DIR: directory },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 900_000,
    });
  hostsSh('up', String(count));
  const sshConfig = join(directory, 'ssh_config');
  const names = Array.from({ length: count }, (_, i) => `node${i + 1}`);
  const run = (host: string, command: string, input?: string): string =>
    execFileSync('ssh', ['-F', sshConfig, host, command], { encoding: 'utf8', timeout: 60_000, ...(input === undefined ? {} : { input }) });
  const install = (host: string): void => {
    run(host, 'cat > /usr/bin/kubelet && chmod 755 /usr/bin/kubelet', readFileSync(STAND_IN, 'utf8'));
    run(host, INSTALL);
  };
  for (const name of names) install(name);
  return {
    sshConfig,
    names,
    run: (host, command) => run(host, command),
    reset: (host) => {
      hostsSh('reset', host);
      install(host);
    },
    powerCycle: (host) => {
      hostsSh('kill', host);
      hostsSh('start', host);
    },
  };
}

/** Names and addresses of a lab that belongs to this checkout, so that tests of two checkouts run side by side. */
function ownLab(): { readonly LAB_DIR: string; readonly LAB_NAME: string; readonly LAB_NET: string; readonly LAB_LOOP: string } {
  const key = createHash('sha256')
    .update(process.env.LAB_DIR ?? HOSTS_SH)
    .digest();
  const net = key.readUInt8(0);
  return {
    LAB_DIR: join(tmpdir(), `kubeletadm-lab-${key.toString('hex', 0, 3)}`),
    LAB_NAME: `k${key.toString('hex', 0, 3)}`,
    LAB_NET: `10.78.${net}`,
    LAB_LOOP: `127.78.${net}`,
  };
}

/** What the kubelet package brings, and a socket where the container runtime's would be. */
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
python3 -c 'import socket,os
p="/var/run/containerd/containerd.sock"
os.path.exists(p) and os.remove(p)
socket.socket(socket.AF_UNIX).bind(p)'
sysctl -qw net.ipv4.ip_forward=1 || true
systemctl daemon-reload
`;
