import type { ConfigIdentity, ConfigStatus } from '../../../src/kubelet/layers/config-source.ts';

/** The four gauges of a kubelet with dynamic configuration, as in `/metrics`. */
export function nativeMetrics({ assigned, active, lastKnownGood, error }: ConfigStatus): string {
  const gauge = (name: string, identity: ConfigIdentity | null): string => `kubelet_node_config_${name}{${labels(identity)}} 1\n`;
  return [
    gauge('active', active),
    gauge('assigned', assigned),
    `kubelet_node_config_error ${error === null ? 0 : 1}\n`,
    gauge('last_known_good', lastKnownGood),
  ].join('');
}

function labels(identity: ConfigIdentity | null): string {
  const source = identity === null ? 'local' : `/api/v1/namespaces/${identity.namespace}/configmaps/${identity.name}`;
  const pairs = [
    ['node_config_kubelet_key', identity?.kubeletConfigKey],
    ['node_config_resource_version', identity?.resourceVersion],
    ['node_config_source', source],
    ['node_config_uid', identity?.uid],
  ];
  return pairs.map(([name, value]) => `${name}="${value ?? ''}"`).join(',');
}
