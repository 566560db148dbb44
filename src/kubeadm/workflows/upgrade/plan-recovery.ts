import { AppError, isAppError } from '../../../base/errors.ts';
import { quickAtFirst, waitUntil } from '../../../base/wait-until.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { isSinglePhase } from '../../../host/run-settings.ts';
import { type PlannedWorkflow, planWorkflow, type WorkflowRun } from '../../../host/run-workflow.ts';
import { conditionOf } from '../../../kube/node-conditions.ts';
import { manifestPath } from '../../control-plane/paths.ts';
import { observeReplacedData } from '../../phases/upgrade/restore-etcd-data.ts';
import { observeUpgrade } from '../../phases/upgrade/upgrade-progress.ts';
import { unmetStaticPodConditions } from '../../phases/upgrade/wait-static-pod.ts';
import { recordedManifest, UPGRADE_ORDER, type UpgradeRecord } from '../../upgrade/upgrade-record.ts';
import type { ApiAccess } from '../control-plane/api-access.ts';
import { KUBEADM_CONFIG_REF } from '../node/cluster-baseline.ts';
import { componentsToRecover, type RecoverUpgradeOptions, recoverUpgradeWorkflow } from './recover-upgrade.ts';

/**
 * The recovery from an interrupted upgrade that left a component which does not run; null: all components of the
 * interrupted upgrade run, if necessary after they have started and the API server answers, or no upgrade was interrupted.
 * @throws AppError UPGRADE_INTERRUPTED, exit code 3, for a run of a single phase; UPGRADE_NOT_RECOVERED if etcd does not run and
 * no manifest is to blame
 */
export async function planRecovery(
  context: PhaseContext,
  run: WorkflowRun,
  { api, timeoutMs }: { readonly api: ApiAccess; readonly timeoutMs: number },
): Promise<PlannedWorkflow | null> {
  const record = await observeUpgrade(context);
  if (record === null) return null;
  const { reporter, host } = context;
  const replaced = await observeReplacedData(context, record);
  if (replaced !== null) reporter.report({ level: 'warning', code: 'ETCD_DATA_RESTORED', host: host.name, message: replaced });
  const { components, hasEtcdAnswered } = await componentsToRecover(context, record, timeoutMs);
  if (components.length === 0) {
    await waitForInterrupted(context, record, { api, timeoutMs });
    return null;
  }
  const state = `the upgrade to ${record.version} was interrupted, and ${components.join(', ')} ${components.length === 1 ? 'does' : 'do'} not run`;
  if (isSinglePhase(run)) {
    const hint = 'Rerun the command without phase, which restores the previous static Pods';
    throw new AppError({ host: host.name, code: 'UPGRADE_INTERRUPTED', message: state, hint }, { exitCode: 3 });
  }
  const message = `${state}: restoring the previous static Pods`;
  reporter.report({ level: 'warning', code: 'UPGRADE_RECOVERY', host: host.name, message });
  const others: string[] = replaced === null ? [] : [replaced];
  const options: RecoverUpgradeOptions = { record, components, hasEtcdAnswered, api, timeoutMs, onRestored: (text) => others.push(text) };
  const planned = await planWorkflow(recoverUpgradeWorkflow, context, options, { ...run, skipPhases: [] });
  return {
    ...planned,
    apply: async (applied) => {
      const { phases } = await planned.apply(applied);
      const files = phases.some(({ plan }) => plan.changes.length > 0)
        ? 'were restored, and run again'
        : 'were restored by the interrupted run, and run again';
      const back = `the upgrade to ${record.version} was interrupted; the previous static Pods (${components.join(', ')}) ${files}${others.map((text) => `. ${text}`).join('')}`;
      const hint = 'Find out why the new static Pods did not start, then rerun the command';
      throw new AppError({ host: host.name, code: 'ROLLED_BACK', message: back, hint }, { exitCode: 5 });
    },
  };
}

const NAME = 'control-plane/recover';

/**
 * Waits until the kubelet runs the Pods whose manifests an interrupted upgrade wrote last, and the API server answers
 * the administrator. The kubelet may not have seen the manifest yet, and an API server that has just started, or whose
 * etcd is starting, does not answer or rejects all users. The Node is NotReady if its kubelet could not report to the API
 * server for 40 s, and an upgrade would refuse it; the kubelet reports again within seconds. Ends after the time limit
 * without an error: the upgrade then names the component.
 */
async function waitForInterrupted(
  context: PhaseContext,
  record: UpgradeRecord,
  { api, timeoutMs }: { readonly api: ApiAccess; readonly timeoutMs: number },
): Promise<void> {
  const files = await observe(context.host, fileFacts(UPGRADE_ORDER.map(manifestPath)), context.signal);
  const { nodeName, criSocket } = record;
  const written = UPGRADE_ORDER.flatMap((component) => {
    const manifest = files.get(manifestPath(component))?.content ?? null;
    if (manifest === null || recordedManifest(record, component, manifest) !== 'written') return [];
    const hashBefore = record.components.get(component)?.hashBefore ?? null;
    const replacedHashes = hashBefore === null ? [] : [hashBefore];
    return [{ phase: NAME, component, nodeName, manifest, replacedHashes, hash: null, criSocket, timeoutMs, api }];
  });
  await waitUntil<void, readonly string[]>(
    { ...context, phase: NAME },
    {
      probe: async () => {
        const answer = await apiIssue(context, { api, nodeName });
        if (answer === 'refused') return { done: undefined };
        const missing =
          answer === null ? (await Promise.all(written.map((pod) => unmetStaticPodConditions(context, pod)))).flat() : [answer];
        return missing.length === 0 ? { done: undefined } : { pending: missing };
      },
      timeoutMs,
      pauseMs: quickAtFirst({ quickMs: 500, forMs: 30_000, slowMs: 1_000 }),
      describe: (missing, waitedMs) =>
        `waiting for the components of the interrupted upgrade, ${Math.round(waitedMs / 1000)} s: ${missing.join('; ')}`,
      timedOut: () => undefined,
    },
  );
}

/**
 * Why the API server does not answer yet or does not know the state of the Node, as a clause; `refused`: waiting does not
 * help; null: it does.
 */
async function apiIssue(
  context: PhaseContext,
  { api, nodeName }: { readonly api: ApiAccess; readonly nodeName: string },
): Promise<string | null> {
  try {
    const cluster = await api.reach(context);
    if (cluster === null) return 'the API server does not answer';
    await cluster.get(KUBEADM_CONFIG_REF);
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
    const isUnknown = node !== null && conditionOf(node, 'Ready')?.status === 'Unknown';
    return isUnknown ? `the kubelet of Node ${nodeName} has not reported its state` : null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (!STARTING.some((code) => isAppError(error, code))) return 'refused';
    return error.problems[0]?.message ?? 'the API server does not answer';
  }
}

/** What an API server answers while it or its etcd starts. */
const STARTING = ['CLUSTER_UNREACHABLE', 'CLUSTER_FORBIDDEN', 'CLUSTER_ERROR'];
