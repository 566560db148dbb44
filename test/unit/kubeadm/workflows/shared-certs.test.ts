import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { Secret, SensitiveText } from '../../../../src/base/text/secret.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { downloadCertsPhase } from '../../../../src/kubeadm/phases/pki.ts';
import { uploadCerts } from '../../../../src/kubeadm/phases/upload-certs.ts';
import { encryptWithCertificateKey, NONCE_BYTES } from '../../../../src/kubeadm/pki/certificate-key.ts';
import { sharedFiles } from '../../../../src/kubeadm/pki/shared-files.ts';
import { preparePki } from '../../../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import {
  downloadCerts,
  newCertificateKey,
  prepareUpload,
  type UploadOptions,
} from '../../../../src/kubeadm/workflows/certificates/shared-certs.ts';
import { certificateIssuer } from '../../../../src/x509/adapters/certificate-issuer.ts';
import { makePki, NOW, pkiContext, pkiNode, pkiOptions } from '../../../support/control-plane-pki.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { patched } from '../../../support/patched-certificate.ts';

const PKI = '/etc/kubernetes/pki';
const KEY = new Secret('e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204');
const CERTS = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: 'kubeadm-certs' } as const;
const node = pkiNode();

const first = fakeHost();
await makePki(pkiContext(first), pkiOptions(node));

interface Upload {
  readonly shown: readonly string[];
  readonly changes: number;
  readonly noop: string | undefined;
}

async function upload(cluster: FakeCluster, some: Partial<UploadOptions> = {}, host: FakeHost = first): Promise<Upload> {
  const context: PhaseContext = { ...pkiContext(host), cluster };
  const shown: string[] = [];
  const pki = await preparePki(context, pkiOptions(node));
  const { input, problems } = await prepareUpload(context, {
    cluster: node.cluster,
    pki,
    issuer: certificateIssuer,
    certificateKey: KEY,
    freshToken: new Secret('proxy1.0123456789abcdef'),
    now: NOW,
    show: (key) => shown.push(key.reveal()),
    ...some,
  });
  if (problems.length > 0) throw new AppError(problems);
  const planned = await planPhases([uploadCerts], context, input);
  const text = JSON.stringify([planned, planDocument([{ name: 'n', phases: planned }], [])]);
  expect(text).not.toContain(KEY.reveal());
  expect(JSON.stringify(planDocument([{ name: 'n', phases: planned }], []))).not.toMatch(/MDEyM|0123456789abcdef/);
  await applyPhases([uploadCerts], context, input, planned);
  return { shown, changes: planned[0]?.plan.changes.length ?? 0, noop: planned[0]?.plan.noop };
}

