import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../src/base/json.ts';
import { nativeStorePaths } from '../../src/dynamic/native/native-store.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { type LabHosts, startLabHosts } from './lab-hosts.ts';
import type { SubjectOptions } from './native-scenarios/scenario.ts';
import { nativeSteps } from './native-steps.ts';
import { becomes, comesTo, type NativeSubject, type SubjectKubelet, type SubjectProcess, type SubjectStore } from './native-subject.ts';
import { payload } from './native-world.ts';
import { type RealApiServer, type RealBinaries, startRealApiServer } from './real-apiserver.ts';

/** A real control plane and hosts with real kubelets up to 1.23. */
export interface RealNativeLab {
  readonly api: RealApiServer;
  readonly admin: Cluster;
  readonly hosts: LabHosts;
  /** The kubeconfig of an administrator, for another API server with the same objects and the gate off. */
  withoutGate(): Promise<string>;
  /**
   * Lends a host to one test, with a kubelet that runs its local configuration and, unless the feature is
   * off, has reported that.
   */
  lend<T>(options: RealSubjectOptions, use: (subject: RealSubject) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface RealSubjectOptions extends SubjectOptions {
  /** The kubelet is started without a directory for dynamic configuration. */
  readonly isOff?: boolean;
}

export interface RealSubject extends NativeSubject {
  /** Runs a shell line as root. */
  sh(script: string): Promise<string>;
}

const DIRECTORY = '/var/lib/kubelet/dynamic';
const DROP_IN = '/etc/systemd/system/kubelet.service.d/10-test.conf';
/**
 * Settings that payloads omit, for every payload replaces the whole file. Anonymous access to configz and
 * metrics is allowed.
 */
const FLAGS = [
  '--kubeconfig=/etc/kubernetes/kubelet.conf',
  '--config=/var/lib/kubelet/config.yaml',
  '--container-runtime=remote',
  '--container-runtime-endpoint=unix:///run/containerd/containerd.sock',
  '--cgroup-driver=cgroupfs',
  '--anonymous-auth=true',
  '--authorization-mode=AlwaysAllow',
];

/** Starts them. @param count number of hosts */
export async function startRealNative(binaries: RealBinaries, count: number): Promise<RealNativeLab> {
  const api = await startRealApiServer(binaries, { withControllerManager: true });
  const admin = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
  await admin.create(REFUSING_WEBHOOK);
  const hosts = startLabHosts(count, binaries.kubelet);
  const free: string[] = [];
  const waiting: ((host: string) => void)[] = [];
  const opened: Cluster[] = [admin];
  const open = (text: string): Cluster => {
    const cluster = kubeCluster({ kubeconfig: { text, file: 'test.conf' } });
    opened.push(cluster);
    return cluster;
  };
  let lent = 0;
  let other: Promise<string> | null = null;
  const withoutGate = (): Promise<string> => {
    other ??= api.startAnother(['--feature-gates=DynamicKubeletConfig=false']).then(({ adminKubeconfig }) => adminKubeconfig);
    return other;
  };
  const close = async (): Promise<void> => {
    hosts.close();
    for (const cluster of opened) await cluster.close();
    await api.close();
  };
  try {
    for (const host of hosts.names) {
      hosts.run(host, 'mkdir -p /etc/kubernetes /var/lib/kubelet');
      hosts.put(host, '/etc/kubernetes/kubelet.conf', await api.kubeconfigFor(`system:node:${host}`, ['system:nodes']));
      hosts.put(host, '/var/lib/kubelet/config.yaml', payload('maxPods: 110'));
      free.push(host);
    }
    hosts.expose(Number(new URL(api.url).port));
  } catch (error) {
    await close();
    throw error;
  }
  const lend: RealNativeLab['lend'] = async (options, use) => {
    const host = free.shift() ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
    try {
      const subject = realSubject({ host, namespace: `test-${++lent}`, hosts, admin, api, open, withoutGate });
      await begin(subject, options);
      return await use(subject);
    } finally {
      const next = waiting.shift();
      if (next === undefined) free.push(host);
      else next(host);
    }
  };
  return { api, admin, hosts, withoutGate, lend, close };
}

interface SubjectPlace {
  readonly host: string;
  readonly namespace: string;
  readonly hosts: LabHosts;
  readonly admin: Cluster;
  readonly api: RealApiServer;
  readonly open: (kubeconfig: string) => Cluster;
  readonly withoutGate: () => Promise<string>;
}

/** Removes all remains of the previous test. */
async function begin(subject: RealSubject, { restart = 'always', needsNode = false, isOff = false }: RealSubjectOptions): Promise<void> {
  const { admin, nodeName, namespace } = subject;
  const flags = [...FLAGS, ...(isOff ? [] : [`--dynamic-config-dir=${DIRECTORY}`]), ...(needsNode ? ['--register-node=false'] : [])];
  const unit = `[Service]\nExecStart=\nExecStart=/usr/bin/kubelet ${flags.join(' ')}\nRestart=${restart}\nRestartSec=1\n`;
  await subject.sh(`systemctl stop kubelet; rm -rf ${DIRECTORY} ${dirname(DROP_IN)}; mkdir ${dirname(DROP_IN)}
cat > ${DROP_IN} <<'X'
${unit}X
systemctl daemon-reload`);
  await subject.loseApiServer(false);
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const node = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  await admin.delete(node);
  await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } });
  const { items } = await admin.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' });
  for (const { metadata } of items.filter(({ metadata: { name } }) => name.startsWith(`${nodeName}.`)))
    await admin.delete({ apiVersion: 'v1', kind: 'Event', namespace: 'default', name: metadata.name });
  await subject.kubelet.start();
  await comesTo(subject, { status: isOff ? undefined : {}, pods: 110 });
}

