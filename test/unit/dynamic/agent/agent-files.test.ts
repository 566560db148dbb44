import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { NO_COUNTERS } from '../../../../src/dynamic/agent/agent-counters.ts';
import { renderAgentMetrics } from '../../../../src/dynamic/agent/http-endpoints.ts';
import { formatStateFile, parseStateFile } from '../../../../src/dynamic/agent/state-file.ts';
import { parseUnitFile, unitValues } from '../../../../src/host/systemd/unit-file.ts';
import { AGENT_NAMESPACE, agentNamespaceProblem } from '../../../../src/kube/agent-namespace.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { agentRights } from '../../../../src/kubeadm/node-agent/agent-rights.ts';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { renderAgentUnit as render, renderPointerDropIn } from '../../../../src/kubelet/node-agent/agent-units.ts';
import { formatPointer, hashInPath } from '../../../../src/kubelet/node-agent/layout.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { healthy, testAgent } from './support.ts';

const templates = await loadTemplates();
const renderAgentUnit = (command: readonly string[], directory: string, keepsDropInDirectory = false): string =>
  render(templates, { command, directory, kubeletDirectory: null, keepsDropInDirectory });

describe('the rights of an agent', () => {
  const named = (kind: string, name: string): KubeObject => ({ apiVersion: 'v1', kind, metadata: { name } });
  const within = (kind: string, namespace: string, name: string): KubeObject => ({ apiVersion: 'v1', kind, metadata: { name, namespace } });
  const world = () => {
    const admin = fakeCluster({
      objects: [
        named('Node', 'n1'),
        named('Node', 'n2'),
        named('Namespace', AGENT_NAMESPACE),
        { ...within('ConfigMap', AGENT_NAMESPACE, 'a'), data: {} },
        { ...within('ConfigMap', 'kube-system', 'a'), data: {} },
        { ...within('Secret', AGENT_NAMESPACE, 's'), data: {} },
        ...agentRights({ nodeName: 'n1', nodeUid: 'u1', namespace: AGENT_NAMESPACE }),
      ],
    });
    const user = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
    return { admin, agent: fakeCluster({ sharedWith: admin, user }) };
  };
  const condition = { status: { conditions: [{ type: 'KubeletConfigOk', status: 'True' }] } };
  const node = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });

  it('are four objects owned by the Node, granted only to its kubelet', () => {
    const objects = agentRights({ nodeName: 'n1', nodeUid: 'u1', namespace: 'x' });
    expect(objects.map(({ kind, metadata }) => [kind, metadata.namespace, metadata.name])).toEqual([
      ['Role', 'x', 'kubeletadm:agent:n1'],
      ['RoleBinding', 'x', 'kubeletadm:agent:n1'],
      ['ClusterRole', undefined, 'kubeletadm:agent:n1'],
      ['ClusterRoleBinding', undefined, 'kubeletadm:agent:n1'],
    ]);
    for (const { metadata } of objects)
      expect(metadata.ownerReferences).toEqual([{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' }]);
    for (const { subjects } of objects.filter(({ kind }) => kind.endsWith('Binding')))
      expect(subjects).toEqual([{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:node:n1' }]);
    expect(objects.flatMap(({ rules = [] }) => rules)).toEqual([
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['nodes/configz'], resourceNames: ['n1'], verbs: ['get'] },
    ]);
  });

  it('allow every request of the agent', async () => {
    const { agent } = world();
    await agent.list({ apiVersion: 'v1', kind: 'Node' }, { fieldSelector: 'metadata.name=n1' });
    await agent.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE }, { fieldSelector: 'metadata.name=a' });
    await agent.patch(node('n1'), 'merge', { metadata: { annotations: { x: 'y' } } });
    await agent.patch(node('n1'), 'strategic', condition, { subresource: 'status' });
    await agent.create({
      ...named('Event', 'e'),
      metadata: { name: 'e', namespace: 'default' },
      involvedObject: { kind: 'Node', name: 'n1' },
    });
  });

  it('allow no other request', async () => {
    const { admin, agent } = world();
    for (const name of ['n1', 'n2']) admin.proxyNode(name, () => ({ status: 200, body: { kubeletconfig: {} } }));
    const secret = { apiVersion: 'v1', kind: 'Secret', namespace: AGENT_NAMESPACE, name: 's' };
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE, name: 'a' };
    for (const attempt of [
      () => agent.get(node('n2')),
      () => agent.list({ apiVersion: 'v1', kind: 'Node' }),
      () => agent.patch(node('n2'), 'merge', { metadata: { annotations: { x: 'y' } } }),
      () => agent.patch(node('n2'), 'strategic', condition, { subresource: 'status' }),
      () => agent.patch(node('n1'), 'merge', { metadata: { labels: { 'node-restriction.kubernetes.io/pci': 'true' } } }),
      () => agent.patch(node('n1'), 'merge', { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }),
      () => agent.patch(node('n1'), 'merge', { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } }),
      () => agent.delete(node('n1')),
      () => agent.getRaw('/api/v1/nodes/n1/proxy/configz'),
      () => agent.getRaw('/api/v1/nodes/n2/proxy/configz'),
      () => agent.get(secret),
      () => agent.patch(configMap, 'merge', { data: { x: 'y' } }),
      () => agent.delete(configMap),
      () => agent.get({ ...configMap, namespace: 'kube-system' }),
      () => agent.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system' }),
      () => agent.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' }),
      () => agent.list({ apiVersion: 'v1', kind: 'Event', namespace: 'default' }),
    ])
      await expect(attempt()).rejects.toThrow(/CLUSTER_FORBIDDEN/);
  });

  it.each(['kube-system', 'kube-public', 'kube-node-lease', 'default'])('are not granted in %s', (namespace) => {
    expect(agentNamespaceProblem(namespace)).toMatchObject({ code: 'AGENT_NAMESPACE_SHARED' });
  });

  it('are granted in any other namespace', () => {
    expect([agentNamespaceProblem(AGENT_NAMESPACE), agentNamespaceProblem('edge')]).toEqual([null, null]);
  });
});

