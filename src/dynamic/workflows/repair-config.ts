import { AppError, formatProblem, type Problem } from '../../base/errors.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { PhasePlan, Warning } from '../../host/plan/change.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { healthzOf } from '../../kubelet/effective/healthz-url.ts';
import type { KubeletFailure } from '../../kubelet/facts/kubelet-failure.ts';
import { waitForHealthyKubelet } from '../../kubelet/health/wait-healthy.ts';
import { type ConfigIdentity, describeIdentity, sameIdentity, sameSource } from '../../kubelet/layers/config-source.ts';
import { planAgentRepair, reportAgent } from '../agent/agent-report.ts';
import { damagedCheckpoints, planStoreRepair, reportStore, type StoreReport, storeRollback } from '../native/native-report.ts';
import { nativeCheckpointDirectory } from '../native/native-store.ts';
import { hasAgent, type ReadAgent, readAgent } from './read-agent.ts';
import { readNodes } from './read-nodes.ts';
import { type ReadStore, readStore } from './read-store.ts';

interface RepairOptions {
  readonly catalogue: Catalogue;
  /** Directory of a kubelet up to 1.23; null: an agent, or the flag of the kubelet. */
  readonly directory: string | null;
}

/** The options of one of the two; the other is null. */
type RepairInput = Readonly<Record<'store' | 'agent', RepairOptions | null>>;

const STORE_NAME = 'dynamic-repair';
const AGENT_NAME = 'agent-repair';
const HEALTHY_MS = 60_000;
/** A kubelet reads its assignment 10 to 12 s after its start and restarts if the assignment differs. */
const SYNC_MS = 15_000;
/** A kubelet that cannot run with its configuration has failed by then. */
const RESTART_MS = 15_000;
/** Time for an agent to read its state after its start. */
const AGENT_SETTLE_MS = 8_000;

/** Repairs a kubelet up to 1.23 that crashes with its assigned configuration. */
const repairStore = definePhase<
  RepairOptions | null,
  (ReadStore & { readonly report: StoreReport; readonly healthzUrl: string | null }) | null
>({
  name: STORE_NAME,
  short: 'Start the kubelet with its last known good configuration, or with its local configuration',
  observe: async ({ host, cluster, signal }, input) => {
    if (input === null) return null;
    const found = await readStore(host, { ...input, cluster, signal });
    const report = reportStore(found.reading);
    const good = storeRollback(found.reading, report);
    const path = good === null ? found.configFile : `${nativeCheckpointDirectory(found.reading.directory, good)}/${good.kubeletConfigKey}`;
    return { ...found, report, healthzUrl: await healthzOf(host, path, signal) };
  },
  plan: (found) => (found === null ? { changes: [] } : planned(planStoreRepair(found.reading, found.report), found.report.findings)),
  verify: async (context, input, found, applied) => {
    if (input === null || found === null || applied.length === 0) return;
    await waitForHealthyKubelet(context, STORE_NAME, { url: found.healthzUrl, timeoutMs: HEALTHY_MS });
    const before = found.report;
    const maintain = async (ms: number, journalMs: number): Promise<StoreReport> => {
      await context.clock.sleep(ms, context.signal);
      const directory = found.reading.directory;
      const { reading } = await readStore(context.host, {
        ...input,
        directory,
        cluster: context.cluster,
        journalSeconds: journalMs / 1000,
      });
      const after = reportStore(reading);
      const isDownloaded = damagedCheckpoints(found.reading, before).includes('assigned');
      if (
        !isDownloaded &&
        before.isLooping &&
        before.starts === 'assigned' &&
        before.assigned.kind === 'source' &&
        isOf(after, before.assigned.identity)
      )
        throw new AppError(stillAssignedProblem(context.host.name, before.assigned.identity, found.nodeName));
      if (reading.recentFailures > 0) throw new AppError(crashLoopProblem(context.host.name, reading.failure));
      return after;
    };
    let after = await maintain(SYNC_MS, SYNC_MS);
    const reported = storeRollback(found.reading, before);
    const tookAnother = reported === null ? after.assigned.kind !== 'local' : !isOf(after, reported);
    if (tookAnother) after = await maintain(RESTART_MS, SYNC_MS + RESTART_MS);
    refuseBroken(context, after.findings);
    reportDone(context, STORE_NAME);
  },
});

