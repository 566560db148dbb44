import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RunTime } from '../src/base/clock.ts';
import type { LocalFiles } from '../src/base/local-files.ts';
import { parseGoDuration } from '../src/base/text/go-duration.ts';
import { kubeletCluster } from '../src/dynamic/agent/cluster-access.ts';
import { runAgent } from '../src/dynamic/agent/run-agent.ts';
import { readNodes } from '../src/dynamic/workflows/read-nodes.ts';
import type { HostConnections } from '../src/fleet/ports.ts';
import type { Host } from '../src/host/access/host.ts';
import { observe } from '../src/host/access/observe.ts';
import { fileFacts } from '../src/host/facts/file-facts.ts';
import { AGENT_NAMESPACE, NAMESPACE_ANNOTATION } from '../src/kube/agent-namespace.ts';
import type { Cluster } from '../src/kube/cluster.ts';
import type { KubeObject } from '../src/kube/object.ts';
import { readOperatorKubeconfig } from '../src/kube/operator-kubeconfig.ts';
import { KUBELET_CONF, KUBELET_CONFIG_FILE } from '../src/kube/well-known.ts';
import { agentRights } from '../src/kubeadm/node-agent/agent-rights.ts';
import type { ClusterConnections, TemplateSource } from '../src/kubeadm/ports.ts';
import { nodeCluster } from '../src/kubeadm/use-cases/node-cluster.ts';
import type { Catalogue, LiveChange } from '../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../src/kubelet/catalogue/load-catalogue.ts';
import { clientIdentity } from '../src/kubelet/facts/kubelet-identity.ts';
import { DEFAULT_TIMING } from '../src/kubelet/health/assess.ts';
import { AGENT_DIRECTORY } from '../src/kubelet/node-agent/agent-program.ts';
import { AGENT_SERVICE, AGENT_UNIT, POINTER_DROP_IN, renderAgentUnit, renderPointerDropIn } from '../src/kubelet/node-agent/agent-units.ts';
import type { Lab, LabHost } from './lab-options.ts';

/** Ports of the agents of a lab. */
export interface LabAgentPorts
  extends Pick<LocalFiles, 'input'>,
    Pick<RunTime, 'clock' | 'signal'>,
    Pick<HostConnections, 'connectHost'>,
    Pick<ClusterConnections, 'connectCluster' | 'web'>,
    TemplateSource {
  /** A random number from 0 up to 1, not for secrets. */
  random(): number;
}

/** A lab whose agents run in this process. */
export interface LabOfAgents {
  readonly lab: Lab;
  /** The hosts where an agent is installed after the join. */
  readonly names: readonly string[];
  /** Duration of a trial. */
  readonly trialMs: number;
  /** An agent ended although the lab did not. */
  failed(nodeName: string, error: unknown): void;
}

export interface LabAgents {
  /** Waits until the agent of every Node has reported its status. */
  waitForReports(): Promise<void>;
  close(): Promise<void>;
}

const POLL_MS = 100;

/**
 * Runs the agents of a lab in this process, each on its host over SSH and with the credential of its kubelet,
 * because a lab host has no processes. An agent runs while its unit is started on the host.
 */
export async function startLabAgents(services: LabAgentPorts, { lab, names, trialMs, failed }: LabOfAgents): Promise<LabAgents> {
  const admin = await services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [lab.kubeconfig]) });
  const catalogue = await loadCatalogue();
  const stop = new AbortController();
  const { signal } = stop;
  // Each host of the lab waits with this signal, so the number of listeners is that of the hosts, not a leak.
  setMaxListeners(0, signal);
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: AGENT_NAMESPACE } });
  const running = lab.hosts.map(async (labHost) => {
    const nodeName = labHost.name;
    const host = await services.connectHost({ address: nodeName, ssh: { configFile: lab.sshConfig } });
    try {
      const installing = names.includes(nodeName) ? keepInstalled({ services, admin, host, labHost, signal }) : undefined;
      await Promise.all([installing, superviseAgent(services, labHost, { host, nodeName, trialMs, catalogue, signal })]);
    } catch (error) {
      if (!signal.aborted) failed(nodeName, error);
    } finally {
      await host.close();
    }
  });
  return {
    waitForReports: async () => {
      while ((await readNodes(admin, names)).some(({ status }) => status === null)) await services.clock.sleep(POLL_MS, services.signal);
    },
    close: async () => {
      stop.abort(new Error('the lab ends'));
      await Promise.all(running);
      await admin.close();
    },
  };
}

interface Joining {
  readonly services: LabAgentPorts;
  readonly admin: Cluster;
  readonly host: Host;
  readonly labHost: LabHost;
  readonly signal: AbortSignal;
}

/** Installs the agent after each join of the host. `dynamic disable` removes it until the host is reset and joins again. */
async function keepInstalled(joining: Joining): Promise<void> {
  const { services, labHost, signal } = joining;
  const hasJoined = (): boolean => existsSync(join(labHost.rootDir, KUBELET_CONF));
  for (;;) {
    await install(joining);
    while (hasJoined()) await services.clock.sleep(POLL_MS, signal);
  }
}

