import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import { parseKubeconfig } from '../../../../src/kube/kubeconfig.ts';
import { clientCertificateKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import { CERTIFICATES, certificateParametersOf, specOf } from '../../../../src/kubeadm/pki/certificate-list.ts';
import { clientSpecOf, KUBECONFIGS, serverOf } from '../../../../src/kubeadm/pki/kubeconfig-list.ts';
import { generateCsrWorkflow } from '../../../../src/kubeadm/workflows/certificates/generate-csr.ts';
import { preparePki } from '../../../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import { certificateIssuer } from '../../../../src/x509/adapters/certificate-issuer.ts';
import { readCertificateRequest } from '../../../../src/x509/certificate-request.ts';
import { NOW, pkiContext, pkiNode, pkiOptions } from '../../../support/control-plane-pki.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';

const PKI = '/etc/kubernetes/pki';
const COMMANDS = { id: { stdout: '0\n' }, uname: { exitCode: 0, stdout: 'CP-1\n' }, ip: { exitCode: 1 }, hostname: { exitCode: 1 } };
const newHost = (files: Readonly<Record<string, string>> = {}): FakeHost => fakeHost({ commands: COMMANDS, files });

async function generate(host: FakeHost, dryRun = false) {
  const options = {
    issuer: certificateIssuer,
    init: { localAPIEndpoint: { advertiseAddress: '192.168.56.10' } },
    cluster: { encryptionAlgorithm: 'ECDSA-P256', controlPlaneEndpoint: 'api.example.org' } as const,
    kubernetesDir: '/etc/kubernetes',
  };
  return runWorkflow(generateCsrWorkflow, pkiContext(host), options, { dryRun, skipPhases: [] });
}

describe('certs generate-csr', () => {
  it('generates keys and CSRs with the SANs of the certificates, and kubeconfigs without certificates', async () => {
    const host = newHost();
    await generate(host);
    const texts = Object.keys(host.texts()).filter((path) => path.startsWith('/etc/kubernetes'));
    expect(texts).toHaveLength(7 * 2 + 5 * 2);
    expect(texts.every((path) => host.files.get(path)?.mode === 0o600)).toBe(true);
    const request = readCertificateRequest(host.text(`${PKI}/apiserver.csr`));
    expect(request?.commonNames).toEqual(['kube-apiserver']);
    expect(request?.dnsNames).toEqual([
      'api.example.org',
      'cp-1',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
    ]);
    expect(request?.ipAddresses).toEqual(['10.96.0.1', '192.168.56.10']);
    expect(readCertificateRequest(host.text('/etc/kubernetes/admin.conf.csr'))).toMatchObject({
      commonNames: ['kubernetes-admin'],
      organizations: ['kubeadm:cluster-admins'],
    });
    const [user] = parseKubeconfig(host.text('/etc/kubernetes/admin.conf'), 'admin.conf').users;
    expect(user?.certData).toBeUndefined();
    expect(Buffer.from(user?.keyData?.reveal() ?? '', 'base64').toString()).toMatch(/^-----BEGIN EC PRIVATE KEY-----/);
  });

  it('keeps existing keys, and generates missing CSRs', async () => {
    const host = newHost();
    await generate(host);
    const before = host.texts();
    expect((await generate(host)).host.phases.map(({ plan }) => plan.changes.length)).toEqual([0, 0]);
    for (const path of [`${PKI}/etcd/peer.csr`, '/etc/kubernetes/scheduler.conf.csr']) host.files.delete(path);
    await generate(host);
    expect(host.text(`${PKI}/etcd/peer.key`)).toBe(before[`${PKI}/etcd/peer.key`]);
    expect(host.text('/etc/kubernetes/scheduler.conf')).toBe(before['/etc/kubernetes/scheduler.conf']);
    expect(readCertificateRequest(host.text(`${PKI}/etcd/peer.csr`))?.commonNames).toEqual(['cp-1']);
    expect(readCertificateRequest(host.text('/etc/kubernetes/scheduler.conf.csr'))?.commonNames).toEqual(['system:kube-scheduler']);
  });

  it('generates another CSR for another key, and rejects an invalid key', async () => {
    const stale = newHost({ [`${PKI}/apiserver.csr`]: 'of a deleted key' });
    await generate(stale);
    expect(readCertificateRequest(stale.text(`${PKI}/apiserver.csr`))).not.toBeNull();
    const damaged = newHost({ [`${PKI}/apiserver.key`]: 'x', '/etc/kubernetes/admin.conf': 'kind: Config\n' });
    await expect(generate(damaged)).rejects.toThrow(/PKI_UNREADABLE.*\n.*admin\.conf: it contains no client key to create a CSR with/);
    expect(damaged.performed).toEqual([]);
  });

  it('masks keys', async () => {
    const { host } = await generate(newHost(), true);
    expect(JSON.stringify(planDocument([host], []))).not.toMatch(/PRIVATE KEY|client-key-data/);
  });

  it('prepares an init with an external CA, once the CSRs are signed', async () => {
    const host = newHost();
    await generate(host);
    const node = pkiNode({ controlPlaneEndpoint: 'api.example.org' });
    const options = pkiOptions(node);
    const terms = certificateParametersOf(node.cluster, NOW);
    const cas = new Map<string, { certificatePem: string; keyPem: Secret }>();
    const file = (path: string, content: string) => host.files.set(path, { type: 'file', mode: 0o600, owner: 'root:root', content });
    for (const definition of CERTIFICATES) {
      const spec = specOf(definition, node, terms);
      const path = `${PKI}/${definition.baseName}`;
      if (definition.ca === null) {
        const keyPem = await certificateIssuer.generateKey('ECDSA-P256');
        const certificatePem = await certificateIssuer.issue(spec, keyPem, 'self');
        cas.set(definition.name, { certificatePem, keyPem });
        file(`${path}.crt`, certificatePem);
      } else {
        const signer = cas.get(definition.ca) as { certificatePem: string; keyPem: Secret };
        file(`${path}.crt`, await certificateIssuer.issue(spec, new Secret(host.text(`${path}.key`)), signer));
      }
    }
    // Missing kubeconfig certificates and service account keys are reported.
    const { problems } = await preparePki(pkiContext(host), options);
    expect(problems.map(({ code }) => code)).toEqual(['PKI_EXTERNAL_INCOMPLETE', ...KUBECONFIGS.map(() => 'PKI_KUBECONFIG_UNUSABLE')]);
    const ca = cas.get('ca') as { certificatePem: string; keyPem: Secret };
    for (const definition of KUBECONFIGS) {
      const path = `/etc/kubernetes/${definition.file}`;
      const [user] = parseKubeconfig(host.text(path), path).users;
      const keyPem = new Secret(Buffer.from(user?.keyData?.reveal() ?? '', 'base64').toString());
      const certificatePem = await certificateIssuer.issue(clientSpecOf(definition, node, { ...terms, caNotBefore: NOW }), keyPem, ca);
      const kubeconfig = {
        clusterName: 'kubernetes',
        server: serverOf(definition, node),
        caPem: ca.certificatePem,
        user: user?.name ?? '',
      };
      file(path, clientCertificateKubeconfig({ ...kubeconfig, certificatePem, keyPem }).reveal());
    }
    const sa = await certificateIssuer.generateKey('ECDSA-P256');
    file(`${PKI}/sa.key`, sa.reveal());
    file(`${PKI}/sa.pub`, certificateIssuer.publicKeyOf(sa));
    const ready = await preparePki(pkiContext(host), options);
    expect(ready.problems).toEqual([]);
    expect(ready.externalCA && ready.externalFrontProxyCA).toBe(true);
    expect([...ready.certificates.values(), ...ready.kubeconfigs.values()].flatMap(({ files }) => files)).toEqual([]);
  });
});