/** Repairs an unhealthy kubelet whose agent is down or cannot repair it, and starts the agent. */
const repairAgent = definePhase<RepairOptions | null, ReadAgent | null>({
  name: AGENT_NAME,
  short: 'Start an unhealthy kubelet with its local configuration, and start the agent',
  observe: async ({ host, signal }, input) => (input === null ? null : readAgent(host, input.catalogue, signal)),
  plan: (found) => (found === null ? { changes: [] } : planned(planAgentRepair(found.reading))),
  verify: async (context, input, _found, applied) => {
    if (input === null || applied.length === 0) return;
    const { healthzUrl } = await readAgent(context.host, input.catalogue, context.signal);
    await waitForHealthyKubelet(context, AGENT_NAME, { url: healthzUrl, timeoutMs: HEALTHY_MS });
    await context.clock.sleep(AGENT_SETTLE_MS, context.signal);
    const { reading } = await readAgent(context.host, input.catalogue, context.signal);
    refuseBroken(context, reportAgent(reading));
    reportDone(context, AGENT_NAME);
  },
});

/** `dynamic inspect --repair`, under the host lock like every workflow with changes. */
export const repairWorkflow: Workflow<RepairOptions, RepairInput> = {
  name: 'dynamic inspect --repair',
  phases: [repairStore.select((input) => input.store), repairAgent.select((input) => input.agent)],
  prepare: async (context, options) => {
    const byAgent = options.directory === null && (await hasAgent(context.host, context.signal));
    if (byAgent) return { input: { store: null, agent: options }, warnings: [], refusals: [] };
    return prepareStore(context, options);
  },
};

/**
 * Refuses while the crashing configuration is still assigned: the kubelet reads its assignment ten seconds
 * after its start.
 */
async function prepareStore(context: PhaseContext, options: RepairOptions): Promise<Prepared<RepairInput>> {
  const { host, cluster, signal } = context;
  const prepared = (warnings: readonly Warning[], refusals: readonly Problem[]): Prepared<RepairInput> => ({
    input: { store: options, agent: null },
    warnings,
    refusals,
  });
  const { reading, nodeName } = await readStore(host, { ...options, cluster, signal });
  const report = reportStore(reading);
  const { assigned } = report;
  // A damaged checkpoint must be downloaded again.
  const isDownloaded = damagedCheckpoints(reading, report).includes('assigned');
  if (assigned.kind !== 'source' || report.starts !== 'assigned' || isDownloaded || !report.isLooping) return prepared([], []);
  if (cluster === null || nodeName === null) {
    const message = `if ${describeIdentity(assigned.identity)} is still assigned to the Node, the kubelet uses this ConfigMap again after ten seconds. Remove the assignment first (kubeletadm dynamic reset NODE), or pass --kubeconfig to check the assignment`;
    return prepared([{ code: 'DYNAMIC_STILL_ASSIGNED', message }], []);
  }
  const [node] = await readNodes(cluster, [nodeName], { backend: 'native' });
  if (node === undefined || !sameSource(node.source.source, assigned.identity)) return prepared([], []);
  const message = `Node ${nodeName} is still assigned ${describeIdentity(assigned.identity)}: the kubelet would use this ConfigMap again after ten seconds`;
  return prepared([], [{ host: host.name, code: 'DYNAMIC_STILL_ASSIGNED', message, hint: resetFirst(nodeName) }]);
}

function stillAssignedProblem(host: string, identity: ConfigIdentity, nodeName: string | null): Problem {
  const message = `the kubelet started, but uses ${describeIdentity(identity)} again: this ConfigMap is still assigned to the Node`;
  return { host, code: 'DYNAMIC_STILL_ASSIGNED', message, hint: resetFirst(nodeName ?? 'NODE') };
}

function crashLoopProblem(host: string, failure: KubeletFailure | null): Problem {
  const message = `the kubelet started, but failed again${failure === null ? '' : `: ${failure.cause}`}`;
  return { host, code: 'DYNAMIC_CRASH_LOOP', message, hint: failure?.hint ?? 'See journalctl -u kubelet on the host' };
}

function resetFirst(nodeName: string): string {
  return `Run kubeletadm dynamic reset ${nodeName} --wait none, or assign another ConfigMap. Then rerun this command`;
}

function isOf({ assigned }: StoreReport, identity: ConfigIdentity): boolean {
  return assigned.kind === 'source' && sameIdentity(assigned.identity, identity);
}

function planned(changes: PhasePlan['changes'], findings: readonly Problem[] = []): PhasePlan {
  if (changes.length > 0) return { changes };
  const broken = findings.filter(({ severity }) => severity !== 'warning').map(formatProblem);
  return { changes, noop: broken.length === 0 ? 'no repair needed' : `not repaired: ${broken.join('; ')}` };
}

function refuseBroken({ host }: PhaseContext, findings: readonly Problem[]): void {
  const broken = findings.filter(({ severity }) => severity !== 'warning');
  if (broken.length > 0) throw new AppError(broken.map((finding) => ({ host: host.name, ...finding })));
}

function reportDone({ host, reporter }: PhaseContext, phase: string): void {
  const message = 'the kubelet is healthy again. To see its assignment, run kubeletadm dynamic status';
  reporter.report({ level: 'info', code: 'DYNAMIC_REPAIRED', host: host.name, phase, message });
}
