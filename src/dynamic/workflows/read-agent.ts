import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { unitState } from '../../host/facts/unit.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { healthzOf } from '../../kubelet/effective/healthz-url.ts';
import { observeKubeletFlags } from '../../kubelet/effective/observe-kubelet.ts';
import { clientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { kubeletHealth } from '../../kubelet/health/observe.ts';
import { describeIdentity } from '../../kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { AGENT_SERVICE, AGENT_UNIT, POINTER_DROP_IN } from '../../kubelet/node-agent/agent-units.ts';
import { hashInPath, pointerFile } from '../../kubelet/node-agent/layout.ts';
import type { AgentReading } from '../agent/agent-report.ts';
import { checkpointStore } from '../agent/checkpoint-store.ts';

export type ReadAgent = Awaited<ReturnType<typeof readAgent>>;

export async function hasAgent(host: Host, signal?: AbortSignal): Promise<boolean> {
  const facts = combineFacts({
    files: fileFacts([AGENT_UNIT]),
    names: defineFact({ names: { kind: 'list', path: AGENT_DIRECTORY } }, ({ names }) => names),
  });
  const { files, names } = await observe(host, facts, signal);
  return names !== null || files.get(AGENT_UNIT) != null;
}

/**
 * Reads the files of an agent and the running processes on its host. Nothing is changed.
 * @throws AppError KUBELET_MISSING, KUBELET_UNSUPPORTED
 */
export async function readAgent(host: Host, catalogue: Catalogue, signal?: AbortSignal) {
  const stored = await checkpointStore(host, AGENT_DIRECTORY).load(signal);
  // The kubelet's configuration file may be missing: that is one of the findings.
  const observed = await observeKubeletFlags(host, catalogue, signal);
  const flag = (name: string): string | undefined => observed.flags.findLast((one) => one.name === name)?.value;
  const url = await healthzOf(host, flag('config') ?? null, signal);
  const paths = [pointerFile(AGENT_DIRECTORY), POINTER_DROP_IN];
  const facts = combineFacts({
    files: fileFacts(paths),
    agent: unitState(AGENT_SERVICE),
    identity: clientIdentity,
    health: kubeletHealth(url),
    now: defineFact({ date: { kind: 'command', argv: ['date', '+%s'] } }, ({ date }) => Number(date.stdout.trim())),
  });
  const { files, agent, identity, health, now } = await observe(host, facts, signal);
  const argv = observed.kubelet?.argv ?? null;
  const reading: AgentReading = {
    directory: AGENT_DIRECTORY,
    now,
    ...stored,
    checkpoints: stored.checkpoints.map(({ hash, manifest, files: payload, writtenAt }) => ({
      hash,
      source: manifest === null ? null : describeIdentity(manifest.identity),
      files: manifest?.files ?? [],
      keys: manifest?.keys ?? [],
      isWhole: payload !== null,
      writtenAt,
    })),
    hasPointerFile: files.get(pointerFile(AGENT_DIRECTORY)) != null,
    hasDropIn: files.get(POINTER_DROP_IN) != null,
    agent,
    kubelet: health.unit,
    healthz: health.healthz,
    runs: argv === null ? null : (hashInPath(argv.join('\n')) ?? 'local'),
    identity: (flag('kubeconfig') ?? KUBELET_CONF) === KUBELET_CONF ? identity : null,
  };
  return {
    kubeletVersion: observed.version,
    nodeName: flag('hostname-override') ?? observed.hostname,
    /** Healthz URL of the running kubelet, or of the next one. */
    healthzUrl: url,
    reading,
  };
}
