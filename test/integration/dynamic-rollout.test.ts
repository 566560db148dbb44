import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { interrupted } from '../../src/base/errors.ts';
import { runCli } from '../../src/cli/run.ts';
import { clusterUnreachable } from '../../src/kube/cluster-problems.ts';
import { createServices } from '../../src/wiring.ts';
import { TextSink } from '../support/run-cli.ts';
import { type AgentFleet, agentFleet } from '../support/stand-in-agents.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

let directory: string;
let fleet: AgentFleet;
let abort: AbortController;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dynamic-rollout-'));
  writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
  abort = new AbortController();
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const dynamic = (...argv: readonly string[]) => dynamicFrom('alice@ws1', ...argv);

/** Runs `dynamic ...` as an operator on a new host: no files remain from one run to the next. */
async function dynamicFrom(name: string, ...argv: readonly string[]) {
  const home = mkdtempSync(join(directory, 'home-'));
  const [stdout, stderr] = [new TextSink(), new TextSink()];
  const services = createServices({
    env: { PATH: process.env.PATH ?? '', HOME: home, KUBECONFIG: join(directory, 'admin.conf') },
    stdin: Readable.from(['']),
    stdout,
    stderr,
    signal: abort.signal,
  });
  const touching = {
    self: { ...services.self, name },
    clock: fleet.clock,
    connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }),
  };
  const code = await runCli(['dynamic', ...argv], { ...services, ...touching }, '0.0.0-test');
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** Creates a ConfigMap with a payload, and returns its assignment. */
async function push(maxPods: number): Promise<string> {
  const path = join(directory, 'kubelet.yaml');
  writeFileSync(path, `${HEADER}maxPods: ${maxPods}\n`);
  return (await dynamic('push', path)).stdout.trim();
}

const nameOf = (source: string): string => source.split('/')[1] ?? '';
/** The names of the ConfigMaps that record the changes of rollouts. */
const records = async (): Promise<readonly string[]> => {
  const { items } = await fleet.cluster.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system' });
  return items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('rollout-'));
};
const batchesIn = (stderr: string): readonly string[] => [...stderr.matchAll(/^(?:rollback, )?batch .*$/gm)].map(([line]) => line);
const NODES = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'];

