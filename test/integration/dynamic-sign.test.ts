import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseStatement, SIGNATURE_KEY, STATEMENT_KEY } from '../../src/dynamic/signing/statement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { generateKey } from '../support/sshd.ts';
import { type AgentFleet, agentFleet } from '../support/stand-in-agents.ts';

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\nmaxPods: 60\n';

describe('signing of node configurations', { timeout: 60_000 }, () => {
  let directory: string;
  let fleet: AgentFleet;
  const path = (name: string): string => join(directory, name);

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ka-dynamic-sign-'));
    generateKey(path('alice'), 'ed25519');
    writeFileSync(path('kubelet.yaml'), OVERLAY);
    const cluster = { name: 'c', cluster: { server: 'https://cluster.test:6443' } };
    const context = { name: 'c', context: { cluster: 'c', user: 'u' } };
    const user = { name: 'u', user: { token: 't' } };
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [cluster],
      contexts: [context],
      users: [user],
      'current-context': 'c',
    };
    writeFileSync(path('admin.conf'), JSON.stringify(kubeconfig));
  });
  beforeEach(async () => {
    fleet = await agentFleet(['n1', 'n2'], { requiresSignature: true });
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const dynamic = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(['dynamic', ...args], {
      env: { HOME: directory, KUBECONFIG: path('admin.conf') },
      services: () => ({ clock: fleet.clock, connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }) }),
    });
  const configMaps = async () =>
    (await fleet.cluster.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system' })).items.map(({ metadata, data }) => ({
      name: metadata.name,
      data: data as Readonly<Record<string, string>>,
    }));
  const key = (): readonly string[] => ['--sign', path('alice')];

  it('stores the statement and its signature with the configuration', async () => {
    const { code, stdout } = await dynamic(
      'push',
      path('kubelet.yaml'),
      ...key(),
      '--revision',
      '7',
      '--sign-for',
      'edge-*',
      '--sign-for',
      'n1',
    );
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^kubeletadm-system\/node-config-\w{10}\/kubelet\n$/)]);
    const [stored] = await configMaps();
    expect(Object.keys(stored?.data ?? {}).sort()).toEqual(['kubelet', STATEMENT_KEY, SIGNATURE_KEY].sort());
    expect(parseStatement(stored?.data[STATEMENT_KEY] ?? '')).toMatchObject({
      ...{ namespace: 'kubeletadm-system', name: 'node-config', key: 'kubelet' },
      ...{ revision: 7, nodes: ['edge-*', 'n1'], sha256: { kubelet: expect.stringMatching(/^[0-9a-f]{64}$/) } },
    });
    // The same signature is the same ConfigMap.
    await dynamic('push', path('kubelet.yaml'), ...key(), '--revision', '7', '--sign-for', 'edge-*', '--sign-for', 'n1');
    expect(await configMaps()).toHaveLength(1);
  });

  it('of an assignment is for the selected nodes, and the next one has a higher revision', async () => {
    const assign = (): Promise<CliResult> => dynamic('assign', 'n1', '--file', path('kubelet.yaml'), ...key(), '--min-ready', '0s');
    expect((await assign()).code).toBe(0);
    await fleet.pass(1);
    expect((await assign()).code).toBe(0);
    const statements = (await configMaps()).map(({ data }) => parseStatement(data[STATEMENT_KEY] ?? ''));
    expect(statements.map((one) => one?.nodes)).toEqual([['n1'], ['n1']]);
    const revisions = statements.map((one) => one?.revision ?? 0).sort();
    expect(revisions[1]).toBeGreaterThan(revisions[0] ?? 0);
  });

  it('is required before anything is written, for exactly the assigned ConfigMap and nodes', async () => {
    const unsigned = await dynamic('assign', 'n1', 'n2', '--file', path('kubelet.yaml'));
    expect(unsigned).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('n1, n2 (2): the node accepts only signed ConfigMaps, but the ConfigMap is not signed'),
    });
    expect(await configMaps()).toEqual([]);
    await dynamic('push', path('kubelet.yaml'), ...key(), '--sign-for', 'n1');
    const [stored] = await configMaps();
    const other = await dynamic('assign', 'n1', 'n2', '--configmap', `kubeletadm-system/${stored?.name}`);
    expect(other).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(
        /n2: the node accepts only signed ConfigMaps, but the signature is for other nodes \(n1\), not for n2.*\[DYNAMIC_SIGNATURE_REQUIRED\]/s,
      ),
    });
    expect(other.stderr).not.toContain('n1: the node accepts');
    expect(fleet.runs()).toEqual({ n1: 'local', n2: 'local' });
  });

  it('does not permit a revert to a revision that the nodes would refuse', async () => {
    const assign = (...more: readonly string[]): Promise<CliResult> =>
      dynamic('assign', 'n1', '--file', path('kubelet.yaml'), ...key(), '--min-ready', '0s', ...more);
    // Nothing is assigned yet, so a revert removes the assignment.
    expect((await assign('--on-failure', 'revert')).code).toBe(0);
    await fleet.pass(1);
    expect(await assign('--on-failure', 'revert')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('--on-failure revert is not possible for n1'),
    });
  });

  it.each([
    [['push', 'kubelet.yaml', '--revision', '3'], '--revision requires --sign'],
    [['push', 'kubelet.yaml', '--sign', 'k', '--revision', '0'], '--revision 0 is not a positive integer'],
    [['assign', 'n1', '--configmap', 'a/b', '--sign', 'k'], '--sign requires --file'],
    [['push', 'kubelet.yaml', '--sign', 'absent'], 'cannot sign the ConfigMap with absent, so the ConfigMap was not stored'],
    [['enable', 'h', '--signer-policy', 'p'], '--signer-policy requires --require-signature'],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await dynamic(...args.map((arg) => (arg === 'kubelet.yaml' ? path(arg) : arg)));
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
