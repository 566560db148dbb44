import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { ALLOW_POD_LOSS_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { runCommand } from '../support/run-cli.ts';
import { type AgentFleet, agentFleet } from '../support/stand-in-agents.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const catalogue = await loadCatalogue();
const NODES = ['n1', 'n2', 'n3'];
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

describe('dynamic assign of a configuration that would terminate pods', () => {
  let directory: string;
  let fleet: AgentFleet;

  /** Three nodes with two pods each; n3 has only one. */
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'dynamic-pod-loss-'));
    writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
    fleet = await agentFleet(NODES);
    for (const node of NODES) for (const name of node === 'n3' ? ['a'] : ['a', 'b']) await fleet.cluster.create(podOf(node, name));
    for (const node of NODES) serveConfigz(node, { clusterDNS: ['10.96.0.10'] });
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const podOf = (nodeName: string, name: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `${name}-${nodeName}`, namespace: 'default', creationTimestamp: '2030-01-01T00:00:00Z' },
    spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running' },
  });
  const serveConfigz = (node: string, own: JsonObject): void => {
    const kubeletconfig = effectiveConfiguration(own, { catalogue, minor: 36 });
    fleet.cluster.proxyNode(node, () => ({ status: 200, body: { kubeletconfig } }));
  };
  const assign = async (payload: string, ...options: readonly string[]) => {
    const file = join(directory, 'kubelet.yaml');
    writeFileSync(file, payload);
    return run('--file', file, ...options);
  };
  const run = async (...options: readonly string[]) => {
    return runCommand(['dynamic', 'assign', ...NODES, ...options], {
      env: { HOME: directory, KUBECONFIG: join(directory, 'admin.conf') },
      services: () => ({ clock: fleet.clock, connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }) }),
    });
  };
  const annotation = async (name: string): Promise<readonly (string | null)[]> => {
    const nodes = await Promise.all(NODES.map((node) => fleet.cluster.get({ apiVersion: 'v1', kind: 'Node', name: node })));
    return nodes.map((node) => node?.metadata.annotations?.[name] ?? null);
  };
  const pushed = async (): Promise<number> =>
    (await fleet.cluster.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system' })).items.length;

  it.each([[[]], [['--dry-run']]])(
    'is refused with the names of the pods of each node, before anything is written (%s)',
    async (options) => {
      const { code, stderr } = await assign(`${OVERLAY}maxPods: 1\n`, ...options);
      expect(code).toBe(3);
      for (const node of ['n1', 'n2'])
        expect(stderr).toContain(`${node}: maxPods 1 is less than the 2 pods of the node: default/b-${node} would be terminated`);
      expect(stderr).toContain('--allow-pod-loss');
      expect(stderr).toContain('[PODS_AT_RISK]');
      expect(stderr).not.toContain('n3:');
      expect([await pushed(), await annotation(CONFIG_SOURCE_ANNOTATION)]).toEqual([0, [null, null, null]]);
    },
  );

  it('is applied with --allow-pod-loss, with a warning, and the permission on the Nodes', async () => {
    const { code, stderr } = await assign(`${OVERLAY}maxPods: 1\n`, '--allow-pod-loss', '--min-ready', '0s');
    expect([code, stderr]).toEqual([0, expect.stringContaining('default/b-n1 would be terminated')]);
    const [source = null] = await annotation(CONFIG_SOURCE_ANNOTATION);
    const { namespace, name, kubeletConfigKey } = JSON.parse(source ?? '{}').configMap;
    const allowed = `${namespace}/${name}/${kubeletConfigKey}`;
    expect(await annotation(ALLOW_POD_LOSS_ANNOTATION)).toEqual([allowed, allowed, allowed]);
  });

  it('is rolled back on the canary alone when a probe pod does not start with --allow-pod-loss', async () => {
    const probe = { state: 'failed', why: 'the node has no room for a new pod (2 of 1 pods)' } as const;
    fleet.behaviours.set('maxPods: 1', () => ({ probe }));
    const { code, stderr } = await assign(`${OVERLAY}maxPods: 1\n`, '--allow-pod-loss', '--min-ready', '0s');
    expect(code).toBe(4);
    expect(stderr).toContain('a probe pod cannot be started: the node has no room for a new pod (2 of 1 pods)');
    expect(await annotation(CONFIG_SOURCE_ANNOTATION)).toEqual([expect.stringContaining('configMap'), null, null]);
    expect(await annotation(ALLOW_POD_LOSS_ANNOTATION)).toEqual([expect.stringContaining('kubeletadm-system/'), null, null]);
    expect(fleet.runs()).toEqual({ n1: 'local', n2: 'local', n3: 'local' });
    expect(Object.fromEntries(fleet.restarts)).toEqual({ n1: 2, n2: 0, n3: 0 });
  });

  it('loses the permission with the next assignment', async () => {
    await assign(`${OVERLAY}maxPods: 1\n`, '--allow-pod-loss', '--min-ready', '0s');
    const { code } = await assign(`${OVERLAY}maxPods: 60\n`, '--min-ready', '0s');
    expect([code, await annotation(ALLOW_POD_LOSS_ANNOTATION)]).toEqual([0, [null, null, null]]);
  });

  it('adds the permission to nodes with the same assignment', async () => {
    for (const node of NODES) fleet.cluster.proxyNode(node, () => 'down');
    for (const node of NODES) await fleet.cluster.delete({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: `b-${node}` });
    await assign(`${OVERLAY}maxPods: 1\n`, '--wait', 'none');
    expect(await annotation(ALLOW_POD_LOSS_ANNOTATION)).toEqual([null, null, null]);
    await assign(`${OVERLAY}maxPods: 1\n`, '--wait', 'none', '--allow-pod-loss');
    expect((await annotation(ALLOW_POD_LOSS_ANNOTATION)).every((value) => value?.startsWith('kubeletadm-system/node-config-'))).toBe(true);
  });

  it('is applied to nodes whose agents rejected it before', async () => {
    fleet.riskyWords.add('podPidsLimit: 20');
    const rejected = await assign(`${OVERLAY}podPidsLimit: 20\n`, '--min-ready', '0s');
    expect([rejected.code, rejected.stderr]).toEqual([4, expect.stringContaining('rejected: pods would end')]);
    const { code, stdout } = await assign(`${OVERLAY}podPidsLimit: 20\n`, '--min-ready', '0s', '--allow-pod-loss');
    expect([code, stdout]).toEqual([0, '3 nodes: 3 changed.\n']);
  });

  it('is refused when the configz of the nodes cannot be read', async () => {
    for (const node of NODES) fleet.cluster.proxyNode(node, () => 'down');
    expect((await assign(`${OVERLAY}maxPods: 1\n`)).code).toBe(3);
  });

  it.each([['maxPods: 2'], ['podPidsLimit: 4096'], ['clusterDNS: [169.254.20.10]']])('is not refused for %s', async (line) => {
    expect((await assign(`${OVERLAY}${line}\n`, '--wait', 'none')).code).toBe(0);
  });

  it('prints the changed fields of each node with their impact, and the highest impact', async () => {
    serveConfigz('n1', { maxPods: 120 });
    fleet.cluster.proxyNode('n3', () => 'down');
    const payload = `${OVERLAY}maxPods: 100\ncpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\nstaticPodURLHeader: {Authorization: [s3cret]}\n`;
    const planned = await assign(payload, '--dry-run');
    expect(planned.code, planned.stderr).toBe(0);
    for (const line of [
      '    maxPods: 120 → 100 (new-pods-only)',
      '    maxPods: 110 → 100 (new-pods-only)',
      '    cpuManagerPolicy: none → static (drain)',
      '    impact unknown, because the running configuration of the kubelet cannot be read',
    ])
      expect(planned.stdout.split('\n')).toContain(line);
    expect(planned.stdout).toMatch(/ in the cluster; highest impact: unsafe\.\n$/);
    const json = await assign(payload, '--dry-run', '-o', 'json');
    const document = JSON.parse(json.stdout) as { readonly highestImpact: string; readonly cluster: { readonly changes: JsonObject[] } };
    expect(document.highestImpact).toBe('unsafe');
    const nodes = document.cluster.changes.filter(({ action }) => action === 'patch');
    expect(nodes.map(({ impact }) => impact)).toEqual(['unsafe', 'unsafe', null]);
    expect(nodes[0]?.fields).toContainEqual({ field: 'maxPods', before: 120, after: 100, impact: 'new-pods-only' });
    expect(nodes[2]?.fields).toBeNull();
    expect(planned.stderr + JSON.stringify(nodes)).not.toContain('s3cret');
  });

  it('reports the changed fields of all nodes and the highest impact before the first assignment', async () => {
    serveConfigz('n1', { maxPods: 120 });
    fleet.cluster.proxyNode('n3', () => 'down');
    const { code, stderr } = await assign(`${OVERLAY}maxPods: 100\neventRecordQPS: 7\n`, '--wait', 'none');
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(
        /^eventRecordQPS: 50 → 7 \(safe\) on 2 nodes\nmaxPods: values differ by node \(new-pods-only\) on 2 nodes\nhighest impact: new-pods-only\nimpact unknown for n3, because the running configuration cannot be read\n[\s\S]*n1 assigned /m,
      ),
    ]);
    const again = await assign(`${OVERLAY}maxPods: 101\n`, '--wait', 'none', '-o', 'json');
    const events = again.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as JsonObject);
    const [change, highest, unknown] = events.filter((event) => event.code === 'DYNAMIC_IMPACT').map(({ data }) => data);
    expect(change).toEqual({ field: 'maxPods', impact: 'new-pods-only', nodes: ['n1', 'n2'] });
    expect([highest, unknown]).toEqual([{ highestImpact: 'new-pods-only' }, { impact: null, nodes: ['n3'] }]);
  });

  it('is refused on nodes that could not start with it, before anything is written', async () => {
    serveConfigz('n3', { clusterDNS: ['10.96.0.10'], kubeReserved: { cpu: '100m' }, kubeReservedCgroup: '/kube' });
    const payload = `${OVERLAY}enforceNodeAllocatable: [pods, kube-reserved]\n`;
    const { code, stderr } = await assign(payload);
    expect(code, stderr).toBe(3);
    expect(stderr).toMatch(/^n1, n2 \(2\): the node would refuse the configuration: .*kubeReservedCgroup.*\[VALIDATION_FAILED\]/ms);
    expect(stderr).not.toContain('n3: the node would refuse');
    expect(stderr).not.toContain('cannot be read');
    expect([await pushed(), await annotation(CONFIG_SOURCE_ANNOTATION)]).toEqual([0, [null, null, null]]);
    const skipped = await assign(payload, '--skip-validation', '--wait', 'none');
    expect([skipped.code, skipped.stderr]).toEqual([0, expect.stringContaining('n1 warning: the node would refuse the configuration')]);
  });

  it('is not refused by fields that cannot be read, or that another ConfigMap may have set', async () => {
    const payload = `${OVERLAY}enforceNodeAllocatable: [pods, kube-reserved]\n`;
    for (const node of NODES) fleet.cluster.proxyNode(node, () => 'down');
    const unknown = await assign(payload, '--dry-run');
    expect([unknown.code, unknown.stdout]).toEqual([0, expect.stringContaining('the running configuration of the kubelet cannot be read')]);
    const own = { kubeReserved: { cpu: '100m' }, maxPods: 100 };
    expect((await assign(`${OVERLAY}kubeReserved: {cpu: 100m}\nmaxPods: 100\n`, '--min-ready', '0s')).code).toBe(0);
    for (const node of NODES) serveConfigz(node, { clusterDNS: ['10.96.0.10'], ...own });
    const replaced = await assign(payload, '--dry-run');
    expect([replaced.code, replaced.stderr]).toEqual([
      0,
      expect.stringContaining('with its present configuration, the node would refuse this one'),
    ]);
  });

  it('is refused by fields that the ConfigMap of the node does not set', async () => {
    const payload = `${OVERLAY}enforceNodeAllocatable: [pods, kube-reserved]\n`;
    expect((await assign(`${OVERLAY}maxPods: 100\n`, '--min-ready', '0s')).code).toBe(0);
    for (const node of NODES) serveConfigz(node, { clusterDNS: ['10.96.0.10'], maxPods: 100 });
    const before = await pushed();
    const { code, stderr } = await assign(payload, '--min-ready', '0s');
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/^n\[1:3\] \(3\): the node would refuse the configuration: .*kubeReservedCgroup/ms),
    ]);
    expect(await pushed()).toBe(before);
  });

  it('is refused if an overlay of one node cannot be read', async () => {
    const data = { kubelet: `${OVERLAY}maxPods: 100\n`, 'kubelet.node.n2': `${OVERLAY}maxPods: many\n` };
    await fleet.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
    const metadata = { name: 'layers', namespace: 'kubeletadm-system' };
    await fleet.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data, immutable: true });
    const { code, stderr } = await run('--configmap', 'kubeletadm-system/layers');
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/n2: the node would refuse the configuration: kubelet\.node\.n2:3:10[\s\S]*\[LOAD_FAILED\]/),
    ]);
    expect(stderr).not.toMatch(/n[13]: the node would refuse/);
    expect(await annotation(CONFIG_SOURCE_ANNOTATION)).toEqual([null, null, null]);
  });

  it('costs at most three requests per node', async () => {
    const before = fleet.cluster.calls.length;
    await assign(`${OVERLAY}maxPods: 1\n`);
    const calls = fleet.cluster.calls.slice(before).filter((call) => /configz|Pod/.test(call));
    expect(calls).toHaveLength(2 * NODES.length);
  });
});
