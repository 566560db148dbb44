import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/text/secret.ts';
import { applyPhases, planPhases } from '../../src/host/apply-phases.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { uploadCerts } from '../../src/kubeadm/phases/upload-certs.ts';
import { KUBEADM_CERTS, kubeadmCertsRbac, sharedFiles } from '../../src/kubeadm/pki/shared-files.ts';
import { preparePki } from '../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import { downloadCerts, prepareUpload } from '../../src/kubeadm/workflows/certificates/shared-certs.ts';
import { certificateIssuer } from '../../src/x509/adapters/certificate-issuer.ts';
import { makePki, pkiContext, pkiNode, pkiOptions } from '../support/control-plane-pki.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { type FakeHost, fakeHost } from '../support/fake-host.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
const missing = typeof binaries === 'string' ? binaries : kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : null;
const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';

/** The objects that kubeadm and kubeletadm upload, at a real API server. */
describe.skipIf(requirement('upload-certs compared with kubeadm', missing))('upload-certs compared with kubeadm', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-upload-'));
  const node = pkiNode({ certificatesDir: join(directory, 'pki') });
  let api: RealApiServer;
  let cluster: Cluster;
  let host: FakeHost;

  beforeAll(async () => {
    if (typeof binaries === 'string') return;
    api = await startRealApiServer(binaries);
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    host = fakeHost();
    await makePki(pkiContext(host, fakeClock(new Date())), pkiOptions(node));
    for (const { path } of sharedFiles(node.cluster)) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, host.text(path), { mode: 0o600 });
    }
    writeFileSync(join(directory, 'admin.conf'), api.adminKubeconfig(), { mode: 0o600 });
    writeFileSync(join(directory, 'init.yaml'), config(node.cluster.certificatesDir), { mode: 0o600 });
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await api?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const upload = async (token: string): Promise<readonly string[]> => {
    const now = new Date();
    const context = { ...pkiContext(host, fakeClock(now)), cluster };
    const { input, problems } = await prepareUpload(context, {
      ...{ cluster: node.cluster, pki: await preparePki(context, pkiOptions(node)), issuer: certificateIssuer, now },
      ...{ certificateKey: new Secret(KEY), freshToken: new Secret(token), show: () => {} },
    });
    expect(problems).toEqual([]);
    const planned = await planPhases([uploadCerts], context, input);
    await applyPhases([uploadCerts], context, input, planned);
    return planned.flatMap(({ plan }) => plan.changes.map(({ kind }) => kind));
  };
  const objects = () => Promise.all([KUBEADM_CERTS, ...kubeadmCertsRbac().map(refOf)].map((ref) => cluster.get(ref)));

  it('changes nothing after kubeadm, and decrypts its upload', async () => {
    const args = ['init', 'phase', 'upload-certs', '--upload-certs', '--config', join(directory, 'init.yaml')];
    const { status, stderr } = spawnSync(kubeadm as string, [...args, '--kubeconfig', join(directory, 'admin.conf')], { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    expect(await upload('proxy1.0123456789abcdef')).toEqual([]);
    const context = { ...pkiContext(fakeHost(), fakeClock(new Date())), cluster };
    const options = { clusterConfiguration: node.cluster, cluster, certificateKey: new Secret(KEY), mayChown: true };
    const { files, problems } = await downloadCerts(context, options);
    expect(problems).toEqual([]);
    expect(new Map([...files].map(([path, text]) => [path, text.reveal()]))).toEqual(
      new Map(sharedFiles(node.cluster).map(({ path }) => [path, host.text(path)])),
    );
  });

  it('creates the same objects as kubeadm', async () => {
    const theirs = await objects();
    for (const object of theirs) await cluster.delete(refOf(object as KubeObject));
    expect(await upload('proxy2.0123456789abcdef')).toEqual(['create-object', 'create-object', 'create-object', 'create-object']);
    expect((await objects()).map(comparable)).toEqual(theirs.map(comparable));
    const [certs] = await objects();
    const owner = await cluster.get({ ...KUBEADM_CERTS, name: 'bootstrap-token-proxy2' });
    expect(certs?.metadata.ownerReferences).toMatchObject([{ name: 'bootstrap-token-proxy2', uid: owner?.metadata.uid }]);
    expect(await upload('proxy3.0123456789abcdef')).toEqual([]);
  });
});

function config(certificatesDir: string): string {
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
certificateKey: ${KEY}
localAPIEndpoint:
  advertiseAddress: 192.168.56.10
nodeRegistration:
  name: cp-1
  criSocket: unix:///run/none.sock
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
certificatesDir: ${certificatesDir}
`;
}

function refOf({ apiVersion, kind, metadata }: KubeObject) {
  const { name, namespace } = metadata;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** The object without its varying parts: creation metadata, nonces and the token suffix. */
function comparable(object: KubeObject | null) {
  const { data, metadata, ...rest } = object as KubeObject;
  const { name, namespace, ownerReferences } = metadata;
  const owners = (ownerReferences as readonly Record<string, unknown>[] | undefined)?.map(({ uid: _uid, name: _name, ...each }) => each);
  const sizes =
    data === undefined
      ? null
      : Object.fromEntries(Object.entries(data as Record<string, string>).map(([key, value]) => [key, value.length]));
  return { ...rest, name, namespace, owners, sizes };
}
