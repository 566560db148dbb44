import { runAgent } from '../agent/run-agent.ts';
import { composeTokenKubeconfig, readOperatorKubeconfig } from '../core/config/operator-kubeconfig.ts';
import { agentAccount, agentAccountName } from '../core/dynamic/agent/account.ts';
import { POINTER_DROP_IN, renderPointerDropIn } from '../core/dynamic/agent/agent-units.ts';
import { DEFAULT_TIMING } from '../core/dynamic/agent/health.ts';
import { AGENT_DIRECTORY } from '../core/dynamic/agent/layout.ts';
import { loadCatalogue } from '../core/kubelet/catalogue.ts';
import type { Lab, Services } from '../ports/services.ts';
import { readNodes } from '../workflows/dynamic/read-nodes.ts';

export interface LabAgents {
  /** Waits until every Node says what its agent makes of it. */
  untilTold(): Promise<void>;
  close(): Promise<void>;
}

const NAMESPACE = 'kube-system';
const TOKEN_SECONDS = 24 * 3600;

/**
 * Runs the agent for hosts of a lab, each with an account of its own and on its host over SSH: a host of the lab has no processes of its own to be one.
 * @param trialMs how long a configuration has to be healthy there
 */
export async function startLabAgents(services: Services, lab: Lab, names: readonly string[], trialMs: number): Promise<LabAgents> {
  const admin = await services.connectCluster({ kubeconfig: await readOperatorKubeconfig(services.input, [lab.kubeconfig]) });
  const caPem = await services.input.readText(lab.caFile);
  const catalogue = await loadCatalogue();
  const stop = new AbortController();
  const running: Promise<unknown>[] = [];
  for (const nodeName of names) {
    for (const object of agentAccount({ nodeName, namespace: NAMESPACE, isProxied: true })) await admin.create(object);
    const name = agentAccountName(nodeName);
    const { token } = await admin.requestToken({ namespace: NAMESPACE, name }, TOKEN_SECONDS);
    const options = { server: lab.server, caPem, clusterName: 'lab', user: name, token };
    const cluster = await services.connectCluster({ kubeconfig: composeTokenKubeconfig(options, `${nodeName}-agent.conf`) });
    const host = await services.connectHost({ address: nodeName, ssh: { configFile: lab.sshConfig } });
    await host.perform([
      { kind: 'make-directory', path: POINTER_DROP_IN.replace(/\/[^/]*$/, ''), mode: 0o755, owner: 'root:root' },
      { kind: 'write-file', path: POINTER_DROP_IN, mode: 0o644, owner: 'root:root', content: renderPointerDropIn(AGENT_DIRECTORY) },
    ]);
    const agent = runAgent({
      nodeName,
      cluster,
      host,
      web: services.web,
      // Its token is in no file of the host, and its kubelet a stand-in: the API server is asked.
      tokenFile: null,
      clock: services.clock,
      reporter: { verbosity: 0, report: () => undefined },
      random: () => services.random(),
      catalogue,
      directory: AGENT_DIRECTORY,
      localConfig: '/var/lib/kubelet/config.yaml',
      namespace: NAMESPACE,
      allow: 'unsafe',
      timing: { ...DEFAULT_TIMING, trialMs },
      spareCheckpoints: 5,
      spreadMs: 1_000,
      signal: stop.signal,
    }).catch((error: unknown) => {
      if (!stop.signal.aborted) services.output.stderr(`the agent of ${nodeName} ended: ${String(error)}\n`);
    });
    running.push(agent.then(() => Promise.all([host.close(), cluster.close()])));
  }
  return {
    untilTold: async () => {
      while ((await readNodes(admin, names)).some(({ status }) => status === null)) await services.clock.sleep(100, services.signal);
    },
    close: async () => {
      stop.abort(new Error('the lab ends'));
      await Promise.all(running);
      await admin.close();
    },
  };
}
