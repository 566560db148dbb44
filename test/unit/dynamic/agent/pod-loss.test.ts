import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENT_NAMESPACE } from '../../../../src/kube/agent-namespace.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { ALLOW_POD_LOSS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { HEADER, NODE, newWorld, payload, type World } from './world.ts';

/** A running pod; a static pod has the mirror annotation. */
function pod(name: string, nodeName: string, more: { readonly isStatic?: boolean; readonly cpu?: string } = {}): KubeObject {
  const { isStatic = false, cpu } = more;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      creationTimestamp: '2030-01-01T00:00:00Z',
      ...(isStatic ? { annotations: { 'kubernetes.io/config.mirror': 'x' } } : {}),
    },
    spec: { nodeName, containers: [{ name: 'c', image: 'i', ...(cpu === undefined ? {} : { resources: { requests: { cpu } } }) }] },
    status: { phase: 'Running' },
  };
}

describe('an agent with a payload that would terminate pods', () => {
  let world: World;
  beforeEach(async () => {
    world = newWorld({ timing: { trialMs: 30_000 } });
    for (const name of ['a', 'b', 'c']) await world.cluster.create(pod(name, NODE));
    await world.cluster.create(pod('elsewhere', 'node-2'));
    world.start();
  });
  afterEach(() => world.stop());

  const ends = (reason: string) => async (): Promise<boolean> => (await world.condition()).reason === reason;
  const assign = async (name: string, text: string): Promise<void> => {
    await world.push(name, text);
    await world.assign(name);
  };

  it('rejects it with the names of the pods, before any change', async () => {
    await assign('few', payload(1));
    await world.until('rejected', ends('Rejected'));
    const { message } = await world.condition();
    expect(message).toContain(
      'maxPods 1 is less than the 3 pods of the node: default/b, default/c would be terminated. To apply the configuration anyway, assign it again with --allow-pod-loss',
    );
    expect([world.starts(), world.runs()]).toEqual([0, 110]);
  });

  it('applies it with the permission for this assignment, given later', async () => {
    await assign('few', payload(1));
    await world.until('rejected', ends('Rejected'));
    await world.annotate({ [ALLOW_POD_LOSS_ANNOTATION]: `${AGENT_NAMESPACE}/few/kubelet` });
    await world.until('good', ends('Good'));
    expect([world.starts(), world.runs()]).toEqual([1, 1]);
  });

  it('rejects it with the permission for another assignment', async () => {
    await world.annotate({ [ALLOW_POD_LOSS_ANNOTATION]: `${AGENT_NAMESPACE}/other/kubelet` });
    await assign('few', payload(1));
    await world.until('rejected', ends('Rejected'));
    expect(world.starts()).toBe(0);
  });

  it('applies a limit that the pods keep', async () => {
    await assign('enough', payload(3));
    await world.until('good', ends('Good'));
    expect(world.runs()).toBe(3);
  });

  it('applies a payload when the API server refuses the list of pods', async () => {
    const list = world.asNode.list.bind(world.asNode);
    Object.assign(world.asNode, {
      list: async (...args: Parameters<typeof list>) => {
        if (args[0].kind === 'Pod') return list({ apiVersion: 'v1', kind: 'Secret' });
        return list(...args);
      },
    });
    await assign('few', payload(1));
    await world.until('good', ends('Good'));
    expect(world.access).toEqual([]);
  });

  it.each([
    ['resolvConf: /no/such', 'resolvConf /no/such does not exist on the host'],
    ['podPidsLimit: 1', 'podPidsLimit 1 is less than the 16 tasks'],
    ['clusterDNS: [not-an-ip]', 'clusterDNS not-an-ip is not an IP address'],
  ])('rejects %s', async (line, why) => {
    await assign('bad', `${HEADER}${line}\n`);
    await world.until('rejected', ends('Rejected'));
    expect((await world.condition()).message).toContain(why);
    expect(world.starts()).toBe(0);
  });

  it('finds a file that the ConfigMap itself contains', async () => {
    await world.push('dns', `${HEADER}resolvConf: resolv.conf\n`, { data: { 'resolv.conf': 'nameserver 10.0.0.1\n' } });
    await world.assign('dns');
    await world.until('good', ends('Good'));
  });
});
