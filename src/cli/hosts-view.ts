import type { FleetProgress, HostStatus } from '../fleet/run/fleet.ts';
import { estimateRestMs, type HostSteps, medianStepMs, type RunSteps } from '../fleet/run/run-steps.ts';
import type { RunRecord } from '../fleet/run/run-timeline.ts';
import { outcomeText } from '../maintenance/member-outcome.ts';
import { reasonOf } from './fleet-report.ts';
import type { LiveRow, LiveView } from './output/live-view.ts';
import { STATE_STYLES } from './output/state-words.ts';
import { FAILED } from './run-results.ts';

const STATUSES = [
  'changed',
  'pending',
  'unchanged',
  'failed',
  'refused',
  'skipped',
  'rolled-back',
  'unreachable',
  'not-started',
  'interrupted',
] as const satisfies readonly HostStatus[];

/**
 * The live display of a run over hosts.
 * @param now milliseconds since the epoch
 */
export function hostsView(
  title: string,
  { steps, outcomes, ...record }: Pick<RunRecord, 'outcomes' | 'progress'> & { readonly steps: Pick<RunSteps, 'startedAt' | 'hosts'> },
  now: number,
): LiveView {
  const progress = record.progress();
  const hosts = steps.hosts();
  const medians = medianStepMs(hosts);
  const ended = progress?.ended ?? {};
  const total = progress?.total ?? 1;
  const done = Object.values(ended).reduce((sum, count) => sum + count, 0);
  const busy = new Set([...(progress?.looking ?? []), ...(progress?.changing ?? [])]);
  const isCanary = progress?.isCanary === true;
  const notStarted = total - done - busy.size;
  const next = progress?.next?.(new Set(hosts.filter(isRollingBack).map(({ host }) => host))) ?? null;
  const limits = isCanary && total > 1 ? 'canary: the others wait for its result' : maxConcurrentText(progress);
  const endedAt = hosts.flatMap((host) => host.endedAt ?? []);
  return {
    title,
    startedAt: steps.startedAt,
    total,
    done,
    restMs: isCanary || total === 1 || next?.stopped != null ? null : estimateRestMs(endedAt, total - done, now),
    counts: STATUSES.map((status) => ({ word: outcomeText(status), style: STATE_STYLES[status], count: ended[status] ?? 0 })),
    notes: [
      next?.stopped != null && notStarted > 0 ? `no other host is started: ${next.stopped}` : limits,
      notStarted > 0 ? `${notStarted} not started` : '',
    ],
    next,
    active: hosts.flatMap((host) => (busy.has(host.host) && host.endedAt === null ? [rowOf(host, medians)] : [])),
    failures: outcomes.flatMap((outcome) =>
      FAILED.has(outcome.status) ? [{ name: outcome.host, text: `${outcomeText(outcome.status)}: ${reasonOf(outcome)}` }] : [],
    ),
  };
}

function maxConcurrentText(progress: FleetProgress | null): string {
  const { maxConcurrent, total = 1 } = progress ?? {};
  return maxConcurrent === undefined || total === 1 || maxConcurrent >= total ? '' : `up to ${maxConcurrent} at once`;
}

/** The steps of a host in the words of its operator, by phase or by the phase above it. */
const STEP_TEXTS: Readonly<Record<string, string>> = {
  inspect: 'inspecting',
  change: 'starting',
  confirm: 'confirming the change',
  'roll back': 'rolling back',
  'kubelet-start': 'starting the kubelet',
  'kubelet-start/remember': 'saving the settings',
  'kubelet-config': 'configuring the kubelet',
  'kubelet-wait-bootstrap': 'waiting for the certificate',
  'kubelet-wait-bootstrap/node': 'waiting for the Node',
  'mark-node': 'labelling the Node',
  'mark-control-plane': 'labelling the Node',
  'preflight/pull-images': 'pulling images',
  'bundle-images': 'importing images',
  'prepare-host': 'preparing the host',
  'install-packages': 'installing packages',
  'install-binaries': 'installing programs',
  proxy: 'configuring the proxy',
  certs: 'creating certificates',
  kubeconfig: 'creating kubeconfigs',
  etcd: 'writing the manifest of etcd',
  'etcd-join': 'joining etcd',
  'control-plane': 'updating static Pods',
  'control-plane-prepare': 'writing static Pods',
  'wait-control-plane': 'waiting for the control plane',
  'upload-config': 'uploading the configuration',
  'upload-certs': 'uploading certificates',
  'bootstrap-token': 'creating the bootstrap token',
  'kubelet-finalize': 'restarting the kubelet',
  addon: 'creating addons',
  'show-join-command': 'finishing',
  restart: 'restarting static Pods',
  'cleanup-node': 'removing files',
  'delete-node': 'deleting the Node',
  'agent-directory': 'installing the agent',
};

function stepText(name: string): string {
  return STEP_TEXTS[name] ?? STEP_TEXTS[name.split('/')[0] ?? ''] ?? name;
}

function isRollingBack({ endedAt, steps }: HostSteps): boolean {
  return endedAt === null && steps.at(-1)?.name === 'roll back';
}

function rowOf(steps: HostSteps, medians: ReadonlyMap<string, number>): LiveRow {
  const { host, activity, revertsAt } = steps;
  const { name, startedAt } = steps.steps.at(-1) ?? { name: 'inspect', startedAt: 0 };
  const text = stepText(name);
  return {
    name: host,
    activity: isRollingBack(steps) && activity !== null ? `${text}: ${activity}` : (activity ?? text),
    isRollingBack: isRollingBack(steps),
    since: startedAt,
    medianMs: medians.get(name) ?? null,
    deadline: revertsAt === null || name !== 'confirm' ? null : { what: 'rolls back', at: revertsAt, unless: 'confirmed' },
  };
}
