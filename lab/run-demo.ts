import type { ExitCode } from '../src/base/errors.ts';
import type { LocalFiles } from '../src/base/local-files.ts';
import { readOperatorKubeconfig } from '../src/kube/operator-kubeconfig.ts';
import { FLAGS_ENV, KUBE_SYSTEM, KUBELET_CONFIG_FILE, KUBELET_CONFIG_NAME } from '../src/kube/well-known.ts';
import { type LabAgentPorts, startLabAgents } from './lab-agents.ts';
import type { Lab, LabHost } from './lab-options.ts';

/** Ports of the demo. */
export interface DemoPorts extends LabAgentPorts, Pick<LocalFiles, 'writeLocalFile'> {
  /** `mode path` of every file below these directories of a root. */
  listFiles(root: string, directories: readonly string[]): Promise<readonly string[]>;
}

/** The steps of the demo, in this order. `join` and the last three are omitted in a lab of one host. */
export type DemoStep = 'adopt' | 'join' | 'files' | 'cluster' | 'second-run' | 'assign' | 'refuse' | 'reset';

/** The files that a host has after the join. */
export interface HostFiles {
  readonly host: string;
  /** `mode path` of each file. */
  readonly files: readonly string[];
  /** The lines of config.yaml that show the cluster's and the host's own settings. */
  readonly configLines: readonly string[];
  readonly flagsEnv: string;
}

/** Progress of the demo. */
export type DemoEvent =
  | { readonly kind: 'step'; readonly step: DemoStep }
  | { readonly kind: 'file-written'; readonly path: string; readonly text: string }
  | ({ readonly kind: 'host-files' } & HostFiles)
  | { readonly kind: 'cluster-config'; readonly lines: number; readonly annotations: Readonly<Record<string, string>> }
  | {
      readonly kind: 'starts';
      readonly starts: readonly { readonly host: string; readonly count: number }[];
      readonly isUnchanged: boolean;
    };

/** Runs the command lines of the demo, and observes it. */
export interface DemoView {
  /** Runs a command line as if the user had typed it; `stdout` is the printed text without styles. */
  run(argv: readonly string[]): Promise<{ readonly exitCode: ExitCode; readonly stdout: string }>;
  report(event: DemoEvent): void;
  /** An agent ended although the demo did not. */
  agentFailed(nodeName: string, error: unknown): void;
}

/** `stopped`: cluster adopt or join failed, so the remaining steps were not run; `unexpected`: a later step had another result. */
export type DemoResult = 'succeeded' | 'unexpected' | 'stopped';

/**
 * Runs the main workflow in a lab: cluster adopt, join on the hosts, the resulting files and objects, a second run without
 * changes, and new configurations for running kubelets.
 */
