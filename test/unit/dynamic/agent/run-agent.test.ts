import { afterEach, describe, expect, it } from 'vitest';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { stateFiles } from '../../../../src/kubelet/node-agent/layout.ts';
import { HEADER, newWorld, payload, type World, type WorldOptions } from './world.ts';

let world: World;
const begin = (options?: WorldOptions): World => {
  world = newWorld(options);
  world.start();
  return world;
};
afterEach(() => world.stop());

const reason = async (): Promise<string> => (await world.condition()).reason as string;
const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;

describe('an agent', () => {
  it('reports that nothing is assigned, then sends no further requests', async () => {
    begin();
    await world.until('local is reported', async () => (await reason()) === 'Local');
    const calls = world.asNode.calls.length;
    const trips = world.host.roundTrips;
    for (let i = 0; i < 500; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(world.asNode.calls.slice(calls).filter((call) => !call.startsWith('get Node'))).toEqual([]);
    expect(world.host.roundTrips).toBe(trips);
    expect(world.starts()).toBe(0);
  });

  it('makes an assignment good with one restart', async () => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it is in trial', phase('trial'));
    expect(world.runs()).toBe(50);
    await world.until('it is good', phase('good'));
    await world.until('the state is reported', async () => (await reason()) === 'Good');
    expect(world.starts()).toBe(1);
    expect(world.clock.elapsedMs).toBeGreaterThan(600_000);
    const identity = expect.objectContaining({ configMap: expect.objectContaining({ name: 'a', namespace: 'kubeletadm-system' }) });
    expect(await world.status()).toEqual({ assigned: identity, active: identity, lastKnownGood: identity });
    expect((await world.condition()).message).toContain('maxPods from 110 to 50');
    await world.until('events', async () => (await world.events()).length === 2);
    expect((await world.events()).map((text) => text.split(':')[0]).sort()).toEqual(['KubeletConfigChanged', 'KubeletConfigGood']);
  });

  it('keeps every key of the ConfigMap, also of a version that changes nothing on this node', async () => {
    begin();
    const other = (maxPods: number): string =>
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: ${maxPods}\n`;
    await world.push('a', payload(50), { data: { 'kubelet.node.other': other(5), notes: 'from OPS-7' } });
    await world.assign('a');
    await world.until('it is in trial', phase('trial'));
    const keys = (): Readonly<Record<string, string>> =>
      Object.fromEntries(
        Object.entries(world.host.texts()).flatMap(([path, text]) =>
          path.includes('/..data/') ? [[path.split('/..data/')[1], text]] : [],
        ),
      );
    expect(keys()).toEqual({ kubelet: payload(50), 'kubelet.node.other': other(5), notes: 'from OPS-7' });
    await world.edit('a', { data: { 'kubelet.node.other': other(6), notes: null } });
    await world.until('the new version is stored', () => keys()['kubelet.node.other'] === other(6));
    expect(Object.keys(keys()).sort()).toEqual(['kubelet', 'kubelet.node.other']);
    expect(world.starts()).toBe(1);
  });

  it.each(['v1.24.17', 'v1.32.4', 'v1.33.0', 'v1.36.2'])(
    'makes an assignment of a kubelet %s good and rolls back a bad one, with the credential of the kubelet',
    async (version) => {
      begin({ version, timing: { trialMs: 60_000 } });
      world.behaviours.set(60, { crashesAfter: 5 });
      world.behaviours.set(61, { lockedOut: true });
      await world.push('a', payload(50));
      await world.assign('a');
      await world.until('it runs', phase('trial'));
      await world.until('the state is reported', async () => (await reason()) === 'Trial');
      await world.until('it is good', phase('good'));
      for (const [name, pods, cause] of [
        ['crash', 60, 'the kubelet exited: '],
        ['locked', 61, 'the kubelet API no longer accepts the credential of this node: '],
      ] as const) {
        await world.push(name, payload(pods));
        await world.assign(name);
        await world.until(
          'the agent rolls back',
          async () => phase('fallen-back')() && JSON.stringify(await world.status()).includes(name),
        );
        await world.until('the state is reported', async () => (await world.condition()).message?.toString().includes(cause) === true);
        expect(world.runs()).toBe(50);
      }
      await world.until('the active configuration is reported', async () =>
        JSON.stringify((await world.status()).active).includes('"name":"a"'),
      );
      // Every request is allowed for a kubelet.
      expect(world.asNode.calls.filter((call) => /proxy|token|Secret/.test(call))).toEqual([]);
    },
  );

  it('reports a configuration as active only after observing the process with it', async () => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    const seen: string[] = [];
    await world.until('the state is reported', async () => {
      const { active } = await world.status();
      const { reason: reported } = await world.condition();
      seen.push(`${active === undefined ? 'local' : 'a'} ${String(reported)} ${world.runs()}`);
      return active !== undefined;
    });
    expect(seen.filter((line) => line.startsWith('a') && !line.endsWith(' 50'))).toEqual([]);
  });

  it('does not verify a kubelet whose configuration was written after its start', async () => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it runs', () => world.runs() === 50);
    await world.stop();
    const path = [...world.host.files.keys()].find((name) => name.endsWith('/kubelet.yaml')) ?? '';
    const file = world.host.files.get(path);
    if (file === undefined) throw new Error('no checkpoint');
    // The same content, with a modification time one second after the start of the kubelet.
    world.host.files.set(path, { ...file, modifiedAt: Math.floor(world.clock.now().getTime() / 1000) + 1 });
    const at = world.clock.elapsedMs;
    world.start();
    await world.until('time passes', () => world.clock.elapsedMs > at + 120_000);
    expect(world.state?.phase).toBe('trial');
    await world.until('the reason is reported', async () =>
      String((await world.condition()).message).includes('the configuration file of the kubelet was written after the kubelet was started'),
    );
  });

  it('returns to local when the assignment is removed', async () => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it is in trial', phase('trial'));
    await world.assign(null);
    await world.until('it is local', phase('local'));
    expect(world.runs()).toBe(110);
    await world.until('the state is reported', async () => JSON.stringify(await world.status()) === '{}');
  });

  it.each([
    [
      'it crashes at startup',
      { crashesAfter: 0, logs: 'failed to run Kubelet: open /no/cert: no such file or directory' },
      'the kubelet exited: ',
    ],
    ['it crashes after 5 s', { crashesAfter: 5 }, 'the kubelet exited: '],
    ['it crashes after 30 s', { crashesAfter: 30 }, 'the kubelet exited: '],
    ['it crashes after 90 s', { crashesAfter: 90 }, 'the kubelet exited: '],
    ['it crashes near the end of the trial', { crashesAfter: 500 }, 'the kubelet exited: '],
    ['healthz returns 500', { healthz: 500 }, 'healthz: returned 500'],
    ['it is not Ready', { notReady: true }, 'the Node is not Ready: Ready is False: KubeletNotReady'],
    ['the disk fills', { pressure: 'DiskPressure' }, 'the Node has DiskPressure'],
    ['memory runs out', { pressure: 'MemoryPressure' }, 'the Node has MemoryPressure'],
    ['configz differs', { configz: { maxPods: 7 } }, 'the kubelet does not use the new value of maxPods'],
  ] as const)('falls back to the last known good when %s', async (_, behaviour, cause) => {
    begin();
    world.behaviours.set(60, behaviour);
    await world.push('a', payload(50));
    await world.push('b', payload(60));
    await world.assign('a');
    await world.until('a is good', phase('good'));
    await world.assign('b');
    await world.until('the agent rolls back', phase('fallen-back'));
    expect(world.runs()).toBe(50);
    const [, started = 0, back = 0] = world.startTimes;
    expect(back - started).toBeLessThan(('crashesAfter' in behaviour ? behaviour.crashesAfter * 1000 : 0) + 60_000);
    await world.until('the state is reported', async () => (await reason()) === 'FallenBack');
    const { message } = await world.condition();
    expect(message).toContain(cause);
    expect(message).toContain('runs the last known good configuration');
    expect((await world.status()).error).toContain('failed to run config: ');
    // Neither an edit of the metadata nor a restart of the agent causes another attempt.
    const starts = world.starts();
    await world.edit('b', { metadata: { labels: { x: 'y' } } });
    await world.stop();
    world.start();
    await world.until(
      'the new version is reported',
      async () => JSON.stringify((await world.status()).assigned) !== '{}' && phase('fallen-back')(),
    );
    expect(world.starts()).toBe(starts);
    expect(world.runs()).toBe(50);
  });

  it.each([
    ['unparsable', '{0xdeadbeef}', 'failed to load config, see Kubelet log for details'],
    ['invalid', `${HEADER}kubeAPIQPS: -1\n`, 'failed to validate config, see Kubelet log for details'],
    ['known to crash', `${HEADER}evictionHard: {memory.available: lots}\n`, 'failed to validate config, see Kubelet log for details'],
  ])('does not restart the kubelet for a payload that is %s', async (_, text, error) => {
    begin();
    await world.push('a', text);
    await world.assign('a');
    await world.until('it is refused', async () => (await reason()) === 'Rejected');
    expect((await world.status()).error).toBe(error);
    expect(world.starts()).toBe(0);
    await world.edit('a', { data: { kubelet: payload(50) } });
    await world.until('the fixed one runs', phase('trial'));
    expect(world.runs()).toBe(50);
    await world.until('no error', async () => (await world.status()).error === undefined);
  });

  it('does not restart for 100 edits of metadata, and restarts once for each edit of the content', async () => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    for (let i = 0; i < 100; i++) await world.edit('a', { metadata: { annotations: { edit: String(i) } } });
    const { metadata } = (await world.cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name: 'a' })) as {
      readonly metadata: { readonly resourceVersion?: string };
    };
    await world.until('the newest version is reported', async () =>
      JSON.stringify(await world.status()).includes(`"resourceVersion":"${metadata.resourceVersion}"`),
    );
    expect(world.starts()).toBe(1);
    await world.edit('a', { data: { kubelet: payload(51) } });
    await world.until('the edit runs', () => world.runs() === 51);
    expect(world.starts()).toBe(2);
  });

  it('waits for a missing ConfigMap, keeps the configuration when it is deleted, and applies the next', async () => {
    begin();
    await world.assign('a');
    await world.until('the state is reported', async () => (await reason()) === 'Unavailable');
    expect(await world.status()).toEqual({ error: 'failed to sync: failed to download config, see Kubelet log for details' });
    await world.push('a', payload(50));
    await world.until('it runs', phase('trial'));
    await world.remove('a');
    await world.until('the state is reported', async () => (await reason()) === 'Unavailable');
    expect(world.runs()).toBe(50);
    await world.push('a', payload(52));
    await world.until('the next runs', () => world.runs() === 52);
    await world.until('no error', async () => (await world.status()).error === undefined);
  });

  it('starts and rolls back without the API server', async () => {
    begin();
    world.behaviours.set(60, { crashesAfter: 20 });
    await world.push('a', payload(60));
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    await world.stop();
    for (let i = 0; i < 50; i++) world.asNode.failNext('list Node', new Error('away'));
    world.start();
    await world.until('the agent rolls back', phase('fallen-back'));
    expect(world.runs()).toBe(110);
  });

  it('knows after a restart which fields a flag overrides, also while the ConfigMap is missing', async () => {
    begin({ flags: ['--registry-qps=7'] });
    world.behaviours.set(60, { configz: { registryPullQPS: 7 } });
    await world.push('a', payload(60, 'registryPullQPS: 9\n'));
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    await world.stop();
    await world.remove('a');
    world.start();
    await world.until('it is good', phase('good'));
    expect(world.starts()).toBe(1);
  });

  it('reports its status when the API server is reachable again', async () => {
    begin();
    for (let i = 0; i < 5; i++) world.asNode.failNext('patch Node node-1', new Error('away'));
    await world.until('the state is reported', async () => (await reason()) === 'Local');
  });

  it('corrects a modified status', async () => {
    begin();
    await world.until('the state is reported', async () => (await reason()) === 'Local');
    await world.annotate({ 'kubeletadm.dev/config-status': 'nonsense' });
    await world.until('it is corrected', async () => JSON.stringify(await world.status()) === '{}');
  });

  it('runs the assigned configuration in a new trial if both copies of its state are damaged', async () => {
    begin();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it is good', phase('good'));
    await world.stop();
    for (const path of stateFiles(AGENT_DIRECTORY)) {
      const found = world.host.files.get(path);
      if (found !== undefined) world.host.files.set(path, { ...found, content: 'torn' });
    }
    world.start();
    await world.until('it is in trial', phase('trial'));
    await world.until('it is good', phase('good'));
    expect(world.runs()).toBe(50);
  });

  it('refuses changes that its policy forbids until the node is drained', async () => {
    begin({ allow: 'new-pods-only' });
    await world.push('a', payload(110, 'topologyManagerScope: pod\n'));
    await world.assign('a');
    await world.until('it is refused', async () => (await reason()) === 'Rejected');
    expect((await world.condition()).message).toContain('topologyManagerScope (drain');
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'node-1' }, 'merge', { spec: { unschedulable: true } });
    await world.until('it runs', phase('trial'));
  });

  it('delays an edit in place by the spread, but not an assignment', async () => {
    begin({ spreadMs: 10_000 });
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    expect(world.clock.elapsedMs).toBeLessThan(1500);
    await world.edit('a', { data: { kubelet: payload(51) } });
    const edited = world.clock.elapsedMs;
    await world.until('the edit runs', () => world.runs() === 51);
    expect(world.clock.elapsedMs - edited).toBeGreaterThanOrEqual(5_000);
  });

  it('reads an immutable ConfigMap once, and then watches only the Node', async () => {
    begin();
    await world.push('a', payload(50), { immutable: true });
    await world.assign('a');
    await world.until('it runs', phase('trial'));
    expect(world.asNode.calls.filter((call) => call.startsWith('watch'))).toEqual(['watch Node', 'watch Pod']);
    await world.until('it is good', phase('good'));
    const before = world.asNode.calls.length;
    world.asNode.endWatches();
    await world.until('the watches are open again', () => world.asNode.calls.slice(before).includes('watch Node'));
    expect(world.asNode.calls.slice(before).filter((call) => call.startsWith('watch'))).toEqual(['watch Node']);
  });
});
