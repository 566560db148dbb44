import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../../src/base/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { CORDON_ANNOTATION, isCordoned } from '../../src/maintenance/node-hold.ts';
import { drainBudget, drainPod } from '../support/drain-objects.ts';
import { runCommand } from '../support/run-cli.ts';
import { type AgentFleet, agentFleet } from '../support/stand-in-agents.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const catalogue = await loadCatalogue();
const NODES = ['n1', 'n2'];
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

describe('dynamic assign of a change that needs a drained node', () => {
  let directory: string;
  let fleet: AgentFleet;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'dynamic-drain-'));
    writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
    fleet = await agentFleet(NODES);
    const kubeletconfig = effectiveConfiguration({}, { catalogue, minor: 36 });
    for (const node of NODES) {
      fleet.cluster.proxyNode(node, () => ({ status: 200, body: { kubeletconfig } }));
      await fleet.cluster.create(drainPod(`web-${node}`, node));
    }
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const dynamic = (...argv: readonly string[]) =>
    runCommand(['dynamic', ...argv, '--min-ready', '0s', '--kubeconfig', join(directory, 'admin.conf')], {
      services: () => ({ clock: fleet.clock, connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }) }),
    });
  const assign = async (payload: string, ...options: readonly string[]) => {
    const file = join(directory, 'kubelet.yaml');
    writeFileSync(file, `${OVERLAY}${payload}\n`);
    return dynamic('assign', ...NODES, '--file', file, ...options);
  };
  const nodes = async (): Promise<readonly KubeObject[]> => (await fleet.cluster.list({ apiVersion: 'v1', kind: 'Node' })).items;
  const pods = async (): Promise<readonly string[]> =>
    (await fleet.cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' })).items.map(({ metadata }) => metadata.name);
  const assigned = async (): Promise<number> =>
    (await nodes()).filter(({ metadata }) => metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] !== undefined).length;
  const expectServing = async (): Promise<void> => {
    for (const node of await nodes()) {
      expect([isCordoned(node), node.metadata.annotations?.[CORDON_ANNOTATION]]).toEqual([false, undefined]);
      expect(JSON.stringify(node.status)).not.toMatch(/Planned|Drain|Maintenance/);
    }
  };

  /** What a node had when it was assigned, and the largest number of nodes cordoned at the same time. */
  const watchNodes = () => {
    const seen = { assignedCordoned: [] as boolean[], most: 0, plannedAtFirst: [] as string[] };
    const planned = new Set<string>();
    const cordoned = new Set<string>();
    fleet.cluster.store.subscribe(({ object, previous }) => {
      if (object.kind !== 'Node') return;
      if (seen.most === 0 && isCordoned(object)) seen.plannedAtFirst = [...planned].sort();
      if (JSON.stringify(object.status).includes('MaintenancePlanned')) planned.add(object.metadata.name);
      else planned.delete(object.metadata.name);
      if (isCordoned(object)) cordoned.add(object.metadata.name);
      else cordoned.delete(object.metadata.name);
      seen.most = Math.max(seen.most, cordoned.size);
      const sourceOf = (node: KubeObject | null) => node?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];
      if (sourceOf(object) !== sourceOf(previous)) seen.assignedCordoned.push(isCordoned(object));
    });
    return seen;
  };

  it('does not refuse a change for pods that the drain evicts, but for those that stay', async () => {
    await fleet.cluster.create(drainPod('web-2', 'n1'));
    const { code, stderr } = await assign('topologyManagerScope: pod\nmaxPods: 1', '--dry-run');
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('PODS_AT_RISK')]);
    for (const name of ['proxy', 'cni']) await fleet.cluster.create(drainPod(name, 'n1', { of: `DaemonSet/${name}` }));
    const refused = await assign('topologyManagerScope: pod\nmaxPods: 1', '--dry-run');
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('PODS_AT_RISK')]);
    expect((await assign('topologyManagerScope: pod\nmaxPods: 1', '--dry-run', '--allow-pod-loss')).code).toBe(0);
  });

  it('shows the forecast of the drains in the document of a dry run, and warns of those that are blocked', async () => {
    await fleet.cluster.create(drainBudget('pdb', 'web', { maxUnavailable: 0 }));
    const drain = await runCommand(
      ['drain', ...NODES, '--ignore-daemonsets', '--dry-run', '-o', 'json', '--kubeconfig', join(directory, 'admin.conf')],
      { services: () => ({ clock: fleet.clock, connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }) }) },
    );
    const expected = JSON.parse(drain.stdout);
    expect(expected.nodes).toMatchObject([{ state: 'blocked' }, { state: 'blocked' }]);
    const { code, stdout, stderr } = await assign('topologyManagerScope: pod', '--dry-run', '-o', 'json');
    expect([code, JSON.parse(stdout).drainForecast]).toEqual([0, expected]);
    expect(stderr).toMatch(/n1.*cannot be drained: PodDisruptionBudget default\/pdb never allows an eviction.*\[DRAIN_FORECAST\]/);
    const refused = await assign('topologyManagerScope: pod', '--dry-run', '-o', 'json', '--no-drain');
    expect(JSON.parse(refused.stdout)).not.toHaveProperty('drainForecast');
    expect(JSON.parse((await assign('eventRecordQPS: 7', '--dry-run', '-o', 'json')).stdout)).not.toHaveProperty('drainForecast');
  });

  it('refuses it with --no-drain', async () => {
    await fleet.cluster.create(drainPod('web-2', 'n1'));
    const { code, stderr } = await assign('topologyManagerScope: pod\nmaxPods: 1', '--dry-run', '--no-drain');
    expect([code, stderr]).toEqual([3, expect.stringContaining('PODS_AT_RISK')]);
  });

  it('skips a node that others have in maintenance, and continues with the others', async () => {
    const status = { conditions: [{ type: 'MaintenanceInProgress', status: 'True', reason: 'Firmware', message: 'by the hardware team' }] };
    await fleet.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'strategic', { status }, { subresource: 'status' });
    const { code, stdout, stderr } = await assign('topologyManagerScope: pod');
    expect([code, stdout]).toEqual([0, expect.stringContaining('2 nodes: 1 changed, 1 skipped.')]);
    expect(stderr).toContain('n1 warning: skipped: its condition MaintenanceInProgress is True (Firmware: by the hardware team)');
    expect(await assigned()).toBe(1);
  });

  it('drains each node before it is assigned, and returns it to service', async () => {
    const seen = watchNodes();
    const { code, stderr } = await assign('topologyManagerScope: pod');
    expect([code, stderr]).toEqual([0, expect.stringContaining('drained: 1 pod has left')]);
    expect(seen).toEqual({ assignedCordoned: [true, true], most: 1, plannedAtFirst: NODES });
    expect([await pods(), await assigned()]).toEqual([[], 2]);
    await expectServing();
  });

  it('begins no other node if one cannot be uncordoned, and reports the cordon', async () => {
    const { patch } = fleet.cluster;
    fleet.cluster.patch = async (...words) => {
      if (JSON.stringify(words[2]).includes('"unschedulable":null'))
        throw new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' });
      return patch(...words);
    };
    const { code, stderr } = await assign('topologyManagerScope: pod');
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('kubeletadm uncordon n1')]);
    expect(code).not.toBe(0);
    expect([await pods(), await assigned()]).toEqual([['web-n2'], 1]);
  });

  it('drains no node for a change that affects no running pod', async () => {
    const seen = watchNodes();
    expect((await assign('eventRecordQPS: 7')).code).toBe(0);
    expect(seen).toEqual({ assignedCordoned: [false, false], most: 0, plannedAtFirst: [] });
    expect(await pods()).toEqual(['web-n1', 'web-n2']);
  });

  it('assigns no node with --no-drain while pods are on it', async () => {
    const { code, stderr } = await assign('topologyManagerScope: pod', '--no-drain');
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('[NODE_NOT_DRAINED]')]);
    expect(code).not.toBe(0);
    expect([await pods(), await assigned()]).toEqual([['web-n1', 'web-n2'], 0]);
    await expectServing();
  });

  it('names pods that would be lost, and evicts them only with --force-drain', async () => {
    await fleet.cluster.create(drainPod('alone', 'n1', { of: null }));
    const { stderr } = await assign('topologyManagerScope: pod');
    expect(stderr).toContain('no controller creates these pods again: default/alone. Pass --force-drain to lose these pods');
    expect(await pods()).toContain('alone');
    expect((await assign('topologyManagerScope: pod', '--force-drain')).code).toBe(0);
    expect(await pods()).toEqual([]);
    await expectServing();
  });

  it('drains each node for an undo as well, and refuses it with --no-drain', async () => {
    const undo = (...options: readonly string[]) => dynamic('undo', ...NODES, '--yes', ...options);
    expect((await assign('topologyManagerScope: pod\nmaxPods: 1')).code).toBe(0);
    expect((await assign('eventRecordQPS: 7')).code).toBe(0);
    for (const name of ['web-3', 'web-4']) await fleet.cluster.create(drainPod(name, 'n1'));
    const refused = await undo('--no-drain');
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('PODS_AT_RISK')]);
    const planned = await undo('--dry-run', '-o', 'json');
    expect([planned.code, JSON.parse(planned.stdout).drainForecast.nodes]).toMatchObject([0, [{ node: 'n1' }, { node: 'n2' }]]);
    const seen = watchNodes();
    expect((await undo()).code).toBe(0);
    expect(seen).toEqual({ assignedCordoned: [true, true], most: 1, plannedAtFirst: NODES });
    expect(await pods()).toEqual([]);
    await expectServing();
  });

  it('does not undo with --no-drain while pods are on the nodes', async () => {
    expect((await assign('topologyManagerScope: pod')).code).toBe(0);
    expect((await assign('eventRecordQPS: 7')).code).toBe(0);
    await fleet.cluster.create(drainPod('web-3', 'n1'));
    const { code, stderr } = await dynamic('undo', 'n1', '--yes', '--no-drain');
    expect([code, stderr]).toEqual([3, expect.stringContaining('[NODE_NOT_DRAINED]')]);
    expect(await pods()).toEqual(['web-3']);
    await expectServing();
  });

  describe('that fails on a node, with --on-failure revert', () => {
    const revert = (...options: readonly string[]) =>
      assign('topologyManagerScope: pod', '--canary', '0', '--max-unavailable', '1', '--on-failure', 'revert', ...options);
    const whenAssigned = (name: string, action: () => unknown) =>
      fleet.cluster.store.subscribe(({ object, previous }) => {
        const isAssigned = (node: KubeObject | null) => node?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] !== undefined;
        if (object.kind === 'Node' && object.metadata.name === name && isAssigned(object) && !isAssigned(previous)) void action();
      });

    it('counts a failed node that stays cordoned as unavailable, although it is Ready', async () => {
      whenAssigned('n1', async () => {
        await fleet.setReady('n1', false);
        const status = { conditions: [{ type: 'Ready', status: 'True' }] };
        await fleet.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'strategic', { status }, { subresource: 'status' });
      });
      const seen = watchNodes();
      const limits = ['--canary', '0', '--max-unavailable', '1', '--max-fail', '1', '--timeout', '60s'];
      const { code, stdout, stderr } = await assign('topologyManagerScope: pod', ...limits);
      expect([code, stdout, seen.most]).toEqual([4, '2 nodes: 1 failed, 1 not started.\n', 1]);
      expect(stderr).toContain('n1 is down, and --max-unavailable allows no more unavailable nodes');
    });

    it('drains the changed nodes on their way back as well', async () => {
      fleet.behaviours.set('topologyManagerScope: pod', (_, node) => (node === 'n2' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
      whenAssigned('n2', () => fleet.cluster.create(drainPod('web-3', 'n1')));
      const seen = watchNodes();
      const { code, stdout, stderr } = await revert();
      expect([code, stdout, stderr]).toEqual([
        5,
        '2 nodes: 2 rolled back.\n',
        expect.stringContaining('pod default/web-3 has left the node'),
      ]);
      // n2 rolled back before its assignment was removed.
      expect(seen).toMatchObject({ assignedCordoned: [true, true, false, true], most: 1 });
      expect(await pods()).toEqual([]);
      await expectServing();
    });

    it('reports the nodes whose way back has an unknown impact, and does not drain them', async () => {
      expect((await assign('topologyManagerScope: pod')).code).toBe(0);
      await fleet.cluster.create(drainPod('web-3', 'n1'));
      const gates = join(directory, 'gates.yaml');
      writeFileSync(
        gates,
        'apiVersion: kubeletadm.dev/v1alpha1\nkind: Rollout\ngates: [{name: g, command: exit 1, after: end, onFailure: revert}]\n',
      );
      const { code, stdout, stderr } = await dynamic('reset', ...NODES, '--gates', gates);
      expect([code, stdout, stderr]).toEqual([5, expect.stringContaining('2 nodes: 2 rolled back.'), expect.anything()]);
      expect(stderr).toContain('n1, n2 are not drained before the previous assignment is restored, because its impact is unknown');
      expect(await pods()).toEqual(['web-3']);
    });

    it('returns a failed node to service when its previous configuration is verified', async () => {
      whenAssigned('n2', () => {
        fleet.plan.set(fleet.elapsedSeconds + 80, () => fleet.setReady('n2', true));
        return fleet.setReady('n2', false);
      });
      const { code, stdout, stderr } = await revert('--timeout', '60s');
      expect([code, stdout, stderr]).toEqual([5, '2 nodes: 2 rolled back.\n', expect.not.stringContaining('NODE_LEFT_CORDONED')]);
      await expectServing();
    });

    it('leaves a failed node cordoned if its previous assignment cannot be restored', async () => {
      whenAssigned('n2', () => fleet.setReady('n2', false));
      const { patch } = fleet.cluster;
      fleet.cluster.patch = async (...words) => {
        if (words[0].name === 'n2' && JSON.stringify(words[2]).includes(`"${CONFIG_SOURCE_ANNOTATION}":null`))
          throw new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'denied by a webhook' });
        return patch(...words);
      };
      const { code, stdout, stderr } = await revert('--timeout', '60s');
      expect([code, stdout]).toEqual([4, '2 nodes: 2 not rolled back.\n']);
      expect(stderr).toContain('stays cordoned');
      expect((await nodes()).map(isCordoned)).toEqual([false, true]);
    });
  });
});
