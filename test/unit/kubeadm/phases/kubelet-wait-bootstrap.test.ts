import { describe, expect, it } from 'vitest';
import { createCa, createCertificateRequest } from '../../../../lab/api-server/pki.ts';
import { AppError } from '../../../../src/base/errors.ts';
import { applyPhases } from '../../../../src/host/apply-phases.ts';
import { definePhase, type Phase } from '../../../../src/host/phase.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { kubeletWaitBootstrap, type WaitBootstrapInput } from '../../../../src/kubeadm/phases/kubelet-wait-bootstrap.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const BOOTSTRAP = '/etc/kubernetes/bootstrap-kubelet.conf';
const KUBELET = '/etc/kubernetes/kubelet.conf';
const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const CONF = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://a:6443}}]
users: [{name: u, user: {client-certificate: ${PEM}, client-key: ${PEM}}}]
`;
const INPUT: WaitBootstrapInput = { timeoutMs: 60_000, nodeName: 'w1' };
const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;

function world(user?: { name: string; groups: readonly string[] }) {
  const admin = fakeCluster();
  const cluster = user === undefined ? admin : fakeCluster({ sharedWith: admin, user });
  const clock = fakeClock();
  const reporter = recordingReporter();
  const host = fakeHost({
    units: {},
    files: { [BOOTSTRAP]: 'token\n', [KUBELET]: CONF },
    commands: { date: () => ({ stdout: `${Math.floor(Date.now() / 1000)}\n` }) },
  });
  return { admin, host, clock, reporter, context: { host, cluster, clock, reporter } };
}

function reportingHost(why: string) {
  const reported = `Failed while requesting a signed certificate from the control plane: cannot create certificate signing request: ${why}\n`;
  const commands = { journalctl: { stdout: reported }, date: { stdout: '0\n' } };
  return fakeHost({ units: {}, files: { [BOOTSTRAP]: 'token\n', [KUBELET]: CONF }, commands });
}

async function csr(name: string, nodeName: string, usages = ['digital signature', 'client auth']): Promise<KubeObject> {
  const { requestPem } = await createCertificateRequest({ commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] });
  const request = Buffer.from(requestPem).toString('base64');
  return { ...CSR, metadata: { name }, spec: { request, signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages } };
}

const run = (context: ReturnType<typeof world>['context'], phases: readonly Phase<WaitBootstrapInput>[] = [kubeletWaitBootstrap]) =>
  applyPhases(phases, context, INPUT, []);

describe('kubelet-wait-bootstrap', () => {
  it('waits for a usable certificate, not only for kubelet.conf, and removes the token from the host', async () => {
    const { host, clock, context, reporter } = world();
    const { certPem, keyPem } = await (await createCa()).issueClient({ commonName: 'system:node:w1' });
    clock.at(8_000, () => void host.files.set(PEM, { type: 'file', mode: 0o600, owner: 'root:root', content: certPem + keyPem }));
    await run(context);
    expect(clock.elapsedMs).toBe(8_000);
    expect(host.files.has(BOOTSTRAP)).toBe(false);
    expect(reporter.messages('WAITING')).toEqual([
      "waiting for the kubelet's client certificate, 5 s: the kubelet has created no CSR: the API server is unreachable from the host, or rejects the bootstrap token",
    ]);
  });

  it('reports the state of the CSR, and removes the token from the host even on failure', async () => {
    const { admin, host, clock, context } = world();
    const [own, other] = await Promise.all([csr('node-csr-1', 'w1'), csr('node-csr-2', 'w2')]);
    await admin.create(other);
    clock.at(2_000, () => void admin.create(own));
    await expect(run(context)).rejects.toMatchObject({
      problems: [
        {
          code: 'BOOTSTRAP_TIMEOUT',
          message: expect.stringMatching(/after 60s: \/var\/lib.*does not exist yet; .* node-csr-1 of kubernetes-admin is pending\. /),
          hint: expect.stringContaining('kubectl certificate approve node-csr-1. Then rerun the command'),
        },
      ],
    });
    expect(host.files.has(BOOTSTRAP)).toBe(false);
  });

  it('notices the certificate while the API server does not answer the request for a progress message', async () => {
    const { host, admin, clock, context, reporter } = world();
    const { certPem, keyPem } = await (await createCa()).issueClient({ commonName: 'system:node:w1' });
    clock.at(6_000, () => void host.files.set(PEM, { type: 'file', mode: 0o600, owner: 'root:root', content: certPem + keyPem }));
    let asked = 0;
    const list = () => {
      asked++;
      return new Promise<never>(() => undefined);
    };
    await run({ ...context, cluster: { ...admin, forPolls: { ...admin, list } } as typeof admin });
    expect([clock.elapsedMs, asked]).toEqual([6_000, 1]);
    expect(reporter.messages('WAITING')).toEqual([
      "waiting for the kubelet's client certificate, 5 s: the state of its CSR is unknown: the API server has not answered yet",
    ]);
  });

  it('explains a timeout with a request that does not let others go first', async () => {
    const { admin, clock, context } = world();
    const own = await csr('node-csr-1', 'w1');
    clock.at(2_000, () => void admin.create(own));
    const list = () => new Promise<never>(() => undefined);
    const cluster = { ...admin, forPolls: { ...admin, list } } as typeof admin;
    await expect(run({ ...context, cluster })).rejects.toMatchObject({
      problems: [{ code: 'BOOTSTRAP_TIMEOUT', message: expect.stringContaining('node-csr-1 of kubernetes-admin is pending') }],
    });
    expect(clock.elapsedMs).toBe(60_000);
  });

  it('explains a timeout although the API server fails between two requests', async () => {
    const { admin, context } = world();
    const create = async () => Promise.reject(new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' }));
    await expect(run({ ...context, cluster: { ...admin, create } })).rejects.toMatchObject({
      problems: [{ code: 'BOOTSTRAP_TIMEOUT', message: expect.stringContaining('its CSR is unknown: no response within 10 s') }],
    });
  });

  it.each([
    ['no route to host', 'Check that the host can reach the API server'],
    ['Unauthorized', 'Create a new token with kubeletadm token create: the token is unknown or expired'],
    [
      'Post https://a:6443/apis: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is before 2026-01-02T00:00:00Z',
      'Synchronize the clock of the host (timedatectl, chronyc)',
    ],
  ])('prints the error of a kubelet that cannot create a CSR: %s', async (why, hint) => {
    const { context, clock } = world();
    await expect(run({ ...context, host: reportingHost(why) })).rejects.toMatchObject({
      problems: [
        {
          code: 'BOOTSTRAP_TIMEOUT',
          message: expect.stringContaining(`cannot request a certificate: cannot create certificate signing request: ${why}`),
          hint: expect.stringContaining(hint),
        },
      ],
    });
    expect(clock.elapsedMs).toBe(60_000);
  });

  it('fails early when the token is expired for both the kubelet and the local client', async () => {
    const { admin, context, clock } = world();
    const refused = new AppError({ code: 'CLUSTER_UNAUTHORIZED', message: 'cannot list CertificateSigningRequests: Unauthorized' });
    const cluster = { ...admin, list: async () => Promise.reject(refused) };
    await expect(run({ ...context, cluster, host: reportingHost('Unauthorized') })).rejects.toMatchObject({
      problems: [{ code: 'BOOTSTRAP_DENIED', hint: expect.stringContaining('Create a new token with kubeletadm token create') }],
    });
    expect(clock.elapsedMs).toBe(5_000);
  });

  it('reports that the credentials may list CSRs but not create one', async () => {
    const user = { name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers', 'system:authenticated'] };
    const { admin, context } = world(user);
    const rbac = 'rbac.authorization.k8s.io';
    const rules = [{ apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['get', 'list'] }];
    await admin.create({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'look' }, rules });
    await admin.create({
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'look' },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'look' },
      subjects: [{ apiGroup: rbac, kind: 'Group', name: 'system:bootstrappers' }],
    });
    await expect(run(context)).rejects.toMatchObject({
      problems: [{ message: expect.stringMatching(/; the bootstrap credentials are not allowed to create CSRs$/) }],
    });
  });

  it('reports a denied CSR although the kubelet created another, and ignores earlier denials', async () => {
    const { admin, clock, context } = world();
    const deny = async (name: string, reason: string): Promise<void> => {
      const conditions = [{ type: 'Denied', status: 'True', reason }];
      await admin.patch({ ...CSR, name }, 'merge', { status: { conditions } }, { subresource: 'approval' });
    };
    const requests = await Promise.all(['csr-3-yesterday', 'csr-2-first', 'csr-1-again'].map((name) => csr(name, 'w1')));
    const [old, first, second] = requests as [KubeObject, KubeObject, KubeObject];
    await admin.create(old);
    await deny('csr-3-yesterday', 'Yesterday');
    clock.at(1_000, () => void admin.create(first));
    clock.at(11_000, () => void deny('csr-2-first', 'NotOurs').then(() => admin.create(second)));
    await expect(run(context)).rejects.toMatchObject({
      problems: [{ code: 'BOOTSTRAP_DENIED', message: expect.stringContaining('csr-2-first was denied: NotOurs') }],
    });
    expect(clock.elapsedMs).toBe(15_000);
  });

  it('fails immediately after a denial', async () => {
    const { admin, clock, context } = world();
    await admin.create(await csr('node-csr-1', 'w1'));
    const conditions = [{ type: 'Denied', status: 'True', reason: 'NotOurs', message: 'unknown host' }];
    await admin.patch({ ...CSR, name: 'node-csr-1' }, 'merge', { status: { conditions } }, { subresource: 'approval' });
    await expect(run(context)).rejects.toMatchObject({
      problems: [{ code: 'BOOTSTRAP_DENIED', message: expect.stringContaining('node-csr-1 was denied: NotOurs: unknown host') }],
    });
    expect(clock.elapsedMs).toBe(5_000);
  });

  it('reports that the credentials may not list CSRs', async () => {
    const { context } = world({ name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] });
    await expect(run(context)).rejects.toMatchObject({
      problems: [
        {
          message: expect.stringMatching(/the state of its CSR is unknown: cannot list CertificateSigningRequest/),
        },
      ],
    });
  });

  it('removes the token from the host when an earlier phase fails, and reports that failure', async () => {
    const { host, context, clock } = world();
    const failing = definePhase<WaitBootstrapInput, null>({
      name: 'kubelet-start',
      short: '',
      ready: async () => {
        throw new AppError({ code: 'KUBELET_UNHEALTHY', message: 'it is not healthy' });
      },
      observe: async () => null,
      plan: () => ({ changes: [] }),
    });
    await expect(run(context, [failing, kubeletWaitBootstrap])).rejects.toMatchObject({ code: 'KUBELET_UNHEALTHY' });
    expect(host.files.has(BOOTSTRAP)).toBe(false);
    expect(clock.elapsedMs).toBe(0);
  });

  it('removes the token after an interruption too', async () => {
    const { host, context, clock } = world();
    const aborter = new AbortController();
    const reason = new AppError({ code: 'INTERRUPTED', message: 'interrupted' });
    clock.at(3_000, () => aborter.abort(reason));
    await expect(run({ ...context, signal: aborter.signal } as typeof context)).rejects.toBe(reason);
    expect(host.files.has(BOOTSTRAP)).toBe(false);
  });
});
