import type { ConfigIdentity } from '../../kubelet/config-source.ts';
import { type AgentState, isObserved } from './state.ts';
import { statusOf } from './status.ts';

/**
 * The metrics of the kubelet's own dynamic configuration, in the text format of Prometheus: one series for each of assigned, active and last known good, with
 * what it is in its labels, and whether there is an error. No series for active while the running kubelet was not observed with it.
 * @see kubernetes/kubernetes pkg/kubelet/metrics (1.21)
 */
export function renderAgentMetrics(state: AgentState): string {
  const { assigned, active, lastKnownGood, error } = statusOf(state);
  return [
    ...series('kubelet_node_config_assigned', "The node's understanding of its intended configuration. The count is always 1.", assigned),
    ...(isObserved(state)
      ? series('kubelet_node_config_active', 'The configuration the kubelet runs with. The count is always 1.', active)
      : []),
    ...series('kubelet_node_config_last_known_good', 'What the node falls back to. The count is always 1.', lastKnownGood),
    '# HELP kubelet_node_config_error Whether what the node is assigned is in error (1) or not (0).',
    '# TYPE kubelet_node_config_error gauge',
    `kubelet_node_config_error ${error === null ? 0 : 1}`,
    '',
  ].join('\n');
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