describe('the units', () => {
  it('let the pointer win, and do without it', () => {
    const unit = parseUnitFile(renderPointerDropIn(templates, AGENT_DIRECTORY));
    expect(unitValues(unit, 'Service', 'EnvironmentFile')).toEqual([`-${AGENT_DIRECTORY}/active.env`]);
    const hash = 'a'.repeat(64);
    expect(hashInPath(formatPointer(AGENT_DIRECTORY, hash))).toBe(hash);
  });

  it('quote every argument of the agent', () => {
    const text = renderAgentUnit(['/usr/bin/node', '/opt/my tools/k.mjs', 'agent', '--node-name', '100%$x"'], '/var/lib/x');
    expect(text).toContain('ExecStart=/usr/bin/node "/opt/my tools/k.mjs" agent --node-name "100%%$$x\\""\n');
    expect(text).toContain('Restart=always\n');
  });

  it('have the same text in each release', async () => {
    const home = ['/root/.nvm/bin/node', '/opt/my tools/k.mjs', 'agent', '--node-name', '100%$x"\\'];
    await expect(renderAgentUnit(['/usr/local/bin/kubeletadm', 'agent'], AGENT_DIRECTORY)).toMatchFileSnapshot('golden/agent.service');
    await expect(renderAgentUnit(home, '/srv/my 100% data', true)).toMatchFileSnapshot('golden/agent-at-home.service');
    await expect(renderPointerDropIn(templates, AGENT_DIRECTORY)).toMatchFileSnapshot('golden/20-kubeletadm-agent.conf');
  });

  it('let the agent write only in its own directory and that of static pods, without privileges', () => {
    const values = (name: string, command = ['/usr/bin/node']): readonly string[] =>
      unitValues(parseUnitFile(renderAgentUnit(command, AGENT_DIRECTORY)), 'Service', name);
    expect(values('ReadWritePaths')).toEqual([AGENT_DIRECTORY, '-/etc/kubernetes/manifests']);
    const unit = render(templates, {
      command: ['/usr/bin/node'],
      directory: AGENT_DIRECTORY,
      kubeletDirectory: '/var/lib/kubelet',
      keepsDropInDirectory: false,
    });
    expect(unitValues(parseUnitFile(unit), 'Service', 'ReadWritePaths')).toEqual([
      AGENT_DIRECTORY,
      '-/etc/kubernetes/manifests',
      '/var/lib/kubelet',
    ]);
    expect(values('CapabilityBoundingSet')).toEqual([]);
    expect(renderAgentUnit(['x'], '/d')).toContain('\nCapabilityBoundingSet=\n');
    for (const [name, value] of Object.entries({ NoNewPrivileges: 'yes', ProtectSystem: 'strict', PrivateTmp: 'yes', ProtectHome: 'yes' }))
      expect(values(name), name).toEqual([value]);
    // Node.js compiles at runtime.
    expect(values('MemoryDenyWriteExecute')).toEqual([]);
    // Node.js in root's home directory, as nvm installs it.
    expect(values('ProtectHome', ['/root/.nvm/versions/node/v22.1.0/bin/node'])).toEqual(['read-only']);
  });
});

