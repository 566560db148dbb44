import { setMaxListeners } from 'node:events';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import { runAgent } from '../../src/dynamic/agent/run-agent.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { nodeHttpsClient } from '../../src/kube/adapters/https-client.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { DEFAULT_TIMING } from '../../src/kubelet/health/assess.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { hashInPath, pointerFile } from '../../src/kubelet/node-agent/layout.ts';
import { type FakeHost, fakeHost } from '../../test/support/fake-host.ts';
import { fakeUnit } from '../../test/support/fake-units.ts';
import { notify, until, validate } from './assess.ts';

const AGENTS = Number(process.env.BENCH_AGENTS ?? 500);
const SPREAD_MS = 10_000;
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const LOCAL = '/var/lib/kubelet/config.yaml';
const MAP = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'shared' };

/**
 * Many agents at one API server: their requests when idle, and when the ConfigMap that all of them use is
 * edited in place.
 */
export async function benchCrowd(): Promise<void> {
  const api = await startApiServer({ tokens: { agent: { user: 'agent', groups: ['system:masters'] } } });
  const count = requestCounter(api);
  const catalogue = await loadCatalogue();
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const names = Array.from({ length: AGENTS }, (_, i) => `node-${i}`);
  const restarts: number[] = [];
  const kubeconfig = { text: api.kubeconfigWithToken('agent'), file: 'agent.conf' };
  const admin = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' }, env: {} });
  api.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: MAP.name, namespace: MAP.namespace },
    data: { kubelet: `${HEADER}maxPods: 50\n` },
  });
  const hosts = names.map((name) => {
    api.put({ apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { nodeInfo: { kubeletVersion: 'v1.36.2' } } });
    const { host, maxPods } = hostOf(name, () => restarts.push(performance.now()));
    return { name, host, maxPods };
  });
  const started = performance.now();
  for (const { name, host } of hosts)
    void runAgent({
      nodeName: name,
      cluster: kubeCluster({ kubeconfig, env: {} }),
      host,
      web: nodeHttpsClient({}),
      kubeconfig: '/etc/kubernetes/kubelet.conf',
      clock: systemClock,
      reporter: { verbosity: 0, report: () => undefined },
      random: Math.random,
      catalogue,
      directory: AGENT_DIRECTORY,
      localConfig: LOCAL,
      namespace: MAP.namespace,
      allow: 'unsafe',
      signersFile: null,
      timing: { ...DEFAULT_TIMING, pollMs: 30_000 },
      spareCheckpoints: 1,
      spreadMs: SPREAD_MS,
      signal: stop.signal,
    }).catch(() => undefined);
  const reported = (reason: string): boolean =>
    names.every((name) => {
      const { conditions = [] } = (api.get('v1', 'Node', name)?.status ?? {}) as {
        readonly conditions?: readonly { readonly reason?: string }[];
      };
      return conditions.some((condition) => condition.reason === reason);
    });
  await until('all have reported', () => reported('Local'), 300_000);
  notify(
    `${AGENTS} agents started at once, and reported`,
    `in ${((performance.now() - started) / 1000).toFixed(1)} s, ${count.total()} requests`,
  );
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const idle = count.total();
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  validate('requests of all in 15 s without anything to do', count.total() - idle, 0, '');
  validate('watches of one agent', api.openWatches / AGENTS, 1, '');

  const source = JSON.stringify({ configMap: { kubeletConfigKey: 'kubelet', name: MAP.name, namespace: MAP.namespace } });
  for (const name of names)
    await admin.patch({ apiVersion: 'v1', kind: 'Node', name }, 'merge', {
      metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: source } },
    });
  await until('all run it', () => hosts.every(({ maxPods }) => maxPods() === 50), 300_000);
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  restarts.length = 0;
  count.reset();
  const edited = performance.now();
  await admin.patch(MAP, 'merge', { data: { kubelet: `${HEADER}maxPods: 51\n` } });
  await until('all run the edit', () => hosts.every(({ maxPods }) => maxPods() === 51), 300_000);
  const after = restarts.map((at) => (at - edited) / 1000).sort((a, b) => a - b);
  const bySecond = new Map<number, number>();
  for (const at of after) bySecond.set(Math.floor(at), (bySecond.get(Math.floor(at)) ?? 0) + 1);
  notify('an edit in place', `restarts ${AGENTS} kubelets from ${after[0]?.toFixed(1)} s to ${after.at(-1)?.toFixed(1)} s after it`);
  validate('most restarts in a second', Math.max(...bySecond.values()), Math.ceil((AGENTS / (SPREAD_MS / 1000)) * 2), '');
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  validate('requests of an agent for it', count.total() / AGENTS, 8, '');
  validate('most requests in a second', count.peak(), AGENTS, '');
  stop.abort(new Error('done'));
}

function requestCounter(api: LabApiServer): { total(): number; peak(): number; reset(): void } {
  let [total, peak, last] = [0, 0, api.requests.at(-1)];
  const recent: { readonly at: number; readonly count: number }[] = [];
  // The API server keeps only the last thousand requests.
  setInterval(() => {
    const found = api.requests.length - 1 - api.requests.lastIndexOf(last as never);
    const fresh = found === 0 ? [] : api.requests.slice(-found).filter(({ user }) => user === 'agent');
    last = api.requests.at(-1);
    total += fresh.length;
    recent.push({ at: performance.now(), count: fresh.length });
    while ((recent[0]?.at ?? 0) < performance.now() - 1000) recent.shift();
    peak = Math.max(
      peak,
      recent.reduce((sum, { count }) => sum + count, 0),
    );
  }, 50).unref();
  return {
    total: () => total,
    peak: () => peak,
    reset: () => {
      total = 0;
      peak = 0;
    },
  };
}

/** A host in memory with a kubelet that runs the configuration of the agent's pointer. */
function hostOf(name: string, onRestart: () => void): { readonly host: FakeHost; readonly maxPods: () => number } {
  let path = LOCAL;
  let pid = 100;
  const unit = fakeUnit({ fragmentPath: '/usr/lib/systemd/system/kubelet.service', activeState: 'active', subState: 'running' });
  const host = fakeHost({
    name,
    files: {
      '/usr/lib/systemd/system/kubelet.service': `[Service]\nExecStart=/usr/bin/kubelet --config=${LOCAL}\n`,
      [LOCAL]: `${HEADER}maxPods: 110\n`,
    },
    commands: {
      sh: ([, , script = '']) => {
        if (script.includes('command -v kubelet')) return { stdout: '/usr/bin/kubelet\n' };
        if (!script.includes('/cmdline')) return { exitCode: 127 };
        const argv = `/usr/bin/kubelet\0--config=${path}\0`;
        return { stdout: script.includes('--version') ? `${pid}\nKubernetes v1.36.2\n${argv}` : `${pid}\n${argv}` };
      },
      kubelet: { stdout: 'Kubernetes v1.36.2\n' },
      id: { stdout: '0\n' },
      uname: { stdout: `${name}\n` },
      'systemctl reset-failed kubelet': {},
    },
    units: { kubelet: unit },
    http: () => ({ status: 200, body: 'ok' }),
  });
  unit.onStart = () => {
    const hash = hashInPath(host.files.get(pointerFile(AGENT_DIRECTORY))?.content ?? '');
    path = hash === null ? LOCAL : `${AGENT_DIRECTORY}/checkpoints/${hash}/kubelet.yaml`;
    pid++;
    onRestart();
  };
  return { host, maxPods: () => Number(/maxPods: (\d+)/.exec(host.files.get(path)?.content ?? '')?.[1]) };
}
