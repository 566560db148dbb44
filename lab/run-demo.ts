import { KUBELET_CONFIG_FILE } from '../src/kube/well-known.ts';

/** What the acts of the demo use: the commands are shown while they run. */
export interface DemoStage {
  readonly fleetFile: string;
  readonly sshConfig: string;
  readonly reportFile: string;
  /** Runs a command line of this program. */
  run(argv: readonly string[]): Promise<{ readonly exitCode: number; readonly stdout: string; readonly stderr: string }>;
  /** Runs another program of the local host. */
  runProgram(argv: readonly string[]): Promise<void>;
  /** The content of a file of a host, and the time of its last change in milliseconds since the epoch. */
  readHostFile(host: string, path: string): Promise<{ readonly text: string; readonly changedAt: number }>;
  /** The path of a file of a host on the local host. */
  pathOf(host: string, path: string): string;
  kubeletStarts(host: string): number;
  /** The Nodes of the cluster, sorted by name. */
  readNodes(): Promise<readonly { readonly name: string; readonly isReady: boolean; readonly pods: string }[]>;
  readReport(): Promise<string>;
}

/** An act: a sentence before its commands, and the commands. */
interface Act {
  readonly title: string;
  /**
   * Runs the commands and observes their results on the hosts and in the cluster.
   * @returns the observation, for the line after the commands
   * @throws NotObserved
   */
  readonly play: (stage: DemoStage) => Promise<string>;
}

/** An act had another result than its sentence. */
export class NotObserved extends Error {}

const WORKERS = ['node2', 'node3'] as const;
const ALL = ['node1', ...WORKERS] as const;

/** The fleet file of the demo. The other paths of the lab are relative to it. */
export const DEMO_FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
sshConfig: lab/ssh_config
cluster: {kubeconfig: lab/demo.conf, configuration: cluster.yaml}
groups:
  - name: workers
    kubeletConfiguration: {maxPods: 110, systemReserved: {memory: 512Mi}}
hosts:
  - {name: node1, role: control-plane}
  - {name: node2, groups: [workers]}
  - {name: node3, groups: [workers]}