export async function runDemo(services: DemoPorts, lab: Lab, view: DemoView): Promise<DemoResult> {
  const { run, report } = view;
  const succeeds = async (argv: readonly string[]): Promise<boolean> => (await run(argv)).exitCode === 0;
  const [first = '', ...others] = lab.hosts.map(({ name }) => name);
  const endpoint = lab.server.replace(/^https:\/\//, '');
  const adopt = ['cluster', 'adopt', '--kubeconfig', lab.kubeconfig, '--control-plane-endpoint', endpoint, '--print-join-command'];
  report({ kind: 'step', step: 'adopt' });
  const { exitCode, stdout } = await run(adopt);
  if (exitCode !== 0) return 'stopped';
  // Without --host, join would change the computer on which the lab runs.
  const join = [...joinCommandIn(stdout), '--ssh-config', lab.sshConfig];
  const different = others.flatMap((name) => ['--host', name]);
  const joins = [[...join, '--host', first], ...(different.length === 0 ? [] : [[...join, ...different, '--set', 'maxPods=60']])];
  report({ kind: 'step', step: 'join' });
  for (const each of joins) if (!(await succeeds(each))) return 'stopped';
  report({ kind: 'step', step: 'files' });
  for (const host of lab.hosts) report({ kind: 'host-files', ...(await readHostFiles(services, host)) });
  report({ kind: 'step', step: 'cluster' });
  report({ kind: 'cluster-config', ...(await readClusterConfig(services, lab)) });
  report({ kind: 'step', step: 'second-run' });
  const changesNothing = async (command: readonly string[]): Promise<boolean> => succeeds([...command, '--dry-run', '--exit-code']);
  let isUnchanged = true;
  for (const each of [adopt, ...joins]) isUnchanged = (await changesNothing(each)) && isUnchanged;
  report({ kind: 'starts', starts: lab.hosts.map(({ name, kubeletStarts }) => ({ host: name, count: kubeletStarts() })), isUnchanged });
  const isChanged = others.length === 0 || (await changeWithAgents(services, lab, { names: others, view }));
  return isUnchanged && isChanged ? 'succeeded' : 'unexpected';
}

/** The arguments of the join command that cluster adopt printed. */
function joinCommandIn(printed: string): readonly string[] {
  return /^ *kubeletadm (join .*)$/m.exec(printed)?.[1]?.split(' ').filter(Boolean) ?? ['join'];
}

async function readHostFiles(services: DemoPorts, { name, rootDir }: LabHost): Promise<HostFiles> {
  const files = await services.listFiles(rootDir, ['etc/kubernetes', 'etc/systemd/system', 'var/lib/kubelet']);
  const config = await services.input.readText(`${rootDir}${KUBELET_CONFIG_FILE}`);
  const configLines = config.split('\n').filter((line) => /^(cgroupDriver|clusterDomain|maxPods|resolvConf|rotateCertificates)/.test(line));
  return { host: name, files, configLines, flagsEnv: (await services.input.readText(`${rootDir}${FLAGS_ENV}`)).trim() };
}

async function readClusterConfig(
  services: DemoPorts,
  { kubeconfig }: Lab,
): Promise<{ readonly lines: number; readonly annotations: Readonly<Record<string, string>> }> {
  const cluster = await services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [kubeconfig]) });
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: KUBELET_CONFIG_NAME });
  await cluster.close();
  const text = (found?.data as Readonly<Record<string, string>> | undefined)?.kubelet ?? '';
  return { lines: text.split('\n').length - 1, annotations: found?.metadata.annotations ?? {} };
}

/** Replaces the ten minutes of production, to keep the demo short. */
const TRIAL_MS = 2_000;

interface KubeletsToChange {
  readonly names: readonly string[];
  readonly view: DemoView;
}

/** Installs the agents, and changes the configuration of the running kubelets. */
async function changeWithAgents(services: DemoPorts, lab: Lab, { names, view }: KubeletsToChange): Promise<boolean> {
  const failed = (nodeName: string, error: unknown): void => view.agentFailed(nodeName, error);
  const agents = await startLabAgents(services, { lab, names, trialMs: TRIAL_MS, failed });
  try {
    await agents.waitForReports();
    return await changeKubelets(services, lab, { names, view });
  } finally {
    await agents.close();
  }
}

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

/**
 * Rolls out two configurations to kubelets whose agents run, a valid and a failing one, and removes the assignment.
 * @returns false: a command had another exit code than expected
 */
export async function changeKubelets(
  { writeLocalFile }: Pick<DemoPorts, 'writeLocalFile'>,
  { directory, kubeconfig }: Pick<Lab, 'directory' | 'kubeconfig'>,
  { names, view: { run, report } }: KubeletsToChange,
): Promise<boolean> {
  const write = async (name: string, fields: string): Promise<string> => {
    const [path, text] = [`${directory}/${name}`, OVERLAY + fields];
    await writeLocalFile(path, text);
    report({ kind: 'file-written', path, text });
    return path;
  };
  const endsWith = async (expected: ExitCode, argv: readonly string[]): Promise<boolean> => (await run(argv)).exitCode === expected;
  const cluster = ['--kubeconfig', kubeconfig] as const;
  const assign = ['dynamic', 'assign', ...names, ...cluster, '--min-ready', '0s', '--file'] as const;
  const status = ['dynamic', 'status', ...names, ...cluster] as const;
  report({ kind: 'step', step: 'assign' });
  const isAssigned = await endsWith(0, [...assign, await write('more-pods.yaml', 'maxPods: 120\n'), '--wait', 'good']);
  await run(status);
  report({ kind: 'step', step: 'refuse' });
  const reserved = await write('reserved.yaml', 'systemReserved:\n  memory: 64Gi\n');
  const isRefused = await endsWith(3, [...assign, reserved]);
  const isRolledBack = await endsWith(4, [...assign, reserved, '--allow-pod-loss']);
  await run(status);
  report({ kind: 'step', step: 'reset' });
  const isReset = await endsWith(0, ['dynamic', 'reset', ...names, ...cluster, '--min-ready', '0s', '--max-unavailable', '100%']);
  return isAssigned && isRefused && isRolledBack && isReset;
}
