import type { LocalResponse } from '../../base/local-server.ts';
import { hasSignal } from '../../kubelet/health/assess.ts';
import { SIGNAL_NAMES, SIGNALS, type Signal } from '../../kubelet/health/signals.ts';
import type { ConfigIdentity } from '../../kubelet/layers/config-source.ts';
import { type AccessProblem, describeAccess } from './cluster-access.ts';
import { type AgentState, isObserved } from './state.ts';
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
  }: { readonly state: AgentState | null; readonly isNodeKnown: boolean; readonly access: readonly AccessProblem[] },
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
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: renderAgentMetrics(state) };
  return null;
}

const CHECKED = SIGNAL_NAMES.filter((name) => !('notChecked' in SIGNALS[name].limits.agent));

/**
 * Renders the metrics of the kubelet's former dynamic configuration in the Prometheus text format: one series
 * each for the assigned, active and last known good configuration, described by labels, and one for the
 * error. The series of the active configuration is omitted while the running kubelet has not been observed
 * with it.
 * @see kubernetes/kubernetes pkg/kubelet/metrics (1.21)
 */
export function renderAgentMetrics(state: AgentState): string {
  const { assigned, active, lastKnownGood, error } = configStatusOf(state);
  return [
    ...series('kubelet_node_config_assigned', "The node's understanding of its intended configuration. The count is always 1.", assigned),
    ...(isObserved(state)
      ? series('kubelet_node_config_active', 'The configuration the kubelet runs with. The count is always 1.', active)
      : []),
    ...series('kubelet_node_config_last_known_good', 'The configuration of a rollback. The count is always 1.', lastKnownGood),
    '# HELP kubelet_node_config_error Whether the assignment of the node has an error (1) or not (0).',
    '# TYPE kubelet_node_config_error gauge',
    `kubelet_node_config_error ${error === null ? 0 : 1}`,
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
  const values = CHECKED.map((signal) => `${name}{signal="${signal}"} ${isPresent(signal) ? 1 : 0}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, ...values];
}

function series(name: string, help: string, identity: ConfigIdentity | null): readonly string[] {
  const labels = Object.entries(labelsOf(identity)).map(([label, value]) => `${label}="${escapeLabel(value)}"`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name}{${labels.join(',')}} 1`];
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