function realSubject({ host, namespace, hosts, admin, api, open, withoutGate }: SubjectPlace): RealSubject {
  const sh = shellOf(hosts, host);
  const { assigned } = nativeStorePaths(DIRECTORY);
  const store = storeOf(sh);
  const kubelet = kubeletOf(sh);
  const pass = (seconds: number): Promise<void> => sleep(seconds * 1000);
  const port = Number(new URL(api.url).port);
  let asNode: Promise<Cluster> | null = null;
  const nodeCluster = (): Promise<Cluster> => {
    asNode ??= api.kubeconfigFor(`system:node:${host}`, ['system:nodes']).then(open);
    return asNode;
  };
  const backdate = async (minutes: number): Promise<void> => void (await sh(`touch -d '-${minutes} minutes' ${assigned}`));
  const subject: RealSubject = {
    ...nativeSteps({ admin, nodeName: host, namespace }),
    nodeName: host,
    namespace,
    admin,
    asNode: { get: async (ref) => (await nodeCluster()).get(ref), patch: async (...given) => (await nodeCluster()).patch(...given) },
    directory: DIRECTORY,
    kubelet,
    store,
    sh,
    patience: 4,
    rounds: (_, real) => real,
    now: () => Date.now() / 1000,
    pass,
    backdate,
    passTrial: async () => {
      // The first sync of the kubelet writes the file again.
      const started = async () => Number(await sh('date -d "$(systemctl show kubelet -p ExecMainStartTimestamp --value)" +%s'));
      await becomes(subject, async () => (await store.modifiedAt(assigned)) > (await started()) + 5, true);
      await backdate(11);
      await becomes(
        subject,
        async () => (await store.read(nativeStorePaths(DIRECTORY).lastKnownGood)) === (await store.read(assigned)),
        true,
      );
    },
    withoutGate: async () => open(await withoutGate()),
    loseApiServer: async (isLost) => {
      const [socket, service] = [`forward-${port}.socket`, `forward-${port}.service`];
      await sh(isLost ? `systemctl stop ${socket} ${service}` : `systemctl start ${socket}`);
    },
    refuseReports: async (isRefused) => {
      const labels = { reports: isRefused ? 'refused' : null };
      await admin.patch({ apiVersion: 'v1', kind: 'Node', name: host }, 'merge', { metadata: { labels } });
    },
  };
  return subject;
}

