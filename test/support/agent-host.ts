import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { podFiles } from '../../lab/hosts/kubelet-pods.ts';
import { labNetwork } from '../../lab/hosts/lab-network.ts';
import { createRootTree } from '../../lab/hosts/root-tree.ts';
import { writeStandInCommands } from '../../lab/hosts/stand-in-commands.ts';
import { StandInHost } from '../../lab/hosts/stand-in-host.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { runAgent } from '../../src/dynamic/agent/run-agent.ts';
import type { AgentState } from '../../src/dynamic/agent/state.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { RunResult, Transport } from '../../src/host/transport.ts';
import { clientCertificateKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import type { Catalogue } from '../../src/kubelet/catalogue/catalogue.ts';
import { DEFAULT_TIMING } from '../../src/kubelet/health/assess.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { POINTER_DROP_IN, renderPointerDropIn } from '../../src/kubelet/node-agent/agent-units.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { fakeClock } from './fake-clock.ts';
import type { FakeCluster } from './fake-cluster.ts';
import { fakePods } from './fake-pods.ts';
import { type FakeReply, fakeWeb } from './fake-web.ts';
import { findProgram } from './shells.ts';

/** Programs by which a shell changes the disk or the unit. */
const CHANGING = ['mv', 'rm', 'ln', 'mkdir', 'rmdir', 'chmod', 'systemctl'];

/** Creates the tools of such hosts in a directory. */
export async function writeHostTools(directory: string): Promise<void> {
  await writeStandInCommands(join(directory, 'bin'));
  mkdirSync(join(directory, 'fault'), { recursive: true });
  for (const name of CHANGING) {
    const real = name === 'systemctl' ? join(directory, 'bin/systemctl') : (findProgram(name) ?? name);
    // Reading changes nothing.
    const only = name === 'systemctl' ? `case "$1" in restart|reset-failed) ;; *) exec '${real}' "$@";; esac\n` : '';
    const text = `#!/bin/sh
${only}read n <"$FAULT/count"; n=$((n + 1)); echo $n >"$FAULT/count"; echo "${name} $*" >>"$FAULT/calls"
read at <"$FAULT/at"; [ $n != "$at" ] || kill -KILL 0
exec '${real}' "$@"
`;
    writeFileSync(join(directory, 'fault', name), text);
    chmodSync(join(directory, 'fault', name), 0o755);
  }
}

/**
 * A host in a directory with a stand-in kubelet, and an agent on it that is killed together with its shell.
 */
export interface AgentHost {
  readonly root: string;
  readonly standIn: StandInHost;
  state: AgentState | null;
  /** The calls that changed something. */
  calls(): readonly string[];
  /**
   * Starts the agent. `killBefore`: the agent and its shell are killed just before that call, counted from 1.
   */
  start(killBefore?: number): void;
  /** Waits for the condition; false when the agent was killed first. */
  until(isTrue: () => boolean): Promise<boolean>;
  stop(): Promise<void>;
  /** Reboots the host: the kubelet starts with the files on the disk. */
  reboot(): void;
  close(): void;
}

export interface AgentHostOptions {
  readonly directory: string;
  readonly tools: string;
  readonly cluster: FakeCluster;
  readonly catalogue: Catalogue;
  /** A host directory to copy at the start. */
  readonly from?: string;
  /** The kubelet runs the pods of its node, and those of staticPodPath; default false. */
  readonly pods?: boolean;
}

export const NODE = 'node-1';
/** A CA that did not sign the credential of the node. */
export const OTHER_CA = '/etc/kubernetes/other-ca.crt';
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nserving\n-----END CERTIFICATE-----\n';
const KUBECONFIG = clientCertificateKubeconfig({
  clusterName: 'kubernetes',
  server: 'https://cluster.test:6443',
  caPem: CERTIFICATE,
  user: `system:node:${NODE}`,
  certificatePem: CERTIFICATE,
  keyPem: new Secret('-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----\n'),
}).reveal();
/** Shorter than in production, so that a trial after a restart of the agent is short. */
const HEARTBEAT_MS = 1_000;

/** Creates such a host. */
export async function agentHost({
  directory,
  tools,
  cluster,
  catalogue,
  from,
  pods: hasPods = false,
}: AgentHostOptions): Promise<AgentHost> {
  const root = join(directory, 'root');
  const fault = join(directory, 'fault');
  mkdirSync(fault, { recursive: true });
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  if (from === undefined) {
    const socket = await createRootTree(root, { hostname: NODE, address: '10.99.0.11', resolved: false });
    await new Promise((resolve) => socket.close(resolve));
    put(
      'etc/systemd/system/kubelet.service.d/10-kubeadm.conf',
      '[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS\n',
    );
    put(POINTER_DROP_IN, renderPointerDropIn(await loadTemplates(), AGENT_DIRECTORY));
    put('var/lib/kubelet/config.yaml', 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\n');
    put('etc/kubernetes/bootstrap-kubelet.conf', 'nothing that can be used\n');
    put('etc/kubernetes/kubelet.conf', KUBECONFIG);
    put('var/lib/kubelet/pki/kubelet.crt', CERTIFICATE);
    put(OTHER_CA, CERTIFICATE);
  } else cpSync(from, root, { recursive: true });
  const clock = fakeClock();
  const ref = { apiVersion: 'v1', kind: 'Node', name: NODE };
  let beatenAt = 0;
  const beat = async (): Promise<void> => {
    beatenAt = clock.elapsedMs;
    const lastHeartbeatTime = clock.now().toISOString().replace(/\.\d+/, '');
    const status = { nodeInfo: { kubeletVersion: 'v1.36.2' }, conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] };
    await cluster.patch(ref, 'strategic', { status }, { subresource: 'status' });
  };
  const standIn = new StandInHost({
    rootDir: root,
    hostname: NODE,
    address: '10.99.0.11',
    network: labNetwork(6443),
    kubeletVersion: 'v1.36.2',
    resolved: false,
    now: () => clock.now(),
    catalogue,
  });
  cluster.proxyNode(NODE, (path) =>
    standIn.configz === null || path !== '/configz' ? 'down' : { status: 200, body: { kubeletconfig: standIn.configz } },
  );
  const pods = fakePods({ cluster, nodeName: NODE, files: podFiles(root), now: () => clock.now() });
  const answer = (line: string) => {
    const { starts } = standIn;
    const found = standIn.answer(line);
    if (hasPods && standIn.configz === null) pods.stop();
    else if (hasPods && standIn.configz !== null && standIn.starts !== starts) pods.start(standIn.configz);
    const isDue = line.startsWith('systemctl restart') || clock.elapsedMs - beatenAt >= HEARTBEAT_MS;
    if (isDue && standIn.configz !== null) void beat();
    return found;
  };
  answer('systemctl restart kubelet');
  await beat();
  const answerConfigz = (): FakeReply => {
    const { configz } = standIn;
    if (configz === null) return { issue: { kind: 'refused' } };
    const isLockedOut = JSON.stringify(configz.authentication ?? {}).includes(OTHER_CA);
    return isLockedOut ? { status: 401, text: 'Unauthorized' } : { text: JSON.stringify({ kubeletconfig: configz }) };
  };
  let running: { readonly stop: AbortController; readonly done: Promise<void>; isDead: boolean } | null = null;
  let wake: () => void = () => undefined;

  const run = (argv: readonly string[], stdin: string): Promise<RunResult> => {
    const PATH = `${join(tools, 'fault')}:${join(tools, 'bin')}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
    const env = { PATH, HOME: root, KUBELETADM_ROOT: root, FAULT: fault };
    const child = spawn(argv[0] as string, argv.slice(1), { env, detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'] });
    serve(child, answer);
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(stdin);
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (exitCode, signal) => {
        pods.filesChanged();
        resolve({ exitCode, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) });
      });
    });
  };
  const agent: AgentHost = {
    root,
    standIn,
    state: null,
    calls: () => (existsSync(join(fault, 'calls')) ? readFileSync(join(fault, 'calls'), 'utf8').trimEnd().split('\n') : []),
    start: (killBefore = 0) => {
      for (const [name, text] of Object.entries({ count: '0\n', at: `${killBefore}\n`, calls: '' })) writeFileSync(join(fault, name), text);
      const stop = new AbortController();
      const mine = { stop, done: Promise.resolve(), isDead: false };
      // A killed agent receives no further answers.
      const never = new Promise<RunResult>((_, reject) =>
        stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true }),
      );
      never.catch(() => undefined);
      const transport: Transport = {
        name: NODE,
        close: async () => undefined,
        run: async (argv, options = {}) => {
          if (mine.isDead) return never;
          const result = await run(argv, options.stdin ?? '');
          if (result.signal === 'SIGKILL') {
            mine.isDead = true;
            stop.abort(new Error('killed'));
            wake();
          }
          return mine.isDead ? never : result;
        },
      };
      let nonce = 0;
      const host = hostOverTransport(transport, { nonce: () => `nonce${nonce++}x${'0'.repeat(12)}` });
      agent.state = null;
      mine.done = runAgent({
        nodeName: NODE,
        cluster,
        host,
        web: fakeWeb({ servers: { 'https://127.0.0.1:10250': { certificate: CERTIFICATE, reply: answerConfigz } } }),
        kubeconfig: '/etc/kubernetes/kubelet.conf',
        clock,
        reporter: { verbosity: 0, report: () => undefined },
        random: () => 0.5,
        catalogue,
        directory: AGENT_DIRECTORY,
        localConfig: '/var/lib/kubelet/config.yaml',
        namespace: 'kubeletadm-system',
        allow: 'unsafe',
        signersFile: null,
        timing: { ...DEFAULT_TIMING, trialMs: 1_500 },
        spareCheckpoints: 0,
        spreadMs: 0,
        signal: stop.signal,
        onState: (state) => {
          if (mine.isDead) return;
          agent.state = state;
          wake();
        },
      });
      mine.done.catch(() => undefined);
      running = mine;
    },
    until: async (isTrue) => {
      for (;;) {
        if (running?.isDead === true) return false;
        if (agent.state?.switching === null && isTrue()) return true;
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve, reject) => {
          wake = resolve;
          timer = setTimeout(() => reject(new Error(`timeout waiting for the condition: ${JSON.stringify(agent.state)}`)), 20_000);
        }).finally(() => clearTimeout(timer));
      }
    },
    stop: async () => {
      running?.stop.abort(new Error('stopped'));
      await running?.done.catch(() => undefined);
      running = null;
    },
    reboot: () => {
      answer('systemctl restart kubelet');
    },
    close: () => {
      pods.stop();
      standIn.close();
    },
  };
  return agent;
}

/** File descriptors 3 and 4, as the lab's SSH server serves them. */
function serve(child: ChildProcess, answer: (line: string) => { readonly exitCode: number; readonly lines: readonly string[] }): void {
  const answers = child.stdio[4] as Writable;
  answers.on('error', () => undefined);
  createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => {
    const { exitCode, lines } = answer(line);
    answers.write(`${[`${exitCode} ${lines.length}`, ...lines].join('\n')}\n`);
  });
}
