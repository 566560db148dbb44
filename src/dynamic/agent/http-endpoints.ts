import type { LocalResponse } from '../../base/local-server.ts';
import { hasSignal } from '../../kubelet/health/assess.ts';
import { SIGNAL_NAMES, SIGNALS, type Signal } from '../../kubelet/health/signals.ts';
import type { ConfigIdentity } from '../../kubelet/layers/config-source.ts';
import type { AgentCounters } from './agent-counters.ts';
import type { CertificateExpiry } from './certificate-expiry.ts';
import { type AccessProblem, describeAccess } from './cluster-access.ts';
import { type AgentState, type Fault, isObserved } from './state.ts';
import { configStatusOf } from './status.ts';

/**
 * The response to a GET of `/healthz`, `/readyz` or `/metrics`; null: another path. `/readyz` lists the
 * requests that the API server rejects.
 */
export function answerRequest(
  path: string,
  {
    state,
    isNodeKnown,
    access,
    counters,
    certificates,
  }: {
    readonly state: AgentState | null;
    readonly isNodeKnown: boolean;
    readonly access: readonly AccessProblem[];
    readonly counters: AgentCounters;
    readonly certificates: CertificateExpiry;
  },
): LocalResponse | null {
  const type = 'text/plain; charset=utf-8';
  if (path === '/healthz') return state === null ? { status: 503, type, body: 'starting\n' } : { status: 200, type, body: 'ok\n' };
  if (path === '/readyz' && access.length > 0)
    return { status: 503, type, body: access.map((problem) => `${describeAccess(problem)}\n`).join('') };
  if (path === '/readyz')
    return isNodeKnown
      ? { status: 200, type, body: 'ok\n' }
      : { status: 503, type, body: 'the agent cannot read its Node: the API server does not respond, or the Node does not exist\n' };
  if (path === '/metrics' && state !== null)
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: renderAgentMetrics(state, counters, certificates) };
  return null;
}

const CHECKED = SIGNAL_NAMES.filter((name) => !('notChecked' in SIGNALS[name].limits.agent));

const REJECTIONS: readonly Fault['code'][] = [
  'LOAD_FAILED',
  'VALIDATION_FAILED',
  'INTERNAL_FAILURE',
  'NOT_SIGNED',
  'NOT_ALLOWED',
  'RUN_FAILED',
];

/**
 * Renders the metrics in the Prometheus text format, first those of the kubelet's former dynamic configuration: one series
 * each for the assigned, active and last known good configuration, described by labels, and one for the
 * error. The series of the active configuration is omitted while the running kubelet has not been observed
 * with it.
 * @see kubernetes/kubernetes pkg/kubelet/metrics (1.21)
 */
export function renderAgentMetrics(state: AgentState, counters: AgentCounters, certificates: CertificateExpiry): string {
  const { assigned, active, lastKnownGood, error } = configStatusOf(state);
  return [
    ...series(
      'kubelet_node_config_assigned',
      "The node's understanding of its intended configuration. The count is always 1.",
      labelsOf(assigned),
    ),
    ...(isObserved(state)
      ? series('kubelet_node_config_active', 'The configuration the kubelet runs with. The count is always 1.', labelsOf(active))
      : []),
    ...series(
      'kubelet_node_config_last_known_good',
      'The configuration to which a rollback returns. The count is always 1.',
      labelsOf(lastKnownGood),
    ),
    '# HELP kubelet_node_config_error Whether the assignment of the node has an error (1) or not (0).',
    '# TYPE kubelet_node_config_error gauge',
    `kubelet_node_config_error ${error === null ? 0 : 1}`,
    ...series(
      'kubeletadm_config_phase_start_timestamp_seconds',
      'Start of the phase of the configuration (local, trial, good, rejected, fallen-back), in seconds since 1970.',
      { phase: state.phase },
      state.since / 1000,
    ),
    ...values(
      'kubeletadm_kubelet_certificate_expiration_timestamp_seconds',
      'gauge',
      'Expiry of the certificate in the file of the kubelet, in seconds since 1970.',
      {
        label: 'certificate',
        names: (['client', 'serving'] as const).filter((name) => certificates[name] !== undefined),
        amountOf: (name) => certificates[name] ?? 0,
      },
    ),
    '# HELP kubeletadm_trials_total Trials of configurations since the start of the agent.',
    '# TYPE kubeletadm_trials_total counter',
    `kubeletadm_trials_total ${counters.trials}`,
    ...values('kubeletadm_rollbacks_total', 'counter', 'Rollbacks by their signal since the start of the agent.', {
      label: 'signal',
      names: CHECKED,
      amountOf: (name) => counters.rollbacks[name] ?? 0,
    }),
    ...values('kubeletadm_rejections_total', 'counter', 'Rejected configurations by error code, since the start of the agent.', {
      label: 'code',
      names: REJECTIONS,
      amountOf: (code) => counters.rejections[code] ?? 0,
    }),
    ...signals('kubeletadm_trial_signal', 'Whether a signal of a failure is present in the trial (1) or not (0).', (name) =>
      state.phase === 'trial' ? hasSignal(state.watch.signals, name) : false,
    ),
    ...signals(
      'kubeletadm_rollback_signal',
      'Whether a signal of a failure caused the rollback of the assigned configuration (1) or not (0).',
      (name) => (state.phase === 'fallen-back' ? state.fault.signal === name : false),
    ),
    '',
  ].join('\n');
}

function signals(name: string, help: string, isPresent: (signal: Signal) => boolean): readonly string[] {
  return values(name, 'gauge', help, { label: 'signal', names: CHECKED, amountOf: (signal) => (isPresent(signal) ? 1 : 0) });
}

/** A metric with one series for each value of a label. */
function values<N extends string>(
  name: string,
  type: 'gauge' | 'counter',
  help: string,
  { label, names, amountOf }: { readonly label: string; readonly names: readonly N[]; readonly amountOf: (name: N) => number },
): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...names.map((each) => `${name}{${label}="${each}"} ${amountOf(each)}`)];
}

function series(name: string, help: string, labels: Readonly<Record<string, string>>, value = 1): readonly string[] {
  const parts = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name}{${parts.join(',')}} ${value}`];
}

function labelsOf(identity: ConfigIdentity | null): Readonly<Record<string, string>> {
  const source = identity === null ? 'local' : `/api/v1/namespaces/${identity.namespace}/configmaps/${identity.name}`;
  return {
    node_config_kubelet_key: identity?.kubeletConfigKey ?? '',
    node_config_resource_version: identity?.resourceVersion ?? '',
    node_config_source: source,
    node_config_uid: identity?.uid ?? '',
  };
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}