type Shell = (script: string) => Promise<string>;

/** A shell on a host over one connection for all commands; it exits when the connection closes. */
function shellOf({ sshConfig }: LabHosts, host: string): Shell {
  const kept = ['-o', 'ControlMaster=auto', '-o', `ControlPath=${sshConfig}-%C`, '-o', 'ControlPersist=30'];
  return async (script) => {
    const words = ['-F', sshConfig, ...kept, host, script];
    return (await promisify(execFile)('ssh', words, { encoding: 'utf8', timeout: 60_000, maxBuffer: 32 << 20 })).stdout;
  };
}

function storeOf(sh: Shell): SubjectStore {
  const quoted = (path: string): string => `'${path}'`;
  return {
    read: async (path) => {
      const text = await sh(`[ -f ${quoted(path)} ] && echo yes && cat ${quoted(path)} || echo no`);
      return text.startsWith('yes\n') ? text.slice('yes\n'.length) : null;
    },
    write: async (path, text) => {
      const base64 = Buffer.from(text).toString('base64');
      await sh(`mkdir -p $(dirname ${quoted(path)}) && echo ${base64} | base64 -d > ${quoted(path)}`);
    },
    makeDirectory: async (path) => void (await sh(`mkdir -p ${quoted(path)}`)),
    remove: async (path) => void (await sh(`rm -r ${quoted(path)}`)),
    exists: async (path) => (await sh(`[ -e ${quoted(path)} ] && echo yes || echo no`)) === 'yes\n',
    list: async (path) => (await sh(`ls ${quoted(path)}`)).trim().split('\n'),
    modifiedAt: async (path) => Number(await sh(`stat -c %.9Y ${quoted(path)}`)),
  };
}

function kubeletOf(sh: Shell): SubjectKubelet {
  /** The journal position of the last manual start. */
  let cursor = '';
  const journal = (): Promise<string> =>
    sh(`journalctl -u kubelet -o cat --no-pager --lines=20000 ${cursor === '' ? '' : `--after-cursor='${cursor}'`}`);
  return {
    start: async () => {
      const shown = await sh('systemctl stop kubelet; journalctl -n 1 --show-cursor --no-pager; systemctl start kubelet');
      cursor = /^-- cursor: (\S+)$/m.exec(shown)?.[1] ?? '';
    },
    stop: async () => void (await sh('systemctl stop kubelet')),
    process: async () => {
      const shown = await sh('systemctl show kubelet -p SubState,NRestarts');
      const state = STATES[/^SubState=(.*)$/m.exec(shown)?.[1] ?? ''] ?? 'stopped';
      const ends = (await journal()).matchAll(
        /^kubelet\.service: (?:Main process exited, code=\w+, status=(\d+)|Deactivated successfully)/gm,
      );
      return { state, restarts: Number(/^NRestarts=(\d+)$/m.exec(shown)?.[1]), exitCodes: [...ends].map(([, code]) => Number(code ?? 0)) };
    },
    configz: async () => {
      const text = await sh('curl -sk -m 5 https://127.0.0.1:10250/configz || true');
      return text === '' ? null : (JSON.parse(text) as { readonly kubeletconfig: JsonObject }).kubeletconfig;
    },
    metrics: () => sh('curl -sk -m 5 https://127.0.0.1:10250/metrics | grep ^kubelet_node_config_ || true'),
    log: async () => (await journal()).replaceAll(/^Flag --.*\n/gm, ''),
  };
}

const STATES: Readonly<Record<string, SubjectProcess['state']>> = { running: 'running', 'auto-restart': 'waiting', start: 'running' };

/** The port has no listener: a review of credentials through it ends in an error 500. */
const REFUSING_WEBHOOK = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'refuse-reports' },
  webhooks: [
    {
      name: 'refuse.reports.test',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Fail',
      timeoutSeconds: 1,
      clientConfig: { url: 'https://127.0.0.1:1/' },
      objectSelector: { matchLabels: { reports: 'refused' } },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['nodes/status'] }],
    },
  ],
};
