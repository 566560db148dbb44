import { planAgentRepair, reportAgent } from '../../core/dynamic/agent/agent-report.ts';
import { describeIdentity, sameSource } from '../../core/dynamic/config-source.ts';
import { planStoreRepair, reportStore, type StoreReport, storeWayBack } from '../../core/dynamic/native-report.ts';
import { nativeCheckpointDirectory } from '../../core/dynamic/native-store.ts';
import { AppError, type Problem } from '../../core/errors.ts';
import type { Catalogue } from '../../core/kubelet/catalogue.ts';
import type { PhasePlan, Warning } from '../../core/plan/change.ts';
import { waitForHealthyKubelet } from '../../engine/kubelet-health.ts';
import { definePhase, type PhaseContext } from '../../engine/phase.ts';
import type { Prepared, Workflow } from '../../engine/run-workflow.ts';
import { selectPhase } from '../select-phase.ts';
import { hasAgent, healthzOf, type ReadAgent, readAgent } from './read-agent.ts';
import { readNodes } from './read-nodes.ts';
import { type ReadStore, readStore } from './read-store.ts';

export interface RepairOptions {
  readonly catalogue: Catalogue;
  /** Of a kubelet up to 1.23; null: an agent, or what the kubelet is started with. */
  readonly directory: string | null;
}

interface RepairInput {
  readonly store: RepairOptions | null;
  readonly agent: RepairOptions | null;
}

const NAME = 'dynamic-repair';
const HEALTHY_MS = 60_000;
const SETTLE_MS = 15_000;
/** An agent reads its state when it is started. */
const AGENT_SETTLE_MS = 8_000;

type FoundStore = ReadStore & { readonly report: StoreReport; readonly healthzUrl: string | null };

/** Gets back a kubelet up to 1.23 that does not stay up with what it was assigned. */
const repairStore = definePhase<RepairOptions | null, FoundStore | null>({
  name: NAME,
  short: 'Start the kubelet with its last known good, or with its own configuration',
  observe: async ({ host, signal }, input) => {
    if (input === null) return null;
    const found = await readStore(host, { ...input, ...(signal === undefined ? {} : { signal }) });
    const report = reportStore(found.reading);
    const good = storeWayBack(found.reading, report);
    const path = good === null ? found.configFile : `${nativeCheckpointDirectory(found.reading.directory, good)}/${good.kubeletConfigKey}`;
    return { ...found, report, healthzUrl: await healthzOf(host, path, signal) };
  },
  plan: (found) => (found === null ? { changes: [] } : planned(planStoreRepair(found.reading, found.report))),
  verify: async (context, input, found, applied) => {
    if (input === null || found === null || applied.length === 0) return;
    await waitForHealthyKubelet(context, NAME, { url: found.healthzUrl, timeoutMs: HEALTHY_MS });
    // By then it has read its assignment, and come back from that if it took it.
    await context.clock.sleep(SETTLE_MS, context.signal);
    const { reading } = await readStore(context.host, { ...input, directory: found.reading.directory, journalSeconds: SETTLE_MS / 1000 });
    refuseBroken(context, reportStore(reading).findings);
    tellDone(context);
  },
});

/** Gets a kubelet back whose agent is down or can't help it, and the agent with it. */
const repairAgent = definePhase<RepairOptions | null, ReadAgent | null>({
  name: NAME,
  short: 'Start the kubelet with its own configuration where it is not well, and the agent',
  observe: async ({ host, signal }, input) => (input === null ? null : readAgent(host, input.catalogue, signal)),
  plan: (found) => (found === null ? { changes: [] } : planned(planAgentRepair(found.reading))),
  verify: async (context, input, _found, applied) => {
    if (input === null || applied.length === 0) return;
    const { healthzUrl } = await readAgent(context.host, input.catalogue, context.signal);
    await waitForHealthyKubelet(context, NAME, { url: healthzUrl, timeoutMs: HEALTHY_MS });
    await context.clock.sleep(AGENT_SETTLE_MS, context.signal);
    const { reading } = await readAgent(context.host, input.catalogue, context.signal);
    refuseBroken(context, reportAgent(reading));
    tellDone(context);
  },
});

/** `dynamic inspect --repair`: by the lock of the host, as everything that changes it. */
export const repairWorkflow: Workflow<RepairOptions, RepairInput> = {
  name: 'dynamic inspect --repair',
  phases: [selectPhase(repairStore, (input) => input.store), selectPhase(repairAgent, (input) => input.agent)],
  prepare: async (context, options) => {
    const byAgent = options.directory === null && (await hasAgent(context.host, context.signal));
    if (byAgent) return { input: { store: null, agent: options }, warnings: [], refusals: [] };
    return prepareStore(context, options);
  },
};

/** A kubelet reads its assignment ten seconds after it is started: it must not be what it died of. */
async function prepareStore(context: PhaseContext, options: RepairOptions): Promise<Prepared<RepairInput>> {
  const { host, cluster, signal } = context;
  const prepared = (warnings: readonly Warning[], refusals: readonly Problem[]): Prepared<RepairInput> => ({
    input: { store: options, agent: null },
    warnings,
    refusals,
  });
  const { reading, nodeName } = await readStore(host, { ...options, ...(signal === undefined ? {} : { signal }) });
  const report = reportStore(reading);
  const { assigned } = report;
  if (assigned.kind !== 'source' || report.starts !== 'assigned' || planStoreRepair(reading, report).length === 0) return prepared([], []);
  if (cluster === null || nodeName === null) {
    const message = `make sure that the Node is not assigned ${describeIdentity(assigned.identity)} any more, or the kubelet takes it again in ten seconds (--kubeconfig looks)`;
    return prepared([{ code: 'DYNAMIC_STILL_ASSIGNED', message }], []);
  }
  const [node] = await readNodes(cluster, [nodeName], 'native');
  if (node === undefined || !sameSource(node.source.source, assigned.identity)) return prepared([], []);
  const message = `Node ${nodeName} is still assigned ${describeIdentity(assigned.identity)}: the kubelet would take it again in ten seconds`;
  const mend = `Run dynamic reset ${nodeName} --wait none, or assign another, first`;
  return prepared([], [{ host: host.name, code: 'DYNAMIC_STILL_ASSIGNED', message, mend }]);
}

function planned(changes: PhasePlan['changes']): PhasePlan {
  return changes.length === 0 ? { changes, noop: 'nothing is broken there' } : { changes };
}

function refuseBroken({ host }: PhaseContext, findings: readonly Problem[]): void {
  const broken = findings.filter(({ severity }) => severity !== 'warning');
  if (broken.length > 0) throw new AppError(broken.map((finding) => ({ host: host.name, ...finding })));
}

function tellDone({ host, reporter }: PhaseContext): void {
  const message = 'the kubelet is back; dynamic status shows what it makes of its assignment';
  reporter.report({ level: 'info', code: 'DYNAMIC_REPAIRED', host: host.name, phase: NAME, message });
}
