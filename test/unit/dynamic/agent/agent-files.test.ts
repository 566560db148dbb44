import { describe, expect, it } from 'vitest';
import { agentAccount } from '../../../../src/core/dynamic/agent/account.ts';
import { renderAgentUnit, renderPointerDropIn } from '../../../../src/core/dynamic/agent/agent-units.ts';
import { AGENT_DIRECTORY, formatPointer, hashInPath } from '../../../../src/core/dynamic/agent/layout.ts';
import { renderAgentMetrics } from '../../../../src/core/dynamic/agent/metrics.ts';
import type { KubeObject } from '../../../../src/core/kubernetes/object.ts';
import { parseUnitFile, unitValues } from '../../../../src/core/systemd/unit-file.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { testAgent } from './support.ts';

describe('the account of an agent', () => {
  const named = (kind: string, name: string): KubeObject => ({ apiVersion: 'v1', kind, metadata: { name } });
  const inKubeSystem = (kind: string, name: string): KubeObject => ({
    apiVersion: 'v1',
    kind,
    metadata: { name, namespace: 'kube-system' },
  });
  const world = () => {
    const admin = fakeCluster({
      objects: [
        named('Node', 'n1'),
        named('Node', 'n2'),
        { ...inKubeSystem('ConfigMap', 'a'), data: {} },
        { ...inKubeSystem('Secret', 's'), data: {} },
        ...agentAccount({ nodeName: 'n1', namespace: 'kube-system', isProxied: true }),
      ],
    });
    const user = {
      name: 'system:serviceaccount:kube-system:kubeletadm-agent-n1',
      groups: ['system:serviceaccounts', 'system:authenticated'],
    };
    return { admin, agent: fakeCluster({ sharedWith: admin, user }) };
  };
  const condition = { status: { conditions: [{ type: 'KubeletConfigOk', status: 'True' }] } };
  const node = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });

  it('is enough for what the agent does', async () => {
    const { admin, agent } = world();
    admin.proxyNode('n1', () => ({ status: 200, body: { kubeletconfig: {} } }));
    await agent.list({ apiVersion: 'v1', kind: 'Node' }, { fieldSelector: 'metadata.name=n1' });
    await agent.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system' }, { fieldSelector: 'metadata.name=a' });
    await agent.patch(node('n1'), 'merge', { metadata: { annotations: { x: 'y' } } });
    await agent.patch(node('n1'), 'strategic', condition, { subresource: 'status' });
    await agent.getRaw('/api/v1/nodes/n1/proxy/configz');
    await agent.create({
      ...named('Event', 'e'),
      metadata: { name: 'e', namespace: 'default' },
      involvedObject: { kind: 'Node', name: 'n1' },
    });
  });

  it('is good for nothing else', async () => {
    const { admin, agent } = world();
    admin.proxyNode('n2', () => ({ status: 200, body: { kubeletconfig: {} } }));
    const secret = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: 's' };
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'a' };
    for (const attempt of [
      () => agent.get(node('n2')),
      () => agent.list({ apiVersion: 'v1', kind: 'Node' }),
      () => agent.patch(node('n2'), 'merge', { metadata: { annotations: { x: 'y' } } }),
      () => agent.patch(node('n2'), 'strategic', condition, { subresource: 'status' }),
      () => agent.delete(node('n1')),
      () => agent.getRaw('/api/v1/nodes/n2/proxy/configz'),
      () => agent.get(secret),
      () => agent.patch(configMap, 'merge', { data: { x: 'y' } }),
      () => agent.delete(configMap),
      () => agent.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' }),
      () => agent.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' }),
    ])
      await expect(attempt()).rejects.toThrow(/CLUSTER_FORBIDDEN/);
  });
});

describe('the units', () => {
  it('let the pointer win, and do without it', () => {
    const unit = parseUnitFile(renderPointerDropIn(AGENT_DIRECTORY));
    expect(unitValues(unit, 'Service', 'EnvironmentFile')).toEqual([`-${AGENT_DIRECTORY}/active.env`]);
    const hash = 'a'.repeat(64);
    expect(hashInPath(formatPointer(AGENT_DIRECTORY, hash))).toBe(hash);
  });

  it('start the agent whatever is in its arguments', () => {
    const text = renderAgentUnit(['/usr/bin/node', '/opt/my tools/k.mjs', 'agent', '--node-name', '100%$x"']);
    expect(text).toContain('ExecStart=/usr/bin/node "/opt/my tools/k.mjs" agent --node-name "100%%$$x\\""\n');
    expect(text).toContain('Restart=always\n');
  });
});

describe('the metrics', () => {
  it('are those of the kubelet', () => {
    const agent = testAgent();
    agent.assign('A@7', 'a');
    const lines = renderAgentMetrics(agent.state).split('\n');
    const labels = (rv: string, source: string, uid: string, key: string) =>
      `{node_config_kubelet_key="${key}",node_config_resource_version="${rv}",node_config_source="${source}",node_config_uid="${uid}"} 1`;
    const a = labels('7', '/api/v1/namespaces/kube-system/configmaps/a', 'uid-a', 'kubelet');
    expect(lines.filter((line) => !line.startsWith('#') && line !== '')).toEqual([
      `kubelet_node_config_assigned${a}`,
      `kubelet_node_config_active${a}`,
      `kubelet_node_config_last_known_good${labels('', 'local', '', '')}`,
      'kubelet_node_config_error 0',
    ]);
    agent.assign('B@1', null, { refusal: { code: 'LOAD_FAILED', cause: 'x' } });
    expect(renderAgentMetrics(agent.state)).toContain('\nkubelet_node_config_error 1\n');
  });
});
