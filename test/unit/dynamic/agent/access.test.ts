import { afterEach, describe, expect, it } from 'vitest';
import { NO_COUNTERS } from '../../../../src/dynamic/agent/agent-counters.ts';
import { checkpointStore } from '../../../../src/dynamic/agent/checkpoint-store.ts';
import { answerRequest } from '../../../../src/dynamic/agent/http-endpoints.ts';
import { assessNodes } from '../../../../src/dynamic/workflows/read-nodes.ts';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import type { KubeObject } from '../../../../src/kube/cluster.ts';
import { agentRightsName } from '../../../../src/kubeadm/node-agent/agent-rights.ts';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { accessFile } from '../../../../src/kubelet/node-agent/layout.ts';
import { NODE, newWorld, payload, type World } from './world.ts';

let world: World;
afterEach(() => world.stop());

const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;
const stored = async () => (await checkpointStore(world.host, AGENT_DIRECTORY).load()).access;
const readyz = () =>
  answerRequest('/readyz', { state: world.state, isNodeKnown: true, access: world.access, counters: NO_COUNTERS, certificates: {} });
const validated = async () => {
  const [node] = await assessNodes(world.cluster, [NODE], { now: world.clock.now() });
  if (node === undefined) throw new Error('no node');
  return node;
};
const begin = async (): Promise<void> => {
  world = newWorld({ timing: { trialMs: 30_000 } });
  world.start();
  await world.push('a', payload(50));
  await world.assign('a');
  await world.until('a is good', phase('good'));
  await world.until('the state is reported', async () => (await validated()).verdict.state === 'good');
  expect(readyz()?.status).toBe(200);
};

describe('an agent that the API server refuses', () => {
  it('keeps the cause of a refused credential on its host, is not ready, and recovers', async () => {
    await begin();
    world.refuse(true);
    await world.until('the refusal is noticed', () => world.access.length > 0);
    await world.push('b', payload(51));
    await world.assign('b');
    await world.until('kept', async () => (await stored()).length > 0);
    expect(await stored()).toEqual([expect.objectContaining({ request: 'read Node', code: 'CLUSTER_UNAUTHORIZED' })]);
    expect(readyz()).toMatchObject({
      status: 503,
      body: expect.stringMatching(/since 2030-\S+ the API server does not allow the agent to read Node: .*Unauthorized/),
    });
    const { verdict } = await validated();
    expect(verdict).toMatchObject({ state: 'waiting', why: expect.stringMatching(/its last report is from 2030-01-01T00:\d\d:\d\dZ$/) });
    expect(verdict.hint).toContain('dynamic inspect');
    world.refuse(false);
    await world.until('b is good', () => world.state?.phase === 'good' && world.runs() === 51);
    await world.until('the file is removed', () => !world.host.files.has(accessFile(AGENT_DIRECTORY)));
    expect(readyz()?.status).toBe(200);
  });

  it('reports that its rights to read ConfigMaps are gone, and recovers when they are back', async () => {
    await begin();
    const ref = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      namespace: AGENT_NAMESPACE,
      name: agentRightsName(NODE),
    };
    const binding = (await world.cluster.get(ref)) as KubeObject;
    await world.cluster.delete(ref);
    await world.push('b', payload(51));
    await world.assign('b');
    await world.until('kept', async () => (await stored()).length > 0);
    expect(await stored()).toEqual([expect.objectContaining({ request: 'read ConfigMap', code: 'CLUSTER_FORBIDDEN' })]);
    expect(readyz()).toMatchObject({ status: 503, body: expect.stringContaining('read ConfigMap') });
    await world.until('reported', async () => (await validated()).verdict.state === 'not-synced');
    const { verdict } = await validated();
    expect(verdict.why).toContain(`system:node:${NODE}`);
    const errorSince = verdict.since?.getTime() ?? 0;
    expect(errorSince).toBeGreaterThan(Date.parse('2030-01-01T00:00:30Z'));
    const { uid, resourceVersion, creationTimestamp, ...metadata } = binding.metadata;
    await world.cluster.create({ ...binding, metadata });
    await world.until('b is good', () => world.state?.phase === 'good' && world.runs() === 51);
    await world.until('the file is removed', () => !world.host.files.has(accessFile(AGENT_DIRECTORY)));
  });
});

describe('the report of an agent', () => {
  it('never shows an inconsistent report as final', async () => {
    world = newWorld({ timing: { trialMs: 30_000 } });
    world.behaviours.set(60, { crashesAfter: 5 });
    const seen = new Set<string>();
    const controller = new AbortController();
    const watching = (async (): Promise<void> => {
      for await (const { object } of world.cluster.watch(
        { apiVersion: 'v1', kind: 'Node' },
        { resourceVersion: (await world.cluster.list({ apiVersion: 'v1', kind: 'Node' })).resourceVersion, signal: controller.signal },
      )) {
        const [annotation = '{}', reason = ''] = [
          object.metadata.annotations?.['kubeletadm.dev/config-status'],
          ((object.status as { conditions?: { type: string; reason: string }[] })?.conditions ?? []).find(
            ({ type }) => type === 'KubeletConfigOk',
          )?.reason,
        ];
        const { readNodeConfig } = await import('../../../../src/dynamic/status/node-config.ts');
        const isReporting = readNodeConfig(object).isReporting;
        const { active, error } = JSON.parse(annotation) as { active?: { configMap: { name: string } }; error?: string };
        seen.add(`${isReporting ? 'reporting' : `${reason} ${active?.configMap.name ?? 'local'}${error === undefined ? '' : ' error'}`}`);
      }
    })().catch(() => undefined);
    world.start();
    await world.push('a', payload(50));
    await world.push('bad', payload(60));
    await world.assign('a');
    await world.until('a is reported', async () => (await world.condition()).reason === 'Good');
    await world.assign('bad');
    await world.until(
      'bad is reported',
      async () => (await world.condition()).message?.toString().endsWith('runs the last known good configuration') === true,
    );
    await world.until('the rollback is reported', async () => (await validated()).verdict.state === 'rolled-back');
    controller.abort();
    await watching;
    expect(seen).toContain('reporting');
    expect([...seen].filter((text) => /^(Good|FallenBack) (?!a)|^Good .*error|^FallenBack a$/.test(text))).toEqual([]);
    expect(seen).toContain('FallenBack a error');
  });
});