`;

/** The acts, in order. Each continues with the hosts as the previous one left them. */
export const ACTS: readonly Act[] = [
  {
    title: 'One file describes a control plane and two workers: "plan" shows what "apply" does to the three bare hosts.',
    play: async (stage) => {
      await stage.runProgram(['cat', stage.fleetFile]);
      await expectExit(stage, 0, ['plan', '-f', stage.fleetFile]);
      for (const host of ALL) check(stage.kubeletStarts(host) === 0, `plan started the kubelet of ${host}`);
      await expectExit(stage, 0, ['apply', '--yes', '-f', stage.fleetFile]);
      await requireReady(stage);
      for (const host of ALL) check(stage.kubeletStarts(host) > 0, `the kubelet of ${host} was not started`);
      return 'the Nodes node1, node2 and node3 are Ready';
    },
  },
  {
    title: 'A field changes on the workers: node2 is the canary, and node3 follows only when node2 is healthy.',
    play: async (stage) => {
      const before = startsOf(stage);
      await stage.runProgram(['sed', '-i', 's/maxPods: 110/maxPods: 60/', stage.fleetFile]);
      await expectExit(stage, 0, ['apply', '--yes', '-f', stage.fleetFile, '--canary', 'node2']);
      const files = await Promise.all(WORKERS.map((host) => stage.readHostFile(host, KUBELET_CONFIG_FILE)));
      check(
        files.every(({ text }) => /^maxPods: 60$/m.test(text)),
        'config.yaml of a worker does not have maxPods 60',
      );
      check((files[0]?.changedAt ?? 0) < (files[1]?.changedAt ?? 0), 'node3 was changed before node2');
      const nodes = await requireReady(stage);
      check(
        nodes.every(({ name, pods }) => name === 'node1' || pods === '60'),
        'a Node does not report 60 pods',
      );
      const after = startsOf(stage);
      check(after.node1 === before.node1, 'the kubelet of node1 was restarted');
      for (const host of WORKERS) check(after[host] === before[host] + 1, `the kubelet of ${host} was not restarted once`);
      return 'node2 changed before node3, one restart each; both Nodes are Ready and report 60 pods; node1 was not touched';
    },
  },
  {
    title: 'A bad value (64Gi reserved on hosts with 8 GiB) is refused. Forced, node2 tries it first and rolls back; node3 keeps running.',
    play: async (stage) => {
      const before = startsOf(stage);
      const files = await textsOf(stage);
      await stage.runProgram(['sed', '-i', 's/512Mi/64Gi/', stage.fleetFile]);
      await expectExit(stage, 3, ['apply', '--yes', '-f', stage.fleetFile]);
      check(same(await textsOf(stage), files) && same(startsOf(stage), before), 'a refused change changed a host');
      const forced = ['apply', '--yes', '-f', stage.fleetFile, '--allow', 'unsafe', '--allow-pod-loss'];
      const { exitCode } = await stage.run([...forced, '--report', stage.reportFile]);
      check(exitCode === 4 || exitCode === 5, `the forced change ended with exit code ${exitCode}`);
      const after = startsOf(stage);
      check(after.node2 > before.node2 && after.node3 === before.node3, 'not node2 alone was restarted');
      check(same(await textsOf(stage), files), 'the previous files of node2 were not restored');
      await requireReady(stage);
      check(/<html/.test(await stage.readReport()), 'the report was not written');
      return 'node2 has its previous configuration again, node3 was not touched; all Nodes are Ready';
    },
  },
  {
    title: 'Somebody edits a file on node3: "drift" finds the host, and "explain" names the file, the line and the desired value.',
    play: async (stage) => {
      await stage.runProgram(['sed', '-i', 's/64Gi/512Mi/', stage.fleetFile]);
      await stage.runProgram(['sed', '-i', 's/maxPods: 60/maxPods: 200/', stage.pathOf('node3', KUBELET_CONFIG_FILE)]);
      const { stdout: drift } = await expectExit(stage, 6, ['fleet', 'drift', '-f', stage.fleetFile, '--exit-code']);
      check(/node3/.test(drift) && /maxPods/.test(drift) && /\b200\b/.test(drift), 'drift does not name node3, maxPods and 200');
      check(!/^node2\b/m.test(drift), 'drift names node2');
      const { stdout: explained } = await expectExit(stage, 0, ['node', 'explain', 'node3', 'maxPods', '-f', stage.fleetFile]);
      check(/\b200\b/.test(explained) && /\b60\b/.test(explained), 'explain does not name the values 200 and 60');
      check(explained.includes(`${KUBELET_CONFIG_FILE}:`), 'explain does not name the line of config.yaml');
      return 'node3, the line and both values were named; node2 has no drift';
    },
  },
  {
    title: 'One command renews all certificates of the control plane and restarts its static Pods one by one; no kubelet is restarted.',
    play: async (stage) => {
      const before = startsOf(stage);
      const readFiles = () => Promise.all(RENEWED.map(async (path) => (await stage.readHostFile('node1', path)).text));
      const old = await readFiles();
      const { stderr } = await expectExit(stage, 0, [
        'certs',
        'renew',
        'all',
        '--restart',
        '--host',
        'node1',
        '--ssh-config',
        stage.sshConfig,
      ]);
      for (const name of RESTARTED) check(stderr.includes(`${name} runs in a new container`), `${name} was not restarted`);
      const renewed = await readFiles();
      check(
        renewed.every((text, i) => text !== old[i]),
        'a certificate was not renewed',
      );
      check(same(startsOf(stage), before), 'a kubelet was restarted');
      await requireReady(stage);
      return 'API server and etcd have new certificates and run in new containers, no kubelet was restarted; all Nodes are Ready';
    },
  },
];

const RENEWED = ['/etc/kubernetes/pki/apiserver.crt', '/etc/kubernetes/pki/etcd/server.crt'] as const;
const RESTARTED = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

/**
 * The cluster configuration of the demo.
 * @param endpoint host and port of the API server
 */
export function demoCluster(endpoint: string): string {
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: ${endpoint}
encryptionAlgorithm: ECDSA-P256
`;
}

type Starts = Readonly<Record<(typeof ALL)[number], number>>;

function startsOf({ kubeletStarts }: DemoStage): Starts {
  return { node1: kubeletStarts('node1'), node2: kubeletStarts('node2'), node3: kubeletStarts('node3') };
}

async function textsOf({ readHostFile }: DemoStage): Promise<readonly string[]> {
  return Promise.all(WORKERS.map(async (host) => (await readHostFile(host, KUBELET_CONFIG_FILE)).text));
}

/** @returns what the command printed */
async function expectExit(stage: DemoStage, expected: number, argv: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const { exitCode, ...printed } = await stage.run(argv);
  check(exitCode === expected, `the command ended with exit code ${exitCode} instead of ${expected}`);
  return printed;
}

async function requireReady(stage: DemoStage) {
  const nodes = await stage.readNodes();
  const ready = nodes.filter(({ isReady }) => isReady).map(({ name }) => name);
  check(same(ready, ALL), `Ready are ${ready.join(', ') || 'no Nodes'}, not ${ALL.join(', ')}`);
  return nodes;
}

function check(isObserved: boolean, otherwise: string): void {
  if (!isObserved) throw new NotObserved(otherwise);
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
