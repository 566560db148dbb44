import { kubeletCluster } from '../agent/kubelet-cluster.ts';
import { runAgent } from '../agent/run-agent.ts';
import { readOperatorKubeconfig } from '../core/config/operator-kubeconfig.ts';
import { AGENT_NAMESPACE, NAMESPACE_ANNOTATION } from '../core/dynamic/agent/agent-namespace.ts';
import { agentRights } from '../core/dynamic/agent/agent-rights.ts';
import { POINTER_DROP_IN, renderPointerDropIn } from '../core/dynamic/agent/agent-units.ts';
import { DEFAULT_TIMING } from '../core/dynamic/agent/health.ts';
import { AGENT_DIRECTORY } from '../core/dynamic/agent/layout.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { clientIdentity, KUBELET_CONF } from '../core/facts/kubelet-identity.ts';
import { type Catalogue, loadCatalogue } from '../core/kubelet/catalogue.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { observe } from '../engine/observe.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { Lab, Services } from '../ports/services.ts';
import { readNodes } from '../workflows/dynamic/read-nodes.ts';
import { nodeCluster } from './node-cluster.ts';

export interface LabAgents {
  /** Waits until every Node says what its agent makes of it. */
  untilTold(): Promise<void>;
  close(): Promise<void>;
}

const POLL_MS = 100;

/**
 * Runs the agent for hosts of a lab, each on its host over SSH and with the credential of its kubelet: a host of the lab has no processes of its own to be one. Each
 * begins when the host has joined.
 * @param trialMs how long a configuration has to be healthy there
 */
export async function startLabAgents(services: Services, lab: Lab, names: readonly string[], trialMs: number): Promise<LabAgents> {
  const admin = await services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [lab.kubeconfig]) });
  const catalogue = await loadCatalogue();
  const stop = new AbortController();
  const { signal } = stop;
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: AGENT_NAMESPACE } });
  const running = names.map(async (nodeName) => {
    const host = await services.connectHost({ address: nodeName, ssh: { configFile: lab.sshConfig } });
    try {
      await host.perform([
        { kind: 'make-directory', path: POINTER_DROP_IN.replace(/\/[^/]*$/, ''), mode: 0o755, owner: 'root:root' },
        { kind: 'write-file', path: POINTER_DROP_IN, mode: 0o644, owner: 'root:root', content: renderPointerDropIn(AGENT_DIRECTORY) },
      ]);
      await enable(admin, await untilJoined(services, { admin, host, nodeName, signal }));
      await runOne(services, { host, nodeName, trialMs, catalogue, signal });
    } catch (error) {
      if (!signal.aborted) services.output.stderr(`the agent of ${nodeName} ended: ${String(error)}\n`);
    } finally {
      await host.close();
    }
  });
  return {
    untilTold: async () => {
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
  readonly admin: Cluster;
  readonly host: Host;
  readonly nodeName: string;
  readonly signal: AbortSignal;
}

async function untilJoined({ clock }: Services, { admin, host, nodeName, signal }: Joining): Promise<KubeObject> {
  for (;;) {
    const node = await admin.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
    if (node !== null && (await observe(host, clientIdentity, signal)).state === 'usable') return node;
    await clock.sleep(POLL_MS, signal);
  }
}

/** What `dynamic enable` does in the cluster. */
async function enable(admin: Cluster, { metadata: { name, uid } }: KubeObject): Promise<void> {
  for (const object of agentRights({ nodeName: name, nodeUid: uid ?? null, namespace: AGENT_NAMESPACE })) await admin.create(object);
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

async function runOne(services: Services, { host, nodeName, trialMs, catalogue, signal }: LabAgent): Promise<void> {
  const cluster = kubeletCluster({
    read: async () => ({
      text: (await observe(host, fileFacts([KUBELET_CONF]), signal)).get(KUBELET_CONF)?.content ?? '',
      connect: () => nodeCluster(services, host),
    }),
    clock: services.clock,
    onTrouble: () => undefined,
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
      localConfig: '/var/lib/kubelet/config.yaml',
      namespace: AGENT_NAMESPACE,
      allow: 'unsafe',
      timing: { ...DEFAULT_TIMING, trialMs },
      spareCheckpoints: 5,
      spreadMs: 1_000,
      signal,
    });
  } finally {
    await cluster.close();
  }
}