describe('dynamic assign of many nodes', () => {
  it.each(['good', 'trial'])('requires that the API server reaches each kubelet as before (--wait %s)', async (wait) => {
    fleet = await agentFleet(['n1', 'n2', 'n3']);
    const answer = { status: 200, body: { kubeletconfig: {} } };
    const [loopback, good] = [await push(51), await push(50)];
    const runs = (node: string): string | undefined => fleet.runs()[node];
    for (const node of ['n1', 'n2']) fleet.cluster.proxyNode(node, () => (runs(node) === nameOf(loopback) ? 'down' : answer));
    const options = ['--skip-validation', '--wait', wait, '-v', '1'];
    const refused = await dynamic('assign', 'n1', 'n2', '--configmap', loopback, '--on-failure', 'revert', ...options);
    expect(refused.stderr).toContain('n1: the API server no longer reaches the kubelet, so kubectl logs, kubectl exec and metrics fail');
    expect([refused.code, fleet.runs()]).toEqual([5, { n1: 'local', n2: 'local', n3: 'local' }]);
    const accepted = await dynamic('assign', 'n1', 'n2', 'n3', '--configmap', good, ...options);
    expect(accepted.code).toBe(0);
    expect(accepted.stderr).toContain('n3 the connection from the API server to the kubelet is not checked: cannot get');
    expect(accepted.stderr).not.toContain('n1 the connection');
    const late = await push(52);
    let since: number | null = null;
    fleet.cluster.proxyNode('n1', () => {
      if (runs('n1') !== nameOf(late)) return answer;
      since ??= fleet.elapsedSeconds;
      return fleet.elapsedSeconds - since < 30 ? 'down' : answer;
    });
    expect((await dynamic('assign', 'n1', '--configmap', late, ...options)).code).toBe(0);
  });

  it('proceeds zone by zone, with a canary by label and the control plane last, as planned', async () => {
    fleet = await agentFleet(NODES);
    const zones = { n1: 'b', n2: 'a', n3: 'b', n4: 'a', n5: 'b', n6: 'a' };
    for (const [name, zone] of Object.entries(zones)) {
      const more = name === 'n3' ? { pool: 'edge' } : name === 'n1' ? { 'node-role.kubernetes.io/control-plane': '' } : {};
      const labels = { 'topology.kubernetes.io/zone': zone, ...more };
      await fleet.cluster.patch({ apiVersion: 'v1', kind: 'Node', name }, 'merge', { metadata: { labels } });
    }
    const source = await push(50);
    const argv = ['assign', ...NODES, '--configmap', source, '--canary', 'pool=edge', '--order', 'zone', '--max-unavailable', '2'];
    const planned = await dynamic(...argv, '--dry-run', '-o', 'json');
    const steps = [...planned.stdout.matchAll(/"reason":\s*"(batch [0-9])[^"]*"/g)].map(([, batch]) => batch);
    expect(steps).toEqual(['batch 1', 'batch 2', 'batch 2', 'batch 3', 'batch 4', 'batch 5']);
    const { code, stderr } = await dynamic(...argv);
    expect(code, stderr).toBe(0);
    expect(batchesIn(stderr)).toEqual([
      'batch 1 (canary), 1 node: n3',
      'batch 2, 2 nodes: n2, n4',
      'batch 3, 1 node: n6',
      'batch 4, 1 node: n5',
      'batch 5, 1 node: n1',
    ]);
    // A node with the assignment does not replace the named canary.
    const next = await push(51);
    expect((await dynamic('assign', 'n2', '--configmap', next)).code).toBe(0);
    const rest = await dynamic('assign', ...NODES, '--configmap', next, '--canary', 'n3', '--dry-run', '-o', 'json');
    expect([...rest.stdout.matchAll(/"reason":\s*"(batch 1[^:]*):/g)].map(([, batch]) => batch)).toEqual(['batch 1, canary']);
    const unknown = await dynamic('assign', ...NODES, '--configmap', source, '--canary', 'n9');
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('--canary n9: no selected node has this name or label')]);
  });

  it('proceeds batch by batch, the canary first', async () => {
    fleet = await agentFleet(NODES);
    const source = await push(50);
    const { code, stdout, stderr } = await dynamic('assign', ...NODES, '--configmap', source, '--max-unavailable', '2', '--wait', 'good');
    expect(stderr).not.toContain('ROLLOUT_');
    expect([code, stdout]).toEqual([0, '6 nodes: 6 changed.\n']);
    expect(batchesIn(stderr)).toEqual([
      'batch 1 (canary), 1 node: n1',
      'batch 2, 2 nodes: n2, n3',
      'batch 3, 2 nodes: n4, n5',
      'batch 4, 1 node: n6',
    ]);
    expect(fleet.mostUnavailable()).toBe(2);
    expect(new Set(Object.values(fleet.runs()))).toEqual(new Set([nameOf(source)]));
    // Four trials of ten minutes, one after the other.
    expect(fleet.elapsedSeconds).toBeGreaterThan(2400);
    const again = await dynamic('assign', ...NODES, '--configmap', source);
    expect([again.code, again.stdout, batchesIn(again.stderr)]).toEqual([0, '6 nodes: 6 unchanged.\n', []]);
    expect([...fleet.restarts.values()]).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('selects nodes by label, and reports each step as an Event', async () => {
    fleet = await agentFleet(NODES);
    const source = await push(50);
    const { code, stdout, stderr } = await dynamic('assign', '--selector', 'pool=odd', '--configmap', source, '-o', 'json');
    expect([code, stderr]).toEqual([0, '']);
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.filter(({ code: what }) => what === 'ROLLOUT_BATCH').map(({ data }) => data)).toEqual([
      { batch: 1, nodes: ['n2'], canary: true, down: [] },
      { batch: 2, nodes: ['n4'], canary: false, down: [] },
      { batch: 3, nodes: ['n6'], canary: false, down: [] },
    ]);
    expect(events.filter(({ code: what }) => what === 'ROLLOUT_NODE').map(({ host, data }) => [host, data.stage, data.node.state])).toEqual(
      [
        ['n2', 'changed', 'trial'],
        ['n4', 'changed', 'trial'],
        ['n6', 'changed', 'trial'],
      ],
    );
    expect(events.at(-1)).toMatchObject({
      code: 'ROLLOUT_ENDED',
      message: '3 nodes: 3 changed.',
      data: { items: [{ node: 'n2' }, {}, {}] },
    });
    expect(fleet.runs()).toMatchObject({ n1: 'local', n2: nameOf(source), n3: 'local' });
  });

  it('selects nodes by group of a fleet file', async () => {
    fleet = await agentFleet(NODES);
    const path = join(directory, 'fleet.yaml');
    const hosts = ['  - name: n1', '  - name: host-2', '    nodeName: n2', '    groups: [edge]', '  - name: n3', '    groups: [edge]'];
    writeFileSync(
      path,
      ['apiVersion: kubeletadm.dev/v1alpha1', 'kind: Fleet', 'groups:', '  - name: edge', 'hosts:', ...hosts, ''].join('\n'),
    );
    const source = await push(50);
    const { code, stderr } = await dynamic('assign', '--group', 'edge', '-f', path, '--configmap', source);
    expect([code, stderr]).toEqual([0, expect.stringContaining('batch 2, 1 node: n3')]);
    expect(fleet.runs()).toMatchObject({ n1: 'local', n2: nameOf(source), n3: nameOf(source) });
  });

  it('plans the batches without any change', async () => {
    fleet = await agentFleet(NODES);
    await fleet.setReady('n2', false);
    const source = await push(50);
    const { code, stdout } = await dynamic(
      'assign',
      ...NODES,
      '--configmap',
      source,
      '--max-unavailable',
      '50%',
      '--dry-run',
      '--exit-code',
    );
    expect(code).toBe(6);
    expect([...stdout.matchAll(/~ Node ([^:]*): [^\n]*?(batch [^:]*):/g)].map(([, node, batch]) => `${node}: ${batch}`)).toEqual([
      'n1: batch 1, canary',
      'n3, n4: batch 2',
      'n5, n6: batch 3',
      'n2: batch 4, down now',
    ]);
    const blocked = await dynamic('assign', ...NODES, '--configmap', source, '--dry-run');
    expect([blocked.code, blocked.stderr]).toEqual([
      3,
      expect.stringContaining(
        'rollout stopped: n2 is down, and --max-unavailable allows no more unavailable nodes; 6 nodes were not changed',
      ),
    ]);
    expect(new Set(Object.values(fleet.runs()))).toEqual(new Set(['local']));
  });

  it('stops when the canary rolls back', async () => {
    fleet = await agentFleet(NODES);
    fleet.behaviours.set('maxPods: 60', (seconds) =>
      seconds < 20 ? {} : { unit: { activeState: 'failed', subState: 'failed', restarts: 0 } },
    );
    const source = await push(60);
    const { code, stdout, stderr } = await dynamic('assign', ...NODES, '--configmap', source);
    expect([code, stdout]).toEqual([4, '6 nodes: 1 failed, 5 not started.\n']);
    expect(stderr).toMatch(
      /n1: rolled back: the kubelet exited.*kubectl annotate node n1 --overwrite kubeletadm\.dev\/config-retry=.*\[DYNAMIC_FELL_BACK\]/,
    );
    expect(stderr).toContain(
      'rollout stopped: n1 failed; 5 nodes were not changed. Fix the cause and rerun the command, assign another ConfigMap, or allow more failures with --max-fail. [ROLLOUT_STOPPED]',
    );
    expect([...fleet.restarts.values()]).toEqual([2, 0, 0, 0, 0, 0]);
  });

  it.each([
    ['1', '6 nodes: 5 changed, 1 failed.\n'],
    ['0', '6 nodes: 2 changed, 1 failed, 3 not started.\n'],
  ])('with --max-fail %s and one failed node: %s', async (maxFail, expected) => {
    fleet = await agentFleet(NODES);
    fleet.behaviours.set('maxPods: 61', (_, node) => (node === 'n2' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
    const options = ['--max-unavailable', '2', '--max-fail', maxFail, '--on-failure', 'stop'];
    const { code, stdout, stderr } = await dynamic('assign', ...NODES, '--configmap', await push(61), ...options);
    expect([code, stdout]).toEqual([4, expected]);
    expect(stderr.includes('ROLLOUT_STOPPED')).toBe(maxFail === '0');
  });

  it('changes no node while the kubelet of a failed one starts again', async () => {
    fleet = await agentFleet(NODES.slice(0, 4));
    fleet.behaviours.set('maxPods: 66', (_, node) => (node === 'n2' ? { healthz: { ok: false, why: 'connection refused' } } : {}));
    const options = ['--max-fail', '2', '--min-ready', '2s'];
    const { stderr, stdout } = await dynamic('assign', ...NODES.slice(0, 4), '--configmap', await push(66), ...options);
    expect(stderr).toContain('n2: rolled back: ');
    expect([...stderr.matchAll(/^waiting \d+ s for (.*)$/gm)].map(([, what]) => what)).toEqual([
      'n2: its kubelet may be restarting after a failure',
    ]);
    expect(fleet.mostUnavailable()).toBe(1);
    expect(stdout).toBe('4 nodes: 3 changed, 1 failed.\n');
  });

  it('stops when a node of a finished batch rolls back', async () => {
    fleet = await agentFleet(NODES);
    // Its kubelet crashes after the canary was confirmed, while the second batch is in progress.
    fleet.behaviours.set('maxPods: 60', (seconds, node) =>
      node === 'n1' && seconds > 45 ? { healthz: { ok: false, why: 'answers 500' } } : {},
    );
    const source = await push(60);
    const { code, stdout, stderr } = await dynamic('assign', ...NODES, '--configmap', source, '--max-unavailable', '2');
    expect([code, stdout]).toEqual([4, '6 nodes: 2 changed, 1 failed, 3 not started.\n']);
    expect(stderr).toMatch(/n1: rolled back: .*answers 500/);
  });

  it('restores the previous assignments, failed nodes first, within the limit of nodes changed at once', async () => {
    fleet = await agentFleet(NODES);
    const good = await push(50);
    await dynamic('assign', 'n1', 'n2', 'n3', '--configmap', good, '--wait', 'good');
    fleet.behaviours.set('maxPods: 60', (_, node) => (node === 'n4' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
    const bad = await push(60);
    const { code, stdout, stderr } = await dynamic(
      ...['assign', ...NODES, '--configmap', bad, '--max-unavailable', '2', '--on-failure', 'revert', '--min-ready', '5s'],
    );
    expect([code, stdout]).toEqual([5, '6 nodes: 5 rolled back, 1 not started.\n']);
    expect(batchesIn(stderr)).toEqual([
      'batch 1 (canary), 1 node: n1',
      'batch 2, 2 nodes: n2, n3',
      'batch 3, 2 nodes: n4, n5',
      'rollback, batch 1, 1 node: n4; down: n4',
      'rollback, batch 2, 1 node: n1; down: n4',
      'rollback, batch 3, 2 nodes: n2, n3',
      'rollback, batch 4, 1 node: n5',
    ]);
    expect(stderr).toContain('n4: rolled back: ');
    expect(stderr).toContain('rollout stopped: n4 failed; 1 node was not changed.');
    const had = nameOf(good);
    expect(fleet.runs()).toEqual({ n1: had, n2: had, n3: had, n4: 'local', n5: 'local', n6: 'local' });
    expect(fleet.mostUnavailable()).toBe(2);
    expect((await dynamic('status')).stdout).not.toContain(nameOf(bad));
  });

  it('resumes after Ctrl-C, and restores also the changes of the first run', async () => {
    fleet = await agentFleet(NODES);
    fleet.behaviours.set('maxPods: 60', (_, node) => (node === 'n5' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
    const source = await push(60);
    fleet.plan.set(fleet.elapsedSeconds + 50, () => abort.abort(interrupted('SIGINT')));
    const first = await dynamic('assign', ...NODES, '--configmap', source, '--on-failure', 'revert');
    expect([first.code, first.stderr]).toEqual([130, expect.stringContaining('Rerun the same command to resume')]);
    expect(first.stderr).toContain('n2 is being changed and will finish without this command');
    expect(fleet.runs()).toMatchObject({ n1: nameOf(source), n2: nameOf(source), n3: 'local' });
    abort = new AbortController();
    const second = await dynamic('assign', ...NODES, '--configmap', source, '--on-failure', 'revert');
    // n1 is already a canary, n2 is in progress; n5 fails, and n1 and n2 get their assignments before the
    // first run.
    expect(batchesIn(second.stderr).slice(0, 3)).toEqual(['batch 1, 1 node: n3', 'batch 2, 1 node: n4', 'batch 3, 1 node: n5']);
    expect([second.code, second.stdout]).toEqual([5, '6 nodes: 5 rolled back, 1 not started.\n']);
    expect(new Set(Object.values(fleet.runs()))).toEqual(new Set(['local']));
    expect(fleet.restarts.get('n1')).toBe(2);
  });

  it('is resumed from another host after it was killed, and restores the changes of the first run', async () => {
    fleet = await agentFleet(NODES.slice(0, 4));
    const good = await push(50);
    await dynamic('assign', 'n1', 'n2', '--configmap', good);
    const bad = await push(60);
    fleet.behaviours.set('maxPods: 60', (_, node) => (node === 'n4' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
    fleet.plan.set(fleet.elapsedSeconds + 85, () => abort.abort(interrupted('SIGTERM')));
    await dynamicFrom('alice@ws1', 'assign', ...NODES.slice(0, 4), '--configmap', bad);
    expect(fleet.runs()).toEqual({ n1: nameOf(bad), n2: nameOf(bad), n3: nameOf(bad), n4: 'local' });
    abort = new AbortController();
    const resumed = ['assign', ...NODES.slice(0, 4), '--configmap', bad, '--on-failure', 'revert'];
    const { code, stdout, stderr } = await dynamicFrom('bob@ws2', ...resumed);
    expect(stderr).toContain('n4 rolled back');
    expect(fleet.runs()).toEqual({ n1: nameOf(good), n2: nameOf(good), n3: 'local', n4: 'local' });
    expect([code, stdout]).toEqual([5, '4 nodes: 4 rolled back.\n']);
    // Finished rollouts are no longer recorded.
    expect(await records()).toEqual([]);
  });

  it('does not claim that all is restored when the previous assignment of a failed node is unknown', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const bad = await push(60);
    await dynamic('assign', 'n1', '--configmap', bad, '--wait', 'none');
    await fleet.pass(30);
    // The node fails during the rollout; its assignment was made by something that left no record.
    fleet.behaviours.set('maxPods: 60', (_, node) =>
      node === 'n1' && fleet.elapsedSeconds > 60 ? { healthz: { ok: false, why: 'answers 500' } } : {},
    );
    const { code, stdout } = await dynamic('assign', 'n1', 'n2', '--configmap', bad, '--on-failure', 'revert', '--min-ready', '60s');
    expect([code, stdout]).toEqual([4, '2 nodes: 1 rolled back, 1 failed.\n']);
  });

  it('reports at once that another operator replaced an assignment, and keeps that assignment', async () => {
    fleet = await agentFleet(NODES.slice(0, 4));
    const [mine, other] = [await push(60), await push(70)];
    const started = fleet.elapsedSeconds;
    let second: Awaited<ReturnType<typeof dynamic>> | null = null;
    fleet.plan.set(started + 45, async () => {
      second = await dynamicFrom('bob@ws2', 'assign', 'n1', 'n2', '--configmap', other, '--wait', 'none');
    });
    const { code, stdout, stderr } = await dynamic('assign', ...NODES.slice(0, 4), '--configmap', mine, '--on-failure', 'revert');
    expect(second).toMatchObject({ code: 0 });
    expect(fleet.elapsedSeconds).toBeLessThan(started + 120);
    expect(stderr).toMatch(
      new RegExp(
        `n1, n2 \\(2\\): ${other} was assigned by bob@ws2 at 2030-\\S+Z, but this command expected ${mine}\\. The assignment was not changed.*\\[ASSIGNMENT_REPLACED\\]`,
      ),
    );
    expect(fleet.runs()).toEqual({ n1: nameOf(other), n2: nameOf(other), n3: 'local', n4: 'local' });
    expect([code, stdout]).toEqual([4, '4 nodes: 2 replaced, 2 not started.\n']);
  });

  it('never reverts an assignment that another operator made at the last moment', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const [mine, other] = [await push(60), await push(70)];
    fleet.behaviours.set('maxPods: 60', (_, node) => (node === 'n2' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
    // Between the last read of n1 and the patch that would revert it; by kubectl, which leaves no annotation.
    const { patch } = fleet.cluster;
    fleet.cluster.patch = async (ref, type, body, options) => {
      const text = JSON.stringify(body);
      if (ref.name === 'n1' && text.includes('"kubeletadm.dev/config-source":null')) {
        fleet.cluster.patch = patch;
        const [namespace, name, kubeletConfigKey] = other.split('/');
        const source = JSON.stringify({ configMap: { namespace, name, kubeletConfigKey } });
        await patch(ref, 'merge', { metadata: { annotations: { 'kubeletadm.dev/config-source': source } } });
      }
      return patch(ref, type, body, options);
    };
    const { code, stdout, stderr } = await dynamic('assign', 'n1', 'n2', '--configmap', mine, '--on-failure', 'revert');
    await fleet.pass(5);
    expect(fleet.runs()).toEqual({ n1: nameOf(other), n2: 'local' });
    expect(stderr).toContain(`n1: ${other} was assigned by an unknown client, but this command expected ${mine}`);
    expect([code, stdout]).toEqual([4, '2 nodes: 1 rolled back, 1 replaced.\n']);
  });

  it('starts no rollout that it could not revert', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const source = await push(60);
    const refused = () => Object.assign(clusterUnreachable('https://cluster.test:6443', 'read-only', 'Wait'));
    const { create } = fleet.cluster;
    fleet.cluster.create = async (object) => {
      if (object.metadata.name.startsWith('rollout-')) throw refused();
      return create(object);
    };
    const strict = await dynamic('assign', 'n1', 'n2', '--configmap', source, '--on-failure', 'revert');
    expect([strict.code, fleet.runs()]).toEqual([4, { n1: 'local', n2: 'local' }]);
    const lenient = await dynamic('assign', 'n1', 'n2', '--configmap', source);
    expect([lenient.code, lenient.stderr]).toEqual([0, expect.stringContaining('[ROLLOUT_NOT_RECORDED]')]);
  });

  it('counts nodes that are already down, processes them last, and reports those that did not return', async () => {
    fleet = await agentFleet(NODES);
    await fleet.setReady('n2', false);
    const source = await push(50);
    fleet.plan.set(fleet.elapsedSeconds + 60, () => fleet.setReady('n5', false));
    fleet.plan.set(fleet.elapsedSeconds + 80, () => fleet.setReady('n5', true));
    const { code, stdout, stderr } = await dynamic('assign', ...NODES, '--configmap', source, '--max-unavailable', '3');
    expect(batchesIn(stderr)).toEqual([
      'batch 1 (canary), 1 node: n1; down: n2',
      'batch 2, 2 nodes: n3, n4; down: n2',
      'batch 3, 1 node: n6; down: n2, n5',
      'batch 4, 1 node: n5; down: n2',
      'batch 5, 1 node: n2; down: n2',
    ]);
    expect([code, stdout]).toEqual([4, '6 nodes: 5 changed, 1 unreachable.\n']);
    expect(stderr).toMatch(/n2: waiting: .*Ready is Unknown/);
    expect(fleet.mostUnavailable()).toBe(3);
    // The node has the assignment when it returns.
    await fleet.setReady('n2', true);
    await fleet.pass(5);
    expect(fleet.runs().n2).toBe(nameOf(source));
  });

  it('changes nothing when the nodes that are down use up the limit', async () => {
    fleet = await agentFleet(NODES);
    await fleet.setReady('n2', false);
    const source = await push(50);
    const { code, stderr } = await dynamic('assign', ...NODES, '--configmap', source);
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining(
        'rollout stopped: n2 is down, and --max-unavailable allows no more unavailable nodes; 6 nodes were not changed',
      ),
    ]);
    // A rollout of this node alone may assign the configuration that repairs it.
    fleet.plan.set(fleet.elapsedSeconds + 20, () => fleet.setReady('n2', true));
    expect((await dynamic('assign', 'n2', '--configmap', source)).code).toBe(0);
  });

  it('survives an API server outage and a deleted node', async () => {
    fleet = await agentFleet(NODES);
    const source = await push(50);
    const away = (): void => {
      for (const call of ['watch Node', ...Array.from({ length: 5 }, () => 'list Node')])
        fleet.cluster.failNext(call, clusterUnreachable('https://cluster.test:6443', 'connection refused', 'Wait'));
      fleet.cluster.endWatches();
    };
    fleet.plan.set(fleet.elapsedSeconds + 20, async () => {
      await fleet.cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'n4' });
    });
    fleet.plan.set(fleet.elapsedSeconds + 40, away);
    const { code, stdout, stderr } = await dynamic('assign', ...NODES, '--configmap', source);
    expect([code, stdout]).toEqual([4, '6 nodes: 5 changed, 1 unreachable.\n']);
    expect(stderr).toContain('the API server is reachable again');
  });

  it('records the operator and the reason of an assignment, and shows both', async () => {
    fleet = await agentFleet(NODES);
    const source = await push(50);
    const { code } = await dynamic('assign', 'n1', 'n2', '--configmap', source, '--reason', 'OPS-7: fewer pods');
    expect(code).toBe(0);
    await dynamic('assign', 'n3', '--configmap', source, '--wait', 'none', '--reason', 'OPS-8');
    const wide = await dynamic('status', 'n1', 'n3', '-o', 'wide');
    expect(wide.stdout).toMatch(/^n1 .* alice@ws1 +OPS-7: fewer pods$/m);
    expect(wide.stdout).toMatch(/^n3 .* alice@ws1 +OPS-8$/m);
    const [item] = JSON.parse((await dynamic('status', 'n2', '-o', 'json')).stdout).items;
    expect(item.assignedBy).toMatchObject({ by: 'alice@ws1', reason: 'OPS-7: fewer pods' });
    const history = await dynamic('history', 'n1');
    expect(history.stdout).toContain(`alice@ws1 assigned ${source} (OPS-7: fewer pods)`);
    expect((await dynamic('history', 'n4')).stdout).toContain('No change found');
    await dynamic('reset', 'n1', '--reason', 'undo');
    expect((await dynamic('history', 'n1')).stdout).toContain('alice@ws1 removed the assignment (undo)');
  });

  it('assigns without permission to create Events', async () => {
    fleet = await agentFleet(NODES);
    const source = await push(50);
    fleet.cluster.create = async () => {
      throw clusterUnreachable('https://cluster.test:6443', 'refused', 'Wait');
    };
    const { code, stderr } = await dynamic('assign', 'n1', '--configmap', source, '-v', '1');
    expect([code, stderr]).toEqual([0, expect.stringContaining('cannot create an Event for Node n1')]);
  });

  it('resets batch by batch', async () => {
    fleet = await agentFleet(NODES);
    const source = await push(50);
    await dynamic('assign', ...NODES, '--configmap', source, '--wait', 'none');
    await fleet.pass(5);
    const { code, stderr } = await dynamic('reset', '--selector', 'pool in (even,odd)', '--max-unavailable', '3');
    expect([code, batchesIn(stderr)]).toEqual([
      0,
      ['batch 1 (canary), 1 node: n1', 'batch 2, 3 nodes: n[2:4]', 'batch 3, 2 nodes: n5, n6'],
    ]);
    expect(new Set(Object.values(fleet.runs()))).toEqual(new Set(['local']));
  });

  it("rejects a ConfigMap that a node's agent may not read, before the first assignment", async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const source = await push(50);
    const annotations = { 'kubeletadm.dev/config-namespace': 'edge' };
    await fleet.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n2' }, 'merge', { metadata: { annotations } });
    const refused = await dynamic('assign', 'n1', 'n2', '--configmap', source);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain(
      `n2: ConfigMap ${source} cannot be assigned: the agent of the node may read only ConfigMaps of namespace edge`,
    );
    expect(refused.stderr).toContain('dynamic push FILE --namespace edge');
    await fleet.pass(5);
    expect(fleet.runs()).toEqual({ n1: 'local', n2: 'local' });
    // The agent may read ConfigMaps in the namespace of `dynamic push`.
    await fleet.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'edge' } });
    const path = join(directory, 'edge.yaml');
    writeFileSync(path, `${HEADER}maxPods: 51\n`);
    expect((await dynamic('assign', 'n2', '--file', path, '-n', 'edge', '--wait', 'none')).code).toBe(0);
    expect((await dynamic('assign', 'n1', '--configmap', source, '--wait', 'none')).code).toBe(0);
  });

  it.each([
    [['assign', '--configmap', 'kube-system/a'], 'no node was selected'],
    [['assign', 'n1', '--selector', 'a=b', '--configmap', 'kube-system/a'], 'the nodes are selected in more than one way'],
    [['assign', '--selector', 'pool=none', '--configmap', 'kube-system/a'], '--selector pool=none: no Node matches'],
    [
      ['assign', 'n1', '--configmap', 'kube-system/a', '--max-unavailable', '0'],
      '--max-unavailable 0 must be a number of nodes (1 or more)',
    ],
    [['assign', 'n1', '--configmap', 'kube-system/a', '--max-unavailable', '120%'], '--max-unavailable 120% must be a number'],
    [
      ['assign', 'n1', '--configmap', 'kube-system/a', '--canary', '120%'],
      '--canary 120% must be a number of nodes (0 or more) or a percentage (0% to 100%)',
    ],
    [['assign', 'n1', '--configmap', 'kube-system/a', '--min-ready', '5'], '--min-ready 5 is not a valid duration'],
    [['assign', 'n1', '--configmap', 'kube-system/a', '--wait', 'none', '--canary', '1'], '--canary cannot be combined with --wait none'],
  ])('rejects %j', async (argv, reported) => {
    fleet = await agentFleet(['n1']);
    const { code, stderr } = await dynamic(...argv);
    expect([code, stderr]).toEqual([2, expect.stringContaining(reported)]);
  });
});
