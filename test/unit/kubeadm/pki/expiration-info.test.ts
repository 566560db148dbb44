import { describe, expect, it } from 'vitest';
import { expirationDocument, expirationInfo, expirationTables } from '../../../../src/kubeadm/pki/expiration-info.ts';
import { findCertificates } from '../../../../src/kubeadm/pki/renewable.ts';
import { validateControlPlane } from '../../../../src/kubeadm/pki/validate-certificates.ts';
import { makePki, pkiContext, pkiNode, pkiOptions } from '../../../support/control-plane-pki.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const CREATED = new Date('2026-11-21T23:16:05Z');
const later = (seconds: number): Date => new Date(CREATED.getTime() + seconds * 1000);
const node = pkiNode();
const places = { cluster: node.cluster, kubernetesDir: '/etc/kubernetes' };

const host = fakeHost();
await makePki(pkiContext(host, fakeClock(CREATED)), pkiOptions(node));
const other = fakeHost();
await makePki(pkiContext(other, fakeClock(CREATED)), pkiOptions(node));

function existing(change: Readonly<Record<string, string | null>> = {}) {
  const files: Readonly<Record<string, string | null>> = { ...host.texts(), ...change };
  const found = (path: string): string | null => files[path] ?? null;
  return { ...findCertificates(places, found), found };
}

const WITHOUT = { '/etc/kubernetes/super-admin.conf': null, '/etc/kubernetes/pki/front-proxy-ca.key': null };

// Output of kubeadm 1.36.2 for its own certificates.
const KUBEADM = `CERTIFICATE                  EXPIRES                  RESIDUAL TIME   CERTIFICATE AUTHORITY   EXTERNALLY MANAGED
admin.conf                   Nov 21, 2027 23:16 UTC   364d            ca                      no${' '.repeat(6)}
apiserver                    Nov 21, 2027 23:16 UTC   364d            ca                      no${' '.repeat(6)}
apiserver-etcd-client        Nov 21, 2027 23:16 UTC   364d            etcd-ca                 no${' '.repeat(6)}
apiserver-kubelet-client     Nov 21, 2027 23:16 UTC   364d            ca                      no${' '.repeat(6)}
controller-manager.conf      Nov 21, 2027 23:16 UTC   364d            ca                      no${' '.repeat(6)}
etcd-healthcheck-client      Nov 21, 2027 23:16 UTC   364d            etcd-ca                 no${' '.repeat(6)}
etcd-peer                    Nov 21, 2027 23:16 UTC   364d            etcd-ca                 no${' '.repeat(6)}
etcd-server                  Nov 21, 2027 23:16 UTC   364d            etcd-ca                 no${' '.repeat(6)}
front-proxy-client           Nov 21, 2027 23:16 UTC   364d            front-proxy-ca          yes${' '.repeat(5)}
scheduler.conf               Nov 21, 2027 23:16 UTC   364d            ca                      no${' '.repeat(6)}
!MISSING! super-admin.conf${' '.repeat(68)}

CERTIFICATE AUTHORITY   EXPIRES                  RESIDUAL TIME   EXTERNALLY MANAGED
ca                      Nov 18, 2036 23:16 UTC   9y              no${' '.repeat(6)}
etcd-ca                 Nov 18, 2036 23:16 UTC   9y              no${' '.repeat(6)}
front-proxy-ca          Nov 18, 2036 23:16 UTC   9y              yes${' '.repeat(5)}
`;

describe('expiration of control plane certificates', () => {
  it('is printed like kubeadm prints it', () => {
    const info = expirationInfo(existing(WITHOUT), later(2));
    expect(expirationTables(info)).toBe(KUBEADM);
    const document = expirationDocument(info) as Record<string, readonly object[]>;
    expect(document).toMatchObject({ apiVersion: 'output.kubeadm.k8s.io/v1alpha3', kind: 'CertificateExpirationInfo' });
    expect(document.certificates?.[0]).toEqual({
      name: 'admin.conf',
      expirationDate: '2027-11-21T23:16:05Z',
      residualTime: 31535998,
      externallyManaged: false,
      caName: 'ca',
      missing: false,
    });
    expect(document.certificates?.at(-1)).toEqual({
      name: 'super-admin.conf',
      expirationDate: null,
      residualTime: 0,
      externallyManaged: false,
      missing: true,
    });
    expect(document.certificateAuthorities?.[2]).toEqual({
      name: 'front-proxy-ca',
      expirationDate: '2036-11-18T23:16:05Z',
      residualTime: 315359998,
      externallyManaged: true,
      missing: false,
    });
  });

  it('omits the certificates of an external etcd', () => {
    const cluster = pkiNode({ etcd: { external: { endpoints: ['https://10.0.0.9:2379'] } } }).cluster;
    const { certificates, cas } = findCertificates({ ...places, cluster }, () => null);
    expect(certificates.map(({ name }) => name)).toEqual([
      'admin.conf',
      'apiserver',
      'apiserver-kubelet-client',
      'controller-manager.conf',
      'front-proxy-client',
      'scheduler.conf',
      'super-admin.conf',
    ]);
    expect(cas.map(({ name }) => name)).toEqual(['ca', 'front-proxy-ca']);
  });
});

describe('validation of control plane certificates', () => {
  const notes = (change: Readonly<Record<string, string | null>>, now = later(60), withinMs = 0) =>
    validateControlPlane(existing(change), { now, withinMs }).flatMap((one) => one.notes.map((note) => `${one.role}: ${note}`));

  it('finds no problem in valid files', () => {
    expect(notes({})).toEqual([]);
    expect(notes(WITHOUT)).toEqual([]);
    expect(validateControlPlane(existing(), { now: later(60), withinMs: 0 })).toHaveLength(13);
  });

  it('returns nothing for a host that is not a control plane', () => {
    const found = (path: string): string | null => (path === '/etc/kubernetes/pki/ca.crt' ? 'x' : null);
    expect(validateControlPlane({ ...findCertificates(places, found), found }, { now: CREATED, withinMs: 0 })).toEqual([]);
  });

  it('reports each problem', () => {
    const PKI = '/etc/kubernetes/pki';
    expect(notes({ [`${PKI}/apiserver.key`]: other.text(`${PKI}/apiserver.key`), [`${PKI}/etcd/peer.key`]: null })).toEqual([
      'apiserver: the private key does not match the certificate',
      'etcd-peer: its private key does not exist',
    ]);
    expect(notes({ '/etc/kubernetes/admin.conf': other.text('/etc/kubernetes/admin.conf'), [`${PKI}/etcd/ca.crt`]: 'x' })).toEqual([
      'admin.conf: not issued by the CA on this host (CN=kubernetes)',
      'etcd-ca: contains no certificate',
    ]);
    expect(notes({}, later(366 * 86_400)).slice(0, 2)).toEqual([
      'admin.conf: expired on 2027-11-21T23:16:05.000Z',
      'apiserver: expired on 2027-11-21T23:16:05.000Z',
    ]);
    expect(notes({}, later(0), 366 * 86_400_000)).toHaveLength(11);
  });
});