/** Writes the files of `dynamic enable` with the default policy, after the host has joined. */
async function install(joining: Joining): Promise<void> {
  const { admin, host, labHost, services } = joining;
  const templates = await services.templates();
  const file = (path: string, content: string) => ({ kind: 'write-file', path, mode: 0o644, owner: 'root:root', content }) as const;
  // Written before the kubelet starts, so that the file is older than the process.
  await host.perform([
    { kind: 'make-directory', path: POINTER_DROP_IN.replace(/\/[^/]*$/, ''), mode: 0o755, owner: 'root:root' },
    file(POINTER_DROP_IN, renderPointerDropIn(templates, AGENT_DIRECTORY)),
  ]);
  await enable(admin, await untilJoined(joining));
  const words = [
    '/usr/local/bin/kubeletadm',
    'agent',
    '--kubeconfig',
    KUBELET_CONF,
    '--node-name',
    labHost.name,
    '--namespace',
    AGENT_NAMESPACE,
  ];
  await host.perform([
    file(
      AGENT_UNIT,
      renderAgentUnit(templates, { command: words, directory: AGENT_DIRECTORY, kubeletDirectory: null, keepsDropInDirectory: false }),
    ),
    { kind: 'run', argv: ['systemctl', 'enable', '--quiet', AGENT_SERVICE] },
    { kind: 'run', argv: ['systemctl', 'restart', AGENT_SERVICE] },
  ]);
}

/** Runs the agent while its unit is started, and another one after each restart of the unit. */
async function superviseAgent(services: LabAgentPorts, { agent }: LabHost, options: LabAgent): Promise<void> {
  const { signal } = options;
  while (!signal.aborted) {
    const started = agent();
    if (started === null) {
      await services.clock.sleep(POLL_MS, signal);
      continue;
    }
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    const run = runOne(services, started.command, { ...options, signal: either });
    const watch = (async () => {
      while (!either.aborted && agent() === started) await services.clock.sleep(POLL_MS, either);
      stop.abort(new Error('the unit of the agent was stopped'));
    })();
    await Promise.allSettled([run, watch]);
  }
}

/** The value of an option of the agent's command line, as `--name value` or `--name=value`. */
function optionOf(command: readonly string[], name: string): string | null {
  const at = command.findLastIndex((word) => word === name || word.startsWith(`${name}=`));
  const word = command[at];
  if (word === undefined) return null;
  return word === name ? (command[at + 1] ?? null) : word.slice(name.length + 1);
}

async function untilJoined({ services: { clock }, admin, host, labHost, signal }: Joining): Promise<KubeObject> {
  for (;;) {
    const node = await admin.get({ apiVersion: 'v1', kind: 'Node', name: labHost.name });
    if (node !== null && (await observe(host, clientIdentity, signal)).state === 'usable') return node;
    await clock.sleep(POLL_MS, signal);
  }
}

/** The part of `dynamic enable` that changes the cluster. */
async function enable(admin: Cluster, { metadata: { name, uid } }: KubeObject): Promise<void> {
  for (const object of agentRights({ nodeName: name, nodeUid: uid ?? null, namespace: AGENT_NAMESPACE })) {
    // Left by an earlier agent of a Node that was kept.
    const { metadata, apiVersion, kind } = object;
    await admin.delete({
      apiVersion,
      kind,
      name: metadata.name,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    });
    await admin.create(object);
  }
  const annotations = { [NAMESPACE_ANNOTATION]: AGENT_NAMESPACE };
  await admin.patch({ apiVersion: 'v1', kind: 'Node', name }, 'merge', { metadata: { annotations } });
}

interface LabAgent {
  readonly host: Host;
  readonly nodeName: string;
  readonly trialMs: number;
  readonly catalogue: Catalogue;
  readonly signal: AbortSignal;
}

async function runOne(
  services: LabAgentPorts,
  command: readonly string[],
  { host, nodeName, trialMs, catalogue, signal }: LabAgent,
): Promise<void> {
  const trial = parseGoDuration(optionOf(command, '--trial') ?? '');
  const cluster = kubeletCluster({
    read: async () => ({
      text: (await observe(host, fileFacts([KUBELET_CONF]), signal)).get(KUBELET_CONF)?.content ?? '',
      connect: () => nodeCluster(services, host),
    }),
    clock: services.clock,
    onIssue: () => undefined,
  });
  try {
    await runAgent({
      nodeName,
      cluster,
      host,
      web: services.web,
      kubeconfig: KUBELET_CONF,
      clock: services.clock,
      reporter: { verbosity: 0, report: () => undefined },
      random: () => services.random(),
      catalogue,
      directory: AGENT_DIRECTORY,
      localConfig: KUBELET_CONFIG_FILE,
      namespace: optionOf(command, '--namespace') ?? AGENT_NAMESPACE,
      signersFile: optionOf(command, '--require-signature'),
      allow: (optionOf(command, '--allow') ?? 'new-pods-only') as LiveChange,
      timing: { ...DEFAULT_TIMING, trialMs: trial === null ? trialMs : Number(trial / 1_000_000n) },
      spareCheckpoints: 5,
      spreadMs: 1_000,
      signal,
    });
  } finally {
    await cluster.close();
  }
}
