import { describe, expect, it } from 'vitest';
import type { AppError } from '../../../../src/base/errors.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import { RENEWABLE_NAMES } from '../../../../src/kubeadm/pki/renewable.ts';
import { clientCertificateOf } from '../../../../src/kubeadm/pki/validate-kubeconfig.ts';
import { preparePki } from '../../../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import { renewCertsWorkflow } from '../../../../src/kubeadm/workflows/certificates/renew-certs.ts';
import { certificateIssuer } from '../../../../src/x509/adapters/certificate-issuer.ts';
import { type CertificateContent, certificateOrWhy } from '../../../../src/x509/read-certificate.ts';
import { makePki, NOW, pkiContext, pkiNode, pkiOptions } from '../../../support/control-plane-pki.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';

/** Manifests with health endpoints, of a host whose runtime is containerd. */
const MANIFESTS = Object.fromEntries(
  Object.entries({ etcd: 2381, 'kube-apiserver': 6443, 'kube-controller-manager': 10257, 'kube-scheduler': 10259 }).map(([name, port]) => [
    `/etc/kubernetes/manifests/${name}.yaml`,
    `spec: {containers: [{name: ${name}, livenessProbe: {httpGet: {host: 127.0.0.1, path: /livez, port: ${port}, scheme: HTTPS}}}]}`,
  ]),
);

/** A host whose kubelet starts stopped containers again, except those of `broken`. */
function hostWithPods({ broken = '', hasClient = true } = {}) {
  const stops: string[] = [];
  const containers = new Map(Object.keys(MANIFESTS).map((path) => [path.replace(/^.*\/|\.yaml$/g, ''), 1]));
  const sh = (argv: readonly string[]) => {
    const [, , script = '', , , component = ''] = argv;
    if (!hasClient) return { exitCode: 1, stdout: '', stderr: 'no client' };
    if (script.includes('logs --tail')) return { exitCode: 0, stdout: 'first\nexit: bad certificate\n', stderr: '' };
    if (script.includes('stop --timeout')) {
      stops.push(component);
      containers.set(component, (containers.get(component) ?? 0) + 1);
      return { exitCode: 0, stdout: '', stderr: '' };
    }
    const isGone = component === broken && stops.includes(broken);
    return { exitCode: 0, stdout: isGone ? '' : `${component}-${containers.get(component)}\n`, stderr: '' };
  };
  const http = () => ({ status: 200, body: 'ok' });
  const units = { kubelet: fakeUnit({ activeState: 'active', subState: 'running' }) };
  return { host: fakeHost({ files: { ...made, ...MANIFESTS }, commands: { sh }, http, units }), stops };
}

const PKI = '/etc/kubernetes/pki';
const node = pkiNode({ apiServer: { certSANs: ['fd00::1', '*.lab.example'] } });
const first = fakeHost();
await makePki(pkiContext(first), pkiOptions(node));
const made = first.texts();
const LATER = new Date(NOW.getTime() + 360 * 86_400_000);

interface Renewal {
  readonly restarts?: boolean;
  readonly names?: readonly string[];
  readonly withinMs?: number;
  readonly dryRun?: boolean;
}

async function renew(host: FakeHost, { names = RENEWABLE_NAMES, withinMs, dryRun = false, restarts = false }: Renewal = {}) {
  const cluster = { encryptionAlgorithm: 'ECDSA-P384', certificateValidityPeriod: '48h0m0s' } as const;
  const options = { issuer: certificateIssuer, cluster, certificatesDir: null, withinMs: withinMs ?? null };
  const context = pkiContext(host, fakeClock(LATER));
  return runWorkflow(renewCertsWorkflow(names, { restarts }), context, options, { dryRun, skipPhases: [] });
}

function certificateIn(host: FakeHost, path: string): CertificateContent {
  const read = path.endsWith('.conf') ? clientCertificateOf(host.text(path), path) : certificateOrWhy(host.text(path));
  if (typeof read === 'string') throw new Error(`${path} ${read}`);
  return read;
}

