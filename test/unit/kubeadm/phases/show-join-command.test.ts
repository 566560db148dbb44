import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { applyPhases } from '../../../../src/host/apply-phases.ts';
import { clusterInfoMap } from '../../../../src/kubeadm/cluster-objects/cluster-info.ts';
import { type ShowJoinCommandInput, showJoinCommand } from '../../../../src/kubeadm/phases/show-join-command.ts';
import { caPinsOf } from '../../../../src/x509/ca-pin.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const CA = readFileSync(new URL('../../host/facts/fixtures/certificates/valid-until-2099.pem', import.meta.url), 'utf8');
const API = { server: 'https://10.0.0.10:6443', caPem: CA };
const TOKEN = new Secret('abcdef.0123456789abcdef');
const MAP = clusterInfoMap(API);
const LINE = (token: string) => `kubeletadm join 10.0.0.10:6443 --token ${token} --discovery-token-ca-cert-hash ${caPinsOf(CA)?.[0]} `;

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
  it('prints the command without waiting for the signature of cluster-info', async () => {
    const { shown, reporter, waitedMs } = await run(fakeCluster({ objects: [MAP] }));
    expect(shown).toEqual([LINE('abcdef.0123456789abcdef')]);
    expect(waitedMs).toBe(0);
    expect(reporter.codes().filter((code) => code === 'WAITING')).toEqual([]);
    expect(JSON.stringify(reporter.events)).not.toContain('0123456789abcdef');
  });

  it('masks the token when configured', async () => {
    expect((await run(fakeCluster({ objects: [MAP] }), { withhold: true })).shown).toEqual([LINE('<value withheld>')]);
  });

  it('pins every CA of the bundle', async () => {
    const other = readFileSync(new URL('../../host/facts/fixtures/certificates/expired-2021.pem', import.meta.url), 'utf8');
    const { shown } = await run(fakeCluster({ objects: [MAP] }), { apiServer: { ...API, caPem: CA + other } });
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
