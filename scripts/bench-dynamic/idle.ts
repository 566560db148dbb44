import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { pointerFile } from '../../src/kubelet/node-agent/layout.ts';
import { notify, until, validate } from './assess.ts';

const SECONDS = Number(process.env.BENCH_IDLE ?? 60);
/** The Node.js that runs the agent; with BENCH_EXECUTABLE, the executable of `npm run build:sea`. */
const { BENCH_NODE = process.execPath, BENCH_EXECUTABLE } = process.env;
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const CONFIG = '/var/lib/kubelet/config.yaml';

/** Stand-ins for the programs of a host, as shell scripts. `$ROOT` is the root of the host. */
const TOOLS: Readonly<Record<string, string>> = {
  systemctl: `case "$*" in
  'restart kubelet')
    p=$(sed -n 's/^KUBELET_CONFIG_ARGS=--config=//p' "$ROOT${pointerFile(AGENT_DIRECTORY)}" 2>/dev/null)
    read up rest </proc/uptime
    printf '1 (kubelet) S%s %s\\n' ' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0' "$(printf %s "$up" | tr -d .)" >"$ROOT/stat"
    printf '/usr/bin/kubelet\\0--config=%s\\0' "\${p:-${CONFIG}}" >"$ROOT/cmdline";;
  *MainPID*) echo MainPID=5000001;;
  show*) printf '%s\\n' LoadState=loaded ActiveState=active SubState=running NRestarts=0 Result=success ExecMainCode=0 ExecMainStatus=0 Restart=always NeedDaemonReload=no;;
esac`,
  cat: 'case $1 in /proc/[0-9]*) exec /bin/cat "$ROOT/${1##*/}";; esac\nexec /bin/cat "$@"',
  curl: "printf 'ok\\n200\\n'",
  kubelet: 'case $1 in --version) echo Kubernetes v1.36.2;; *) exit 1;; esac',
  journalctl: 'exit 0',
  chown: 'exit 0',
  sync: 'exit 0',
};

/** The cost of the agent process when idle: without an assignment, and with a good configuration. */
export async function benchIdle(): Promise<void> {
  const bundle = fileURLToPath(new URL('../../dist/kubeletadm-agent.mjs', import.meta.url));
  if (!existsSync(bundle)) throw new Error('dist/kubeletadm.mjs does not exist. Run npm run build.');
  const directory = mkdtempSync(join(tmpdir(), 'ka-bench-'));
  const root = join(directory, 'root');
  const put = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), mode);
  };
  for (const [name, text] of Object.entries(TOOLS)) put(`bin/${name}`, `#!/bin/sh\nROOT='${root}'\n${text}\n`, 0o755);
  put(CONFIG, `${HEADER}maxPods: 110\n`);
  put('cmdline', `/usr/bin/kubelet\0--config=${CONFIG}\0`);
  put('usr/lib/systemd/system/kubelet.service', '[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n');
  const api = await startApiServer({ tokens: { agent: { user: 'agent', groups: ['system:masters'] } } });
  const admin = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' }, env: {} });
  const ref = { apiVersion: 'v1', kind: 'Node', name: 'node-1' };
  await admin.create({ ...ref, metadata: { name: 'node-1' } });
  const beat = async (): Promise<void> => {
    const conditions = [
      { type: 'Ready', status: 'True', lastHeartbeatTime: new Date(Date.now() + 1000).toISOString().replace(/\.\d+/, '') },
    ];
    await admin.patch(ref, 'strategic', { status: { nodeInfo: { kubeletVersion: 'v1.36.2' }, conditions } }, { subresource: 'status' });
  };
  await beat();
  put('agent.conf', api.kubeconfigWithToken('agent'), 0o600);
  const words = ['agent', '--kubeconfig', join(root, 'agent.conf'), '--node-name', 'node-1', '--trial', '2s', '--listen', ''];
  // As in the unit.
  const env = {
    MALLOC_ARENA_MAX: '1',
    MALLOC_MMAP_THRESHOLD_: '32768',
    PATH: `${join(root, 'bin')}:/usr/bin:/bin`,
    HOME: directory,
    KUBELETADM_ROOT: root,
  };
  const [program, ...first] = BENCH_EXECUTABLE === undefined ? ([BENCH_NODE, bundle] as const) : ([BENCH_EXECUTABLE] as const);
  const agent = spawn(program, [...first, ...words], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  const reason = (): string => {
    const { conditions = [] } = (api.get('v1', 'Node', 'node-1')?.status ?? {}) as {
      readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
    };
    return conditions.find(({ type }) => type === 'KubeletConfigOk')?.reason ?? '';
  };
  process.once('exit', () => agent.kill('SIGKILL'));
  await until('Local', () => reason() === 'Local');
  await measure('nothing assigned', agent, api);
  api.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: AGENT_NAMESPACE } });
  api.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: AGENT_NAMESPACE },
    data: { kubelet: `${HEADER}maxPods: 50\n` },
  });
  const source = JSON.stringify({ configMap: { kubeletConfigKey: 'kubelet', name: 'a', namespace: AGENT_NAMESPACE } });
  await admin.patch(ref, 'merge', { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: source } } });
  await until('Trial', () => reason() === 'Starting' || reason() === 'Trial');
  await beat();
  await until('Good', () => reason() === 'Good', 15_000).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(api.get('v1', 'Node', 'node-1')?.status)}`);
  });
  await measure('a good configuration', agent, api);
  agent.kill('SIGTERM');
  await new Promise((resolve) => agent.once('exit', resolve));
  await admin.close();
  await api.close();
  rmSync(directory, { recursive: true, force: true });
}

async function measure(
  when: string,
  { pid = 0 }: ChildProcess,
  api: { readonly requests: readonly unknown[]; readonly openWatches: number },
): Promise<void> {
  // Lets earlier activity settle.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const begin = { cpu: cpuSeconds(pid), last: api.requests.at(-1) };
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
  const cpu = cpuSeconds(pid);
  const asked = api.requests.length - 1 - api.requests.lastIndexOf(begin.last as never);
  const { rss, pss, anonymous } = memoryMegabytes(pid);
  validate(`RSS, ${when}`, rss, 100, 'MB');
  notify(`PSS and anonymous memory, ${when}`, `${pss.toFixed(1)} MB, ${anonymous.toFixed(1)} MB`);
  validate(`CPU in ${SECONDS} s, ${when}`, ((cpu.own - begin.cpu.own) / SECONDS) * 100, 0.1, '%');
  notify(`CPU of its child processes, ${when}`, `${(((cpu.children - begin.cpu.children) / SECONDS) * 100).toFixed(2)} %`);
  validate(`requests in ${SECONDS} s, ${when}`, asked, 0, '');
  notify(`open watches, ${when}`, String(api.openWatches));
}

/** Memory of a process. The rest of the RSS are pages of files, which processes share. @see proc_pid_smaps(5) */
function memoryMegabytes(pid: number): { readonly rss: number; readonly pss: number; readonly anonymous: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const megabytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1]) / 1024;
  return { rss: megabytes('Rss'), pss: megabytes('Pss'), anonymous: megabytes('Anonymous') };
}

/** CPU time of a process and its finished children. Linux counts in hundredths of a second. */
function cpuSeconds(pid: number): { readonly own: number; readonly children: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .map(Number);
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15);
  return { own: (utime + stime) / 100, children: (cutime + cstime) / 100 };
}
