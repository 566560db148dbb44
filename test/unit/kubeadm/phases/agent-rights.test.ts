import { describe, expect, it } from 'vitest';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { agentRights } from '../../../../src/kubeadm/node-agent/agent-rights.ts';
import { agentRightsPhase, agentRightsRemoval } from '../../../../src/kubeadm/phases/agent-rights.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const contextOf = (cluster: FakeCluster) => ({ host: fakeHost(), cluster, clock: fakeClock(), reporter: recordingReporter() });

function clusterWith(...objects: readonly KubeObject[]): FakeCluster {
  const named = (kind: string, name: string): KubeObject => ({ apiVersion: 'v1', kind, metadata: { name } });
  return fakeCluster({ objects: [named('Node', 'n1'), named('Namespace', AGENT_NAMESPACE), named('Namespace', 'edge'), ...objects] });
}

it('grants the credential of a node no right to evict or change pods, and none to read budgets', () => {
  const rules = agentRights({ nodeName: 'n1', nodeUid: 'u', namespace: 'edge' }).flatMap(
    ({ rules: own }) => (own ?? []) as unknown as readonly { resources: readonly string[]; verbs: readonly string[] }[],
  );
  expect(rules.flatMap(({ resources, verbs }) => resources.map((one) => `${one}: ${verbs.join(' ')}`))).toEqual([
    'configmaps: get list watch',
    'nodes/configz: get',
  ]);
});

describe('the removal of the RBAC objects of an agent', () => {
  const removal = async (cluster: FakeCluster, isOptional = false) =>
    (await agentRightsRemoval.inspect(contextOf(cluster), { nodeName: 'n1', namespace: 'edge', isOptional })).plan;
  const deleted = async (cluster: FakeCluster): Promise<readonly string[]> =>
    (await removal(cluster)).changes.map((change) =>
      change.kind === 'delete-object' ? `${change.ref.kind} ${change.ref.namespace ?? ''}/${change.ref.name}` : change.kind,
    );

  it('deletes only the objects of its Node', async () => {
    const cluster = clusterWith(
      ...agentRights({ nodeName: 'n1', nodeUid: 'u', namespace: 'edge' }),
      ...agentRights({ nodeName: 'n2', nodeUid: 'v', namespace: 'edge' }),
    );
    expect(await deleted(cluster)).toEqual([
      'Role edge/kubeletadm:agent:n1',
      'RoleBinding edge/kubeletadm:agent:n1',
      'ClusterRole /kubeletadm:agent:n1',
      'ClusterRoleBinding /kubeletadm:agent:n1',
    ]);
  });

  it('deletes the ServiceAccount of an earlier version, and its ClusterRoleBinding last because it names the namespace', async () => {
    const name = 'kubeletadm-agent-n1';
    const subjects = [{ kind: 'ServiceAccount', name, namespace: 'edge' }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
    const cluster = clusterWith(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'edge' } },
      { apiVersion: RBAC, kind: 'ClusterRole', metadata: { name }, rules: [] },
      { apiVersion: RBAC, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects },
    );
    const plan = (await agentRightsRemoval.inspect(contextOf(cluster), { nodeName: 'n1', namespace: AGENT_NAMESPACE, isOptional: false }))
      .plan;
    expect(plan.changes.map((change) => (change.kind === 'delete-object' ? change.ref.kind : change.kind))).toEqual([
      'ServiceAccount',
      'ClusterRole',
      'ClusterRoleBinding',
    ]);
  });

  it('has no changes without RBAC objects', async () => {
    expect(await removal(clusterWith())).toEqual({ changes: [], noop: 'the agent has no RBAC objects' });
  });

  it('is left to the garbage collector when reset lacks the permission', async () => {
    const admin = clusterWith(...agentRights({ nodeName: 'n1', nodeUid: 'u', namespace: 'edge' }));
    const operator = fakeCluster({ sharedWith: admin, user: { name: 'operator', groups: ['system:authenticated'] } });
    expect(await removal(operator, true)).toEqual({
      changes: [],
      noop: 'the RBAC objects of the agent, if any, are deleted with the Node',
    });
    await expect(removal(operator)).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
    expect((await removal(admin, true)).changes).toHaveLength(4);
  });
});

describe('the RBAC objects of an agent', () => {
  it('are planned with a missing namespace, and with the Node as their owner', async () => {
    const cluster = clusterWith();
    const { plan } = await agentRightsPhase.inspect(contextOf(cluster), { nodeName: 'n1', namespace: 'configs' });
    expect(plan.changes.map((change) => (change.kind === 'create-object' ? `create ${change.object.kind}` : `${change.kind}`))).toEqual([
      'create Namespace',
      'create Role',
      'create RoleBinding',
      'create ClusterRole',
      'create ClusterRoleBinding',
      'patch-object',
    ]);
    const uid = (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' }))?.metadata.uid;
    for (const change of plan.changes.slice(1, 5))
      if (change.kind === 'create-object')
        expect(change.object.metadata.ownerReferences).toMatchObject([{ kind: 'Node', name: 'n1', uid }]);
  });
});