describe('certs renew', () => {
  it('replaces the keys and validity of all certificates, and keeps SANs, CAs and other files', async () => {
    const host = fakeHost({ files: made });
    const { warnings } = await renew(host);
    const changed = Object.keys(made).filter((path) => path.startsWith('/etc/kubernetes') && host.text(path) !== made[path]);
    expect(changed.toSorted()).toEqual(
      [
        ...['apiserver', 'apiserver-etcd-client', 'apiserver-kubelet-client', 'front-proxy-client'].flatMap(pair),
        ...['etcd/healthcheck-client', 'etcd/peer', 'etcd/server'].flatMap(pair),
        ...['admin', 'controller-manager', 'scheduler', 'super-admin'].map((name) => `/etc/kubernetes/${name}.conf`),
      ].toSorted(),
    );
    for (const path of changed.filter((each) => !each.endsWith('.key'))) {
      const [before, after] = [certificateIn(first, path), certificateIn(host, path)];
      const { subject, issuer, dnsNames, ipAddresses, keyUsage, extKeyUsage, isCa } = before;
      expect(after).toMatchObject({ subject, issuer, dnsNames, ipAddresses, keyUsage, extKeyUsage, isCa });
      expect(after.x509.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'secp384r1' });
      expect(after.notBefore).toEqual(new Date(LATER.getTime() - 300_000));
      expect(after.notAfter).toEqual(new Date(LATER.getTime() + 48 * 3_600_000));
    }
    const shape = (text: string | undefined) => text?.replace(/client-(certificate|key)-data: .*/g, '');
    expect(shape(host.text('/etc/kubernetes/admin.conf'))).toBe(shape(made['/etc/kubernetes/admin.conf']));
    expect(warnings.map(({ message }) => message)).toEqual([
      'restart etcd, kube-apiserver, kube-controller-manager, kube-scheduler to use the renewed certificates: rerun the command with --restart',
    ]);
    // Valid for init one year later.
    const context = pkiContext(host, fakeClock(new Date(LATER.getTime() + 3_600_000)));
    expect((await preparePki(context, pkiOptions(node))).problems).toEqual([]);
  });

  const pair = (name: string): readonly string[] => [`${PKI}/${name}.crt`, `${PKI}/${name}.key`];

  it('renews only named certificates, and reports the components to restart', async () => {
    const host = fakeHost({ files: made });
    const { warnings } = await renew(host, { names: ['scheduler.conf'] });
    expect(host.performed.map((operation) => 'path' in operation && operation.path)).toEqual(['/etc/kubernetes/scheduler.conf']);
    expect(warnings.map(({ message }) => message)).toEqual([
      'restart kube-scheduler to use the renewed certificates: rerun the command with --restart',
    ]);
    expect((await renew(fakeHost({ files: made }), { names: ['admin.conf'] })).warnings).toEqual([]);
  });

  it('restarts the components one after the other, each after the previous one is healthy', async () => {
    const { host, stops } = hostWithPods();
    const { warnings } = await renew(host, { restarts: true });
    expect(stops).toEqual(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);
    expect(warnings).toEqual([]);
    const some = hostWithPods();
    await renew(some.host, { names: ['admin.conf', 'apiserver', 'scheduler.conf'], restarts: true });
    expect(some.stops).toEqual(['kube-apiserver', 'kube-scheduler']);
  });

  it('stops at a component that does not start again, and names it with its log', async () => {
    const { host, stops } = hostWithPods({ broken: 'kube-apiserver' });
    const error = await renew(host, { restarts: true }).catch((thrown: unknown) => thrown);
    expect(stops).toEqual(['etcd', 'kube-apiserver']);
    expect(error).toMatchObject({ exitCode: 1, problems: [{ code: 'STATIC_POD_NOT_RUNNING', host: 'node1' }] });
    expect((error as AppError).message).toMatch(
      /^node1: restart\/kube-apiserver: kube-apiserver does not work after the restart: no container of kube-apiserver runs after 36\ds\. Last line of its container log: exit: bad certificate\. The components after it were not restarted\. See crictl .* When kube-apiserver is healthy, rerun kubeletadm certs renew with --restart, without --expires-within: the certificates have been renewed already\. \[STATIC_POD_NOT_RUNNING\]$/,
    );
  });

  it('renews nothing if the container runtime cannot be asked', async () => {
    const { host, stops } = hostWithPods({ hasClient: false });
    await expect(renew(host, { restarts: true })).rejects.toMatchObject({ exitCode: 3, problems: [{ code: 'CONTAINER_RUNTIME_MUTE' }] });
    expect([host.performed, stops]).toEqual([[], []]);
  });

  it('keeps certificates outside of the configured limit', async () => {
    const host = fakeHost({ files: made });
    expect((await renew(host, { withinMs: 4 * 86_400_000 })).host.phases.map(({ plan }) => plan.noop)).toEqual(
      [...RENEWABLE_NAMES, 'restart'].map((name) => {
        const isSilent = name === 'restart' || name === 'kubeletadm-controller.conf';
        return isSilent ? undefined : 'the certificate is valid until 2031-01-01T00:00:00Z';
      }),
    );
    expect(host.performed).toEqual([]);
    await renew(host, { withinMs: 6 * 86_400_000 });
    expect(host.performed).toHaveLength(7 * 2 + 4);
  });

  it('skips missing certificates, and certificates of an external CA', async () => {
    const files = { ...made };
    delete files[`${PKI}/ca.key`];
    delete files['/etc/kubernetes/super-admin.conf'];
    const { host } = await renew(fakeHost({ files }), { names: ['apiserver', 'super-admin.conf', 'etcd-peer'] });
    expect(host.phases.map(({ phase, plan }) => `${phase}: ${plan.noop ?? plan.changes.length}`)).toEqual([
      `apiserver: its CA is external: the CA key ${PKI}/ca.key does not exist`,
      'etcd-peer: 2',
      'super-admin.conf: the certificate does not exist',
    ]);
  });

  it('masks keys, and shows reasons in the plan', async () => {
    const { host } = await renew(fakeHost({ files: made }), { dryRun: true });
    const text = JSON.stringify(planDocument([host], []));
    expect(text).not.toMatch(/PRIVATE KEY|client-key-data/);
    const reason = planDocument([host], []).hosts[0]?.changes.map((change) => String(change.reason)) ?? [];
    expect(reason).toHaveLength(18);
    expect(reason.filter((reason) => !reason.startsWith('renewed'))).toEqual([]);
  });

  it.each([
    [{ [`${PKI}/ca.key`]: made[`${PKI}/etcd/ca.key`] as string }, 'PKI_KEY_MISMATCH'],
    [{ [`${PKI}/ca.key`]: 'x' }, 'PKI_UNREADABLE'],
    [{ [`${PKI}/apiserver.crt`]: 'x' }, 'PKI_UNREADABLE'],
    [{ [`${PKI}/apiserver.crt`]: made[`${PKI}/ca.crt`] as string }, 'PKI_USAGES_UNKNOWN'],
  ])('rejects %j before any change', async (change, code) => {
    const host = fakeHost({ files: { ...made, ...change } });
    await expect(renew(host, { names: ['apiserver', 'etcd-peer'] })).rejects.toMatchObject({ exitCode: 3, code });
    expect(host.performed).toEqual([]);
  });

  it('restores the files when the disk is full', async () => {
    const host = fakeHost({ files: made });
    host.failAt(1);
    await expect(renew(host, { names: ['apiserver'] })).rejects.toThrow();
    expect(host.text(`${PKI}/apiserver.key`)).toBe(made[`${PKI}/apiserver.key`]);
    expect(host.text(`${PKI}/apiserver.crt`)).toBe(made[`${PKI}/apiserver.crt`]);
  });

  it('rejects a host that is not a control plane', async () => {
    const host = fakeHost({ name: 'node1' });
    const { refusals } = await renew(host, { dryRun: true });
    const message = `no certificate to renew: the host is not a control plane, because ${PKI}/apiserver.crt and the other control plane certificates do not exist`;
    expect(refusals).toMatchObject([{ host: 'node1', code: 'PKI_NO_CONTROL_PLANE', message }]);
    await expect(renew(host)).rejects.toMatchObject({ exitCode: 3 });
    expect((await renew(host, { names: ['apiserver'], dryRun: true })).refusals).toHaveLength(1);
  });

  it('skips a certificate that does not exist on a control plane', async () => {
    const { [`${PKI}/front-proxy-client.crt`]: _, ...files } = made;
    expect((await renew(fakeHost({ files }), { dryRun: true })).refusals).toEqual([]);
  });
});