describe('upload-certs', () => {
  it('creates the objects of kubeadm: a token without usages, its Secret, and the RBAC rules to read it', async () => {
    const cluster = fakeCluster();
    expect(await upload(cluster)).toEqual({ shown: [KEY.reveal()], changes: 4, noop: undefined });
    const token = await cluster.get({ ...CERTS, name: 'bootstrap-token-proxy1' });
    const decode = (data: unknown) =>
      Object.fromEntries(
        Object.entries(data as Record<string, string>).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
      );
    expect(decode(token?.data)).toEqual({
      'token-id': 'proxy1',
      'token-secret': '0123456789abcdef',
      description: 'Proxy for managing TTL for the kubeadm-certs secret',
      expiration: '2030-01-01T02:00:00Z',
    });
    const certs = await cluster.get(CERTS);
    expect(certs?.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'v1',
        kind: 'Secret',
        name: 'bootstrap-token-proxy1',
        uid: token?.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    expect(Object.keys(certs?.data as object).toSorted()).toEqual(
      ['ca.crt', 'ca.key', 'etcd-ca.crt', 'etcd-ca.key', 'front-proxy-ca.crt', 'front-proxy-ca.key', 'sa.key', 'sa.pub'].toSorted(),
    );
    const binding = await cluster.get({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      namespace: 'kube-system',
      name: 'kubeadm:kubeadm-certs',
    });
    expect(binding?.subjects).toEqual([
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:bootstrappers:kubeadm:default-node-token' },
    ]);
  });

  it('is unchanged while the key decrypts it and the Secret is valid; uploads again with another key or near expiration', async () => {
    const cluster = fakeCluster();
    await upload(cluster);
    const soon = { freshToken: new Secret('proxy2.0123456789abcdef') };
    expect(await upload(cluster, soon)).toEqual({
      shown: [KEY.reveal()],
      changes: 0,
      noop: 'the uploaded certificates are current and the certificate key decrypts them',
    });
    expect(await upload(cluster, { ...soon, now: new Date(NOW.getTime() + 115 * 60_000) })).toMatchObject({ changes: 2 });
    const made = await upload(cluster, { certificateKey: null, freshToken: new Secret('proxy3.0123456789abcdef') });
    expect(made).toMatchObject({ changes: 2 });
    expect(made.shown[0]).toMatch(/^[0-9a-f]{64}$/);
    expect((await cluster.get(CERTS))?.metadata.ownerReferences).toMatchObject([{ name: 'bootstrap-token-proxy3' }]);
  });

  it('is skipped by default, and planned for a cluster that does not exist yet', async () => {
    const context = pkiContext(first);
    expect((await planPhases([uploadCerts], context, null))[0]?.plan).toEqual({
      changes: [],
      noop: 'not requested (--upload-certs)',
    });
    const options = {
      ...{ cluster: node.cluster, issuer: certificateIssuer, certificateKey: KEY, now: NOW, show: () => {} },
      ...{ pki: await preparePki(context, pkiOptions(node)), freshToken: new Secret('proxy1.0123456789abcdef') },
    };
    const [planned] = await planPhases([uploadCerts], context, (await prepareUpload(context, options)).input);
    expect(planned?.plan.changes).toHaveLength(4);
  });

  it('is rejected with an external CA', async () => {
    const host = fakeHost({ files: Object.fromEntries(Object.entries(first.texts()).filter(([path]) => path !== `${PKI}/ca.key`)) });
    await expect(upload(fakeCluster(), {}, host)).rejects.toThrow(/PKI_UPLOAD_EXTERNAL/);
  });

  it('reads the credentials for external etcd from their configured paths', async () => {
    const external = { endpoints: ['https://10.0.0.9:2379'], caFile: '/e/ca', certFile: '/e/crt', keyFile: '/e/key' };
    expect(sharedFiles(pkiNode({ etcd: { external } }).cluster).slice(-3)).toEqual([
      { entry: 'external-etcd-ca.crt', path: '/e/ca' },
      { entry: 'external-etcd.crt', path: '/e/crt' },
      { entry: 'external-etcd.key', path: '/e/key' },
    ]);
  });
});

describe('download-certs', () => {
  const download = async (cluster: FakeCluster, host: FakeHost, certificateKey: Secret | null = KEY) => {
    const context: PhaseContext = { ...pkiContext(host), cluster };
    return downloadCerts(context, { clusterConfiguration: node.cluster, cluster, certificateKey, mayChown: true });
  };
  const codeOf = (promise: Promise<unknown>) =>
    promise.then(
      () => 'none',
      (error: AppError) => `${error.exitCode} ${error.code}`,
    );

  it('installs the shared files on a joining control plane', async () => {
    const cluster = fakeCluster();
    await upload(cluster);
    const host = fakeHost();
    const { input, files, problems } = await download(cluster, host);
    expect(problems).toEqual([]);
    const context = pkiContext(host);
    await applyPhases([downloadCertsPhase], context, input, await planPhases([downloadCertsPhase], context, input));
    for (const { path } of sharedFiles(node.cluster)) {
      expect(host.text(path)).toBe(first.text(path));
      expect(files.get(path)?.reveal()).toBe(first.text(path));
      expect(host.files.get(path)?.mode).toBe(path.endsWith('.key') ? 0o600 : 0o644);
    }
    // A resumed join does not need the Secret.
    await cluster.delete(CERTS);
    expect((await download(cluster, host)).input.files).toEqual([]);
  });

  it('reports errors before any change', async () => {
    const cluster = fakeCluster();
    expect(await codeOf(download(cluster, fakeHost()))).toBe('3 PKI_NOT_UPLOADED');
    await upload(cluster);
    expect(await codeOf(download(cluster, fakeHost(), newCertificateKey(certificateIssuer)))).toBe('3 PKI_WRONG_CERTIFICATE_KEY');
    const other = fakeHost();
    await makePki(pkiContext(other), pkiOptions(node));
    const left = fakeHost({ files: { [`${PKI}/ca.crt`]: other.text(`${PKI}/ca.crt`) } });
    expect((await download(cluster, left)).problems.map(({ code, message }) => `${code} ${message}`)).toEqual([
      `PKI_SHARED_DIFFERS ${PKI}/ca.crt differs from the file of the cluster`,
    ]);
    const certs = (await cluster.get(CERTS)) as KubeObject;
    const { 'sa.key': _, ...data } = certs.data as Record<string, string>;
    await cluster.update({ ...certs, data });
    await expect(download(cluster, fakeHost())).rejects.toThrow(/has no sa\.key/);
  });

  it('reports a certificate whose public key cannot be decoded', async () => {
    const cluster = fakeCluster();
    await upload(cluster);
    const certs = (await cluster.get(CERTS)) as KubeObject;
    // A point in no known form.
    const damaged = patched(first.text(`${PKI}/ca.crt`) ?? '', '03420004', '03420009');
    const encrypted = encryptWithCertificateKey(new SensitiveText([damaged]), KEY, new Uint8Array(NONCE_BYTES));
    await cluster.update({ ...certs, data: { ...(certs.data as object), 'ca.crt': Buffer.from(encrypted).toString('base64') } });
    expect((await download(cluster, fakeHost())).problems).toMatchObject([{ code: 'PKI_UNREADABLE' }]);
  });

  it('without a key relies on copied files, and reports missing ones', async () => {
    const host = fakeHost();
    const { input } = await download(fakeCluster(), host, null);
    expect(input.skipped).toBe('no --certificate-key was given: the certificates must already be on the host');
    const { problems } = await preparePki(pkiContext(host), pkiOptions(node, { joins: true }));
    expect(problems.map(({ message, hint }) => `${message}. ${hint}`)).toEqual([
      `${PKI}/ca.crt, ${PKI}/front-proxy-ca.crt, ${PKI}/etcd/ca.crt, ${PKI}/sa.key, ${PKI}/sa.pub: not found; all control planes must share these files. To download the files, pass --certificate-key with the key that kubeletadm init phase upload-certs --upload-certs prints on a control plane. Or copy the files from a control plane`,
    ]);
  });
});
