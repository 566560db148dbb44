import { describe, expect, it } from 'vitest';
import { createCa } from '../../../../lab/api-server/pki.ts';
import { Secret } from '../../../../src/base/text/secret.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import { clientCertificateKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import { kubeletFinalize } from '../../../../src/kubeadm/phases/kubelet-finalize.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const CONF = '/etc/kubernetes/kubelet.conf';
const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const INPUT = {
  certDir: '/var/lib/kubelet/pki',
  rotates: true,
  health: { url: 'http://127.0.0.1:10248/healthz', timeoutMs: 20_000 },
  nodeName: 'cp-1',
};
const ca = await createCa();
const { certPem, keyPem } = await ca.issueClient({ commonName: 'system:node:cp-1', organizations: ['system:nodes'] });
const embedded = clientCertificateKubeconfig({
  clusterName: 'kubernetes',
  server: 'https://10.0.0.1:6443',
  caPem: ca.certPem,
  user: 'system:node:cp-1',
  certificatePem: certPem,
  keyPem: new Secret(keyPem),
}).reveal();

function world(files: Readonly<Record<string, string>>) {
  const host = fakeHost({
    files,
    units: { kubelet: fakeUnit({ activeState: 'active' }) },
    commands: { sh: { exitCode: 0 } },
    http: () => ({ status: 200, body: 'ok' }),
  });
  return { host, context: { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() } };
}

describe('kubelet-finalize', () => {
  it('refers to the rotated certificate in kubelet.conf, masks the key, and plans no changes again', async () => {
    const { host, context } = world({ [CONF]: embedded, [PEM]: 'pem\n' });
    const planned = await planPhases([kubeletFinalize], context, INPUT);
    expect(planned[0]?.plan.changes.map(({ kind }) => kind)).toEqual(['write-file', 'restart-unit']);
    const shown = JSON.stringify(planDocument([{ name: 'cp-1', phases: planned }], []));
    expect(shown).not.toContain(Buffer.from(keyPem).toString('base64'));
    await applyPhases([kubeletFinalize], context, INPUT, planned);
    expect(host.text(CONF)).toContain(`client-certificate: ${PEM}\n    client-key: ${PEM}\n`);
    expect(host.text(CONF)).toContain('user: system:node:cp-1');
    expect(host.text(CONF)).not.toContain('client-key-data');
    expect((await planPhases([kubeletFinalize], context, INPUT))[0]?.plan).toMatchObject({ changes: [], noop: expect.any(String) });
  });

  it('keeps kubelet.conf when the kubelet rotates no certificate', async () => {
    const { context } = world({ [CONF]: embedded });
    expect((await planPhases([kubeletFinalize], context, { ...INPUT, rotates: false }))[0]?.plan).toMatchObject({
      changes: [],
      noop: expect.stringContaining(PEM),
    });
  });

  it.each([
    ['without an API server', null, 10_000],
    ['with a Node that the restarted kubelet reported as Ready', 30, 0],
    ['with a Node that only the earlier process reported as Ready', 0, 10_000],
  ])('requires that the restarted kubelet stays healthy: %s', async (_, heartbeat, expected) => {
    const { host, context } = world({ [CONF]: embedded, [PEM]: 'pem\n' });
    const cluster = fakeCluster();
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date((heartbeat ?? 0) * 1000).toISOString() }];
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp-1' }, status: { conditions } });
    const own = { ...context, cluster: heartbeat === null ? null : cluster };
    await applyPhases([kubeletFinalize], own, INPUT, await planPhases([kubeletFinalize], own, INPUT));
    expect(host.text(CONF)).toContain(PEM);
    expect(context.clock.elapsedMs).toBe(expected);
  });

  it('waits for the first rotated certificate', async () => {
    const { context } = world({ [CONF]: embedded });
    const [planned] = await planPhases([kubeletFinalize], context, INPUT);
    expect(planned?.plan).toEqual({ changes: [], deferred: `waits until the kubelet has written ${PEM}` });
  });

  it('waits for earlier phases', async () => {
    expect((await planPhases([kubeletFinalize], world({}).context, INPUT))[0]?.plan.deferred).toContain(CONF);
  });
});