describe('the metrics', () => {
  it('equal those of the kubelet', () => {
    const agent = testAgent();
    agent.assign('A@7', 'a');
    const lines = renderAgentMetrics(agent.state, NO_COUNTERS, {}).split('\n');
    const labels = (rv: string, source: string, uid: string, key: string) =>
      `{node_config_kubelet_key="${key}",node_config_resource_version="${rv}",node_config_source="${source}",node_config_uid="${uid}"} 1`;
    const a = labels('7', '/api/v1/namespaces/kube-system/configmaps/a', 'uid-a', 'kubelet');
    expect(lines.filter((line) => line.startsWith('kubelet_'))).toEqual([
      `kubelet_node_config_assigned${a}`,
      `kubelet_node_config_active${a}`,
      `kubelet_node_config_last_known_good${labels('', 'local', '', '')}`,
      'kubelet_node_config_error 0',
    ]);
    agent.assign('B@1', null, { refusal: { code: 'LOAD_FAILED', cause: 'x' } });
    expect(renderAgentMetrics(agent.state, NO_COUNTERS, {})).toContain('\nkubelet_node_config_error 1\n');
  });

  it('show the signals in a trial and of a rollback', () => {
    const agent = testAgent();
    const present = (): readonly string[] =>
      renderAgentMetrics(agent.state, NO_COUNTERS, {})
        .split('\n')
        .filter((line) => /^kubeletadm_.* 1$/.test(line));
    agent.assign('A@7', 'a');
    agent.run(2);
    expect(present()).toEqual([]);
    const losses = [{ kind: 'pod-not-started', pod: 'a/b', seen: 'RunContainerError' } as const];
    agent.run(2, () => healthy('a', { losses }));
    expect(present()).toEqual(['kubeletadm_trial_signal{signal="pod-not-started"} 1']);
    agent.run(20, () => healthy('a', { losses }));
    expect(present()).toEqual(['kubeletadm_rollback_signal{signal="pod-not-started"} 1']);
  });

  it('show the signal of a rollback that an earlier version, which named it `sign`, has written to its file', () => {
    const agent = testAgent();
    agent.assign('A@7', 'a');
    agent.run(30, () => healthy('a', { losses: [{ kind: 'pod-rejected', pod: 'a/b', seen: 'OutOfpods' }] }));
    const { checksum: _, ...body } = JSON.parse(formatStateFile({ generation: 1, state: agent.state }).replaceAll('"signal":', '"sign":'));
    const checksum = createHash('sha256').update(JSON.stringify(body)).digest('hex');
    const state = parseStateFile(JSON.stringify({ checksum, ...body }))?.state;
    expect(state).toMatchObject({
      phase: 'fallen-back',
      fault: { signal: 'pod-rejected' },
      rejected: [{ fault: { signal: 'pod-rejected' } }],
    });
    expect(JSON.stringify(state)).not.toContain('"sign"');
  });

  it('keeps why an assignment cannot be read, which dynamic inspect shows', () => {
    const sync = { code: 'DOWNLOAD_FAILED', cause: 'the API server does not answer' } as const;
    const file = { generation: 2, state: { ...testAgent().state, sync } };
    expect(parseStateFile(formatStateFile(file))?.state.sync).toEqual(sync);
  });
});
