import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { applyPhases } from '../../../../src/host/run-workflow.ts';
import { CLUSTER_INFO, clusterInfoMap } from '../../../../src/kubeadm/cluster-info.ts';
import { type ShowJoinCommandInput, showJoinCommand } from '../../../../src/kubeadm/phases/show-join-command.ts';
import { caPinsOf } from '../../../../src/kubeadm/token/ca-pin.ts';
import { signDetached } from '../../../../src/kubeadm/token/jws.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const CA = readFileSync(new URL('../../host/facts/fixtures/certificates/valid-until-2099.pem', import.meta.url), 'utf8');
const API = { server: 'https://10.0.0.10:6443', caPem: CA };
const TOKEN = new Secret('abcdef.0123456789abcdef');
const MAP = clusterInfoMap(API);
const KUBECONFIG = (MAP.data as Record<string, string>).kubeconfig ?? '';
const LINE = (token: string) => `kubeletadm join 10.0.0.10:6443 --token ${token} --discovery-token-ca-cert-hash ${caPinsOf(CA)?.[0]} `;

const sign = (cluster: FakeCluster, text = KUBECONFIG, secret = '0123456789abcdef') =>
  cluster.patch({ apiVersion: 'v1', kind: 'ConfigMap', ...CLUSTER_INFO }, 'merge', {
    data: { 'jws-kubeconfig-abcdef': signDetached('abcdef', new Secret(secret), text) },
  });

async function run(
  cluster: FakeCluster | null,
  { clock = fakeClock(), ...change }: Partial<ShowJoinCommandInput> & { clock?: ReturnType<typeof fakeClock> } = {},
) {
  const shown: string[] = [];
  const reporter = recordingReporter();
  const input: ShowJoinCommandInput = {
    tokens: [TOKEN],
    apiServer: API,
    withhold: false,
    show: (command) => shown.push(command.reveal()),
    ...change,
  };
  const done = await applyPhases([showJoinCommand], { host: fakeHost(), cluster, clock, reporter }, input, []);
  expect(done[0]?.plan).toEqual({ changes: [] });
  return { shown, reporter, waitedMs: clock.elapsedMs };
}

describe('show-join-command', () => {
  it('prints the command immediately when cluster-info is signed', async () => {
    const cluster = fakeCluster({ objects: [MAP] });
    await sign(cluster);
    const { shown, reporter, waitedMs } = await run(cluster);
    expect(shown).toEqual([LINE('abcdef.0123456789abcdef')]);
    expect(waitedMs).toBe(0);
    expect(JSON.stringify(reporter.events)).not.toContain('0123456789abcdef');
  });

  it.each([
    ['it is missing', async (_: FakeCluster) => {}],
    ['it signs an older text', (cluster: FakeCluster) => sign(cluster, 'older')],
    ['it uses another secret', (cluster: FakeCluster) => sign(cluster, KUBECONFIG, 'fedcba9876543210')],
  ])('waits for the signature when %s, and reports it', async (_, prepare) => {
    const cluster = fakeCluster({ objects: [MAP] });
    await prepare(cluster);
    const clock = fakeClock();
    clock.at(7_000, () => void sign(cluster));
    const { shown, reporter, waitedMs } = await run(cluster, { clock });
    expect(shown).toHaveLength(1);
    expect(waitedMs).toBeLessThan(8_500);
    expect(reporter.messages('WAITING')).toEqual([
      'waiting for the signature of cluster-info, 5 s: ConfigMap kube-public/cluster-info has no signature for token abcdef',
    ]);
    expect(reporter.codes()).not.toContain('CLUSTER_INFO_UNSIGNED');
  });

  it('continues with a warning when no signature appears', async () => {
    const { shown, reporter, waitedMs } = await run(fakeCluster({ objects: [MAP] }));
    expect(shown).toHaveLength(1);
    expect(waitedMs).toBe(30_000);
    expect(reporter.messages('CLUSTER_INFO_UNSIGNED')).toEqual([
      'ConfigMap kube-public/cluster-info has no signature for token abcdef after 30s. Check that kube-controller-manager runs with --controllers=*,bootstrapsigner,tokencleaner. Until cluster-info is signed, nodes can join with --ca-cert or --discovery-file',
    ]);
  });

  it('can be interrupted during the wait', async () => {
    const interruption = new AbortController();
    const clock = fakeClock();
    clock.at(3_000, () => interruption.abort(new Error('stop')));
    const context = { host: fakeHost(), cluster: fakeCluster(), clock, reporter: recordingReporter(), signal: interruption.signal };
    const input = { tokens: [TOKEN], apiServer: API, withhold: false, show: () => undefined };
    await expect(applyPhases([showJoinCommand], context, input, [])).rejects.toThrow('stop');
  });

  it('masks the token when configured', async () => {
    const cluster = fakeCluster({ objects: [MAP] });
    await sign(cluster);
    expect((await run(cluster, { withhold: true })).shown).toEqual([LINE('<value withheld>')]);
  });

  it('pins every CA of the bundle', async () => {
    const other = readFileSync(new URL('../../host/facts/fixtures/certificates/expired-2021.pem', import.meta.url), 'utf8');
    const cluster = fakeCluster({ objects: [MAP] });
    await sign(cluster);
    const { shown } = await run(cluster, { apiServer: { ...API, caPem: CA + other } });
    const pins = [...(caPinsOf(CA) ?? []), ...(caPinsOf(other) ?? [])].map((pin) => `--discovery-token-ca-cert-hash ${pin} `).join('');
    expect(shown[0]?.endsWith(` ${pins}`)).toBe(true);
  });

  it('fails without a token, warns without a CA, and prints nothing without a cluster', async () => {
    await expect(run(fakeCluster(), { tokens: [] })).rejects.toThrow(
      'no bootstrap token is usable for joining nodes. Run kubeletadm init phase bootstrap-token, or kubeletadm token create --print-join-command. [NO_TOKEN]',
    );
    const { shown, reporter } = await run(fakeCluster(), { apiServer: null });
    expect([shown, reporter.codes().includes('KUBECONFIG_NO_CA')]).toEqual([[], true]);
    expect((await run(null)).shown).toEqual([]);
  });
});
