import { describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/adapters/cluster-kube.ts';
import { patchesFor } from '../../src/agent/report-status.ts';
import { agentAccount, agentAccountName } from '../../src/core/dynamic/agent/account.ts';
import { newAgentState } from '../../src/core/dynamic/agent/state.ts';
import { readTokenClaims } from '../../src/core/dynamic/agent/token-claims.ts';
import { CONFIG_STATUS_ANNOTATION } from '../../src/core/dynamic/config-source.ts';
import { mayDo } from '../../src/engine/may-do.ts';
import { startApiServer } from '../../src/lab/api-server/server.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';

interface World {
  readonly admin: Cluster;
  withToken(token: string): Cluster;
  close(): Promise<void>;
}

const connect = (text: string): Cluster => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });
const ACCOUNT = { namespace: 'kube-system', name: agentAccountName('n1') };
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
const MAY = [
  ['get', 'nodes', '', 'n1'],
  ['watch', 'nodes', '', 'n1'],
  ['patch', 'nodes', '', 'n1'],
  ['patch', 'nodes', 'status', 'n1'],
  ['get', 'nodes', 'configz', 'n1'],
] as const;
const MAY_NOT = [
  ['patch', 'nodes', '', 'n2'],
  ['patch', 'nodes', 'status', 'n2'],
  ['get', 'nodes', 'proxy', 'n1'],
  ['get', 'nodes', 'configz', 'n2'],
  ['delete', 'nodes', '', 'n1'],
  ['create', 'nodes', 'proxy', 'n1'],
  ['list', 'nodes', '', ''],
  ['get', 'secrets', '', 'x'],
  ['get', 'configmaps', '', 'x'],
] as const;

/** What `dynamic enable` gives an agent is what it needs, and no more. */
function accountContract(name: string, start: () => Promise<World>): void {
  it(name, async () => {
    const world = await start();
    const { admin } = world;
    try {
      for (const object of agentAccount({ nodeName: 'n1', namespace: 'kube-system', isProxied: false })) await admin.create(object);
      for (const node of ['n1', 'n2']) await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
      const map = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'a' };
      await admin.create({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'a', namespace: 'kube-system' },
        data: { kubelet: 'x' },
      });
      const { token } = await admin.requestToken(ACCOUNT, 86_400);
      const agent = world.withToken(token.reveal());
      // Rules that were just made may take a moment to count.
      await expect.poll(() => agent.get(NODE).catch(() => null), { timeout: 10_000 }).not.toBeNull();
      const ask = ([verb, resource, subresource, one]: (typeof MAY)[number] | (typeof MAY_NOT)[number]) =>
        mayDo(agent, { verb, group: '', resource, subresource, name: one });
      expect(await Promise.all(MAY.map(ask))).toEqual(MAY.map(() => true));
      expect(await Promise.all(MAY_NOT.map(ask))).toEqual(MAY_NOT.map(() => false));
      expect((await agent.list({ apiVersion: 'v1', kind: 'Node' }, { fieldSelector: 'metadata.name=n1' })).items).toHaveLength(1);
      expect((await agent.get(map))?.data).toEqual({ kubelet: 'x' });
      // What it reports.
      const node = await agent.get(NODE);
      if (node === null) throw new Error('no Node');
      for (const { subresource, patch } of patchesFor(node, newAgentState(0), new Date()))
        await agent.patch(NODE, subresource === undefined ? 'merge' : 'strategic', patch, subresource === undefined ? {} : { subresource });
      const told = await admin.get(NODE);
      expect(told?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION]).toBe('{}');
      expect(told?.status).toMatchObject({ conditions: [expect.objectContaining({ type: 'KubeletConfigOk', reason: 'Local' })] });
      // Its next token, for itself alone, which is worth nothing when the account is gone.
      const next = (await agent.requestToken(ACCOUNT, 3600)).token.reveal();
      expect(readTokenClaims(next)).toMatchObject({
        subject: `system:serviceaccount:kube-system:${ACCOUNT.name}`,
        accountUid: (await admin.get({ apiVersion: 'v1', kind: 'ServiceAccount', ...ACCOUNT }))?.metadata.uid,
      });
      await expect(agent.requestToken({ namespace: 'kube-system', name: 'default' }, 3600)).rejects.toMatchObject({
        code: 'CLUSTER_FORBIDDEN',
      });
      await admin.delete({ apiVersion: 'v1', kind: 'ServiceAccount', ...ACCOUNT });
      const late = world.withToken(next);
      await expect
        .poll(
          () =>
            late.get(NODE).then(
              () => 'let in',
              (error: { code: string }) => error.code,
            ),
          { timeout: 30_000 },
        )
        .toBe('CLUSTER_UNAUTHORIZED');
      await Promise.all([agent.close(), late.close()]);
    } finally {
      await world.close();
    }
  });
}

describe("the agent's account", () => {
  accountContract('at the API server double', async () => {
    const server = await startApiServer();
    const admin = connect(server.adminKubeconfig());
    const close = async () => {
      await admin.close();
      await server.close();
    };
    return { admin, withToken: (token) => connect(server.kubeconfigWithToken(token)), close };
  });
  const binaries = findRealBinaries();
  if (typeof binaries === 'string') {
    it.skipIf(requirement("the agent's account at a real kube-apiserver", binaries))('at a real kube-apiserver', () => undefined);
    return;
  }
  accountContract('at a real kube-apiserver', async () => {
    const server = await startRealApiServer(binaries);
    const admin = connect(server.adminKubeconfig());
    const close = async () => {
      await admin.close();
      await server.close();
    };
    return { admin, withToken: (token) => connect(server.kubeconfigWithToken(token)), close };
  });
});
