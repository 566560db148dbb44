import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { planPhases } from '../../../../src/host/apply-phases.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import { clientCertificateKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import { JOINING_KUBECONFIGS } from '../../../../src/kubeadm/pki/kubeconfig-list.ts';
import { preparePki } from '../../../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import { certificateIssuer } from '../../../../src/x509/adapters/certificate-issuer.ts';
import { BACKDATE_MS } from '../../../../src/x509/certificate-issuer.ts';
import { describeCertificate } from '../../../../src/x509/describe-certificate.ts';
import { makePki, NOW, PKI_PHASES, pkiContext, pkiNode, pkiOptions } from '../../../support/control-plane-pki.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const PKI = '/etc/kubernetes/pki';

/** The files of a node with a complete PKI, as the initial state of each case. */
const made = await makeAll();

async function makeAll(node = pkiNode()): Promise<Readonly<Record<string, string>>> {
  const host = fakeHost();
  await makePki(pkiContext(host), pkiOptions(node));
  return host.texts();
}

function without(...paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(made).filter(([path]) => !paths.includes(path)));
}

function kept(files: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => path.startsWith('/etc/kubernetes')));
}

describe('the PKI of a control plane', () => {
  it('contains all files of kubeadm, with their modes', async () => {
    const host = fakeHost();
    await makePki(pkiContext(host), pkiOptions(pkiNode()));
    const modes = [...host.files]
      .filter(([path, { type }]) => path.startsWith('/etc/kubernetes') && type === 'file')
      .map(([path, { mode, owner }]) => `${path.slice('/etc/kubernetes/'.length)} ${mode.toString(8)} ${owner}`);
    const pairs = ['ca', 'apiserver', 'apiserver-kubelet-client', 'front-proxy-ca', 'front-proxy-client', 'apiserver-etcd-client'];
    const etcd = ['etcd/ca', 'etcd/server', 'etcd/peer', 'etcd/healthcheck-client'];
    expect(modes.toSorted()).toEqual(
      [
        ...[...pairs, ...etcd].flatMap((name) => [`pki/${name}.crt 644 root:root`, `pki/${name}.key 600 root:root`]),
        ...['pki/sa.key 600 root:root', 'pki/sa.pub 600 root:root'],
        ...['admin', 'super-admin', 'kubelet', 'controller-manager', 'scheduler'].map((name) => `${name}.conf 600 root:root`),
      ].toSorted(),
    );
  });

  it('is planned once: a second run finds no changes', async () => {
    const host = fakeHost({ files: made });
    for (const [path, file] of host.files) if (/\.(?:key|conf)$/.test(path)) host.files.set(path, { ...file, mode: 0o600 });
    const context = pkiContext(host, fakeClock(new Date(NOW.getTime() + 300 * 86_400_000)));
    const prepared = await preparePki(context, pkiOptions(pkiNode()));
    expect([...prepared.problems, ...prepared.warnings]).toEqual([]);
    const plans = await planPhases(PKI_PHASES, context, prepared);
    expect(plans.flatMap(({ plan }) => plan.changes)).toEqual([]);
    expect(plans.every(({ plan }) => plan.noop !== undefined)).toBe(true);
  });

  it('is completed after any interruption, without replacing existing files', async () => {
    const whole = fakeHost();
    await makePki(pkiContext(whole), pkiOptions(pkiNode()));
    const count = whole.performed.length;
    expect(count).toBe(27);
    for (let n = 0; n < count; n += 5) {
      const host = fakeHost();
      host.failAt(n);
      await expect(makePki(pkiContext(host), pkiOptions(pkiNode()))).rejects.toThrow();
      const before = kept(host.texts());
      const again = await makePki(pkiContext(host), pkiOptions(pkiNode()));
      expect(again.problems).toEqual([]);
      expect(host.texts()).toMatchObject(before);
      expect(Object.keys(kept(host.texts())).toSorted()).toEqual(Object.keys(kept(made)).toSorted());
      expect((await preparePki(pkiContext(host), pkiOptions(pkiNode()))).problems).toEqual([]);
    }
  });

  it('issues a certificate for an existing key', async () => {
    const host = fakeHost({ files: without(`${PKI}/apiserver.crt`, `${PKI}/sa.pub`) });
    await makePki(pkiContext(host), pkiOptions(pkiNode()));
    expect(host.text(`${PKI}/apiserver.key`)).toBe(made[`${PKI}/apiserver.key`]);
    expect(host.text(`${PKI}/sa.pub`)).toBe(made[`${PKI}/sa.pub`]);
    expect(host.performed.map((operation) => 'path' in operation && operation.path)).toEqual([`${PKI}/apiserver.crt`, `${PKI}/sa.pub`]);
    expect((await preparePki(pkiContext(host), pkiOptions(pkiNode()))).problems).toEqual([]);
  });

  it('uses the configured validity, backdated by five minutes; kubeconfig certificates start with the CA', async () => {
    const later = new Date(NOW.getTime() + 86_400_000);
    const host = fakeHost({ files: without('/etc/kubernetes/admin.conf', `${PKI}/apiserver.crt`, `${PKI}/apiserver.key`) });
    const node = pkiNode({ certificateValidityPeriod: '48h', caCertificateValidityPeriod: '87600h' });
    const prepared = await makePki(pkiContext(host, fakeClock(later)), pkiOptions(node));
    const described = (name: string) => prepared.kubeconfigs.get(name)?.files[0]?.summary?.certificate;
    const stamp = (ms: number): string => new Date(ms).toISOString().replace('.000', '');
    expect(described('admin')).toMatchObject({
      notBefore: stamp(NOW.getTime() - BACKDATE_MS),
      notAfter: stamp(later.getTime() + 48 * 3_600_000),
    });
    expect(describeCertificate(host.text(`${PKI}/apiserver.crt`))).toMatchObject({
      notBefore: stamp(later.getTime() - BACKDATE_MS),
      notAfter: stamp(later.getTime() + 48 * 3_600_000),
    });
  });

  it.each([
    ['RSA-2048', 'rsaEncryption', 2048, 'RSA PRIVATE KEY'],
    ['RSA-3072', 'rsaEncryption', 3072, 'RSA PRIVATE KEY'],
    ['ECDSA-P256', 'id-ecPublicKey', 256, 'EC PRIVATE KEY'],
    ['ECDSA-P384', 'id-ecPublicKey', 384, 'EC PRIVATE KEY'],
  ] as const)('uses %s keys', async (encryptionAlgorithm, publicKey, bits, label) => {
    const only = { certificate: (name: string) => name === 'ca' || name === 'sa', kubeconfig: () => false };
    const prepared = await preparePki(pkiContext(), pkiOptions(pkiNode({ encryptionAlgorithm }), { generates: only }));
    expect(prepared.certificates.get('ca')?.files[1]?.summary?.certificate).toMatchObject({ publicKey, bits });
    expect(prepared.textAt(`${PKI}/ca.key`)?.reveal()).toMatch(new RegExp(`^-----BEGIN ${label}-----\n`));
    expect(prepared.textAt(`${PKI}/sa.key`)?.reveal()).toMatch(new RegExp(`^-----BEGIN ${label}-----\n`));
    expect(prepared.textAt(`${PKI}/sa.pub`)?.reveal()).toMatch(/^-----BEGIN PUBLIC KEY-----\n/);
  });

  it('contains no etcd certificates when etcd is external', async () => {
    const node = pkiNode({ etcd: { external: { endpoints: ['https://10.0.0.9:2379'] } } });
    const context = pkiContext();
    const prepared = await preparePki(context, pkiOptions(node));
    expect([...prepared.certificates.keys()]).toEqual([
      'ca',
      'apiserver',
      'apiserver-kubelet-client',
      'front-proxy-ca',
      'front-proxy-client',
      'sa',
    ]);
    const plans = await planPhases(PKI_PHASES, context, prepared);
    expect(plans.find(({ phase }) => phase === 'certs/etcd-server')?.plan.noop).toBe('not used by this cluster');
  });

  it('of a joining control plane is signed by the downloaded CAs', async () => {
    const shared = ['ca', 'front-proxy-ca', 'etcd/ca'].flatMap((name) => [`${PKI}/${name}.crt`, `${PKI}/${name}.key`]);
    const given = new Map([...shared, `${PKI}/sa.key`, `${PKI}/sa.pub`].map((path) => [path, made[path] as string]));
    const node = pkiNode({}, { nodeName: 'cp-2', localAPIEndpoint: { advertiseAddress: '192.168.56.11', bindPort: 6443 } });
    const prepared = await preparePki(pkiContext(), pkiOptions(node, { given, kubeconfigs: JOINING_KUBECONFIGS, joins: true }));
    expect(prepared.problems).toEqual([]);
    const files = [...prepared.certificates.values(), ...prepared.kubeconfigs.values()].flatMap((input) => input.files);
    expect(files.map(({ path }) => path).filter((path) => given.has(path))).toEqual([]);
    expect(files).toHaveLength(7 * 2 + 3);
    const peer = prepared.certificates.get('etcd-peer')?.files[1]?.summary?.certificate;
    expect(peer).toMatchObject({ subject: 'CN=cp-2', issuer: 'CN=etcd-ca' });
    expect(peer?.san).toContain('IP Address:192.168.56.11');
    const host = fakeHost({ files: Object.fromEntries([...given, ...files.map(({ path, content }) => [path, reveal(content)])]) });
    expect((await preparePki(pkiContext(host), pkiOptions(node, { kubeconfigs: JOINING_KUBECONFIGS }))).problems).toEqual([]);
  });
});

function reveal(content: string | { reveal(): string }): string {
  return typeof content === 'string' ? content : content.reveal();
}

describe('the plan of the PKI', () => {
  it('describes certificates and kubeconfigs, and contains no keys or secrets', async () => {
    const context = pkiContext();
    const prepared = await preparePki(context, pkiOptions(pkiNode()));
    const phases = await planPhases(PKI_PHASES, context, prepared);
    const document = planDocument([{ name: 'node1', phases }], []);
    const changes = document.hosts[0]?.changes ?? [];
    const change = (path: string) => changes.find((each) => each.path === path);
    expect(change(`${PKI}/ca.key`)).toEqual({
      kind: 'write-file',
      phase: 'certs/ca',
      path: `${PKI}/ca.key`,
      mode: '0600',
      owner: 'root:root',
      action: 'create',
      reason: 'does not exist',
    });
    expect(change('/etc/kubernetes/admin.conf')).toEqual({
      kind: 'write-file',
      phase: 'kubeconfig/admin',
      path: '/etc/kubernetes/admin.conf',
      mode: '0600',
      owner: 'root:root',
      action: 'create',
      kubeconfig: {
        cluster: 'kubernetes',
        server: 'https://192.168.56.10:6443',
        user: 'kubernetes-admin',
        currentContext: 'kubernetes-admin@kubernetes',
      },
      certificate: {
        subject: 'CN=kubernetes-admin,O=kubeadm:cluster-admins',
        issuer: 'CN=kubernetes',
        keyUsage: ['Digital Signature', 'Key Encipherment'],
        keyUsageCritical: true,
        extKeyUsage: ['TLS Web Client Authentication'],
        basicConstraints: ['CA:FALSE'],
        basicConstraintsCritical: true,
        notBefore: '2029-12-31T23:55:00Z',
        notAfter: '2031-01-01T00:00:00Z',
        publicKey: 'id-ecPublicKey',
        bits: 256,
      },
      reason: 'does not exist',
    });
    const text = JSON.stringify(document);
    expect(text).not.toMatch(/PRIVATE KEY/);
    const keys = changes.map(({ path }) => String(path)).filter((path) => path.endsWith('.key'));
    expect(keys).toHaveLength(11);
    for (const path of keys) {
      const secret = prepared.textAt(path)?.reveal().split('\n')[1] as string;
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(0, 40));
    }
    expect(JSON.stringify(phases)).not.toMatch(/PRIVATE KEY/);
  });
});

describe('invalid existing files are rejected in one line', () => {
  const other = makeAll();
  const files = (change: Readonly<Record<string, string | null>>): Record<string, string> =>
    Object.fromEntries(Object.entries({ ...made, ...change }).filter((entry): entry is [string, string] => entry[1] !== null));

  it.each<[name: string, change: (foreign: Readonly<Record<string, string>>) => Record<string, string | null>, lines: readonly string[]]>([
    [
      'a foreign CA',
      (foreign) => ({ [`${PKI}/front-proxy-ca.crt`]: foreign[`${PKI}/front-proxy-ca.crt`] as string }),
      [
        `${PKI}/front-proxy-ca.key does not match ${PKI}/front-proxy-ca.crt. Replace the key with that of this CA. [PKI_KEY_MISMATCH]`,
        `${PKI}/front-proxy-client.crt is signed by CN=front-proxy-ca, not by the CA in ${PKI}/front-proxy-ca.crt. Remove ${PKI}/front-proxy-client.crt and ${PKI}/front-proxy-client.key, then rerun the command: both files are generated again. [PKI_FOREIGN]`,
      ],
    ],
    [
      'a key of another certificate',
      (foreign) => ({ [`${PKI}/apiserver.key`]: foreign[`${PKI}/apiserver.key`] as string }),
      [
        `${PKI}/apiserver.key does not match ${PKI}/apiserver.crt. Remove ${PKI}/apiserver.crt and ${PKI}/apiserver.key, then rerun the command: both files are generated again. [PKI_KEY_MISMATCH]`,
      ],
    ],
    [
      'a certificate without its key',
      () => ({ [`${PKI}/apiserver.key`]: null }),
      [
        `${PKI}/apiserver.crt exists, but its private key ${PKI}/apiserver.key does not. Restore the key. Or remove ${PKI}/apiserver.crt and rerun the command: both files are generated again. [PKI_KEY_MISSING]`,
      ],
    ],
    [
      'a truncated certificate',
      () => ({ [`${PKI}/apiserver.crt`]: '-----BEGIN CERTIFICATE-----\nAAAA' }),
      [`${PKI}/apiserver.crt contains a certificate that cannot be read. Replace the file with a valid one. [PKI_UNREADABLE]`],
    ],
    [
      'an invalid certificate',
      () => ({ [`${PKI}/apiserver.crt`]: 'x' }),
      [`${PKI}/apiserver.crt contains no certificate. Replace the file with a valid one. [PKI_UNREADABLE]`],
    ],
    [
      'an invalid key',
      () => ({ [`${PKI}/sa.key`]: 'x' }),
      [`${PKI}/sa.key contains no private key (RSA or ECDSA, PEM, not encrypted). Replace the file with a valid one. [PKI_UNREADABLE]`],
    ],
    [
      'a CA that is not a CA certificate',
      () => ({
        [`${PKI}/etcd/ca.crt`]: made[`${PKI}/etcd/peer.crt`] as string,
        [`${PKI}/etcd/ca.key`]: made[`${PKI}/etcd/peer.key`] as string,
      }),
      [
        `${PKI}/etcd/ca.crt: the certificate of CN=cp-1 is not a CA certificate: its basic constraints or its key usage do not allow it to sign certificates. Replace the file with the CA certificate. [PKI_NOT_AUTHORITY]`,
      ],
    ],
    [
      'a public key of another key',
      (foreign) => ({ [`${PKI}/sa.pub`]: foreign[`${PKI}/sa.pub`] as string }),
      [
        `${PKI}/sa.key does not match ${PKI}/sa.pub. Remove ${PKI}/sa.pub and rerun the command, which generates a new file. [PKI_KEY_MISMATCH]`,
      ],
    ],
    [
      'a new CA that issued none of the existing files',
      (foreign) => ({ [`${PKI}/ca.crt`]: foreign[`${PKI}/ca.crt`] as string, [`${PKI}/ca.key`]: foreign[`${PKI}/ca.key`] as string }),
      [
        `the CA ${PKI}/ca.crt did not issue the existing files: ${PKI}/apiserver.crt, ${PKI}/apiserver-kubelet-client.crt, /etc/kubernetes/admin.conf, /etc/kubernetes/super-admin.conf, /etc/kubernetes/kubelet.conf, /etc/kubernetes/controller-manager.conf, /etc/kubernetes/scheduler.conf. Restore the CA that issued these files, or start over with kubeletadm reset. [PKI_AUTHORITY_REPLACED]`,
      ],
    ],
    [
      'a kubeconfig of another cluster',
      (foreign) => ({ '/etc/kubernetes/admin.conf': foreign['/etc/kubernetes/admin.conf'] as string }),
      [
        `/etc/kubernetes/admin.conf: it belongs to another cluster: it trusts the CA CN=kubernetes, not the CA in ${PKI}/ca.crt. Remove the file and rerun the command, which generates a new file. [PKI_KUBECONFIG_UNUSABLE]`,
      ],
    ],
    [
      'an invalid kubeconfig',
      () => ({ '/etc/kubernetes/scheduler.conf': 'kind: Pod\n' }),
      [
        '/etc/kubernetes/scheduler.conf: the file is not a kubeconfig: kind is Pod, expected Config. Remove the file and rerun the command, which generates a new file. [PKI_KUBECONFIG_UNUSABLE]',
      ],
    ],
    [
      'a missing CA',
      () => ({ [`${PKI}/ca.crt`]: null }),
      [
        `the CA certificate ${PKI}/ca.crt does not exist, but files that depend on it do: ${PKI}/apiserver.crt, ${PKI}/apiserver-kubelet-client.crt, /etc/kubernetes/admin.conf, /etc/kubernetes/super-admin.conf, /etc/kubernetes/kubelet.conf, /etc/kubernetes/controller-manager.conf, /etc/kubernetes/scheduler.conf. Restore the CA certificate and key, or start over with kubeletadm reset. [PKI_AUTHORITY_LOST]`,
      ],
    ],
    [
      'a CA without its key, with a missing certificate',
      () => ({ [`${PKI}/ca.key`]: null, [`${PKI}/apiserver.crt`]: null, [`${PKI}/apiserver.key`]: null }),
      [
        `${PKI}/apiserver.crt cannot be generated without the CA key ${PKI}/ca.key. If the CA is external, copy all certificates that it signs to the host. Otherwise copy the CA key to the host. [PKI_EXTERNAL_INCOMPLETE]`,
      ],
    ],
    [
      'the CA of a worker',
      () =>
        Object.fromEntries(
          Object.keys(made).flatMap((path) => (path === `${PKI}/ca.crt` || path === '/etc/kubernetes/kubelet.conf' ? [] : [[path, null]])),
        ),
      [
        `the host has joined a cluster as a worker: ${PKI}/apiserver.crt, ${PKI}/apiserver-kubelet-client.crt, ${PKI}/sa.key, /etc/kubernetes/admin.conf, /etc/kubernetes/super-admin.conf, /etc/kubernetes/controller-manager.conf, /etc/kubernetes/scheduler.conf cannot be generated without the CA key ${PKI}/ca.key. For a new cluster, first run kubeletadm reset. If the host is to be a control plane with an external CA, copy all certificates that it signs to the host. [PKI_EXTERNAL_INCOMPLETE]`,
      ],
    ],
  ])('%s', async (_, change, lines) => {
    const host = fakeHost({ files: files(change(await other)) });
    const { problems } = await preparePki(pkiContext(host), pkiOptions(pkiNode()));
    const { formatProblem } = await import('../../../../src/base/errors.ts');
    expect(problems.map(formatProblem).slice(0, lines.length)).toEqual(lines.map((line) => `node1: ${line}`));
    expect(host.performed).toEqual([]);
  });

  it('directories instead of files', async () => {
    const directory = { type: 'directory', mode: 0o755, owner: 'root:root' } as const;
    const host = fakeHost({ files: { ...made, [`${PKI}/sa.key`]: directory, '/etc/kubernetes/admin.conf': directory } });
    const { problems, warnings } = await preparePki(pkiContext(host), pkiOptions(pkiNode()));
    expect(problems.slice(0, 2).map(({ code, message }) => `${code} ${message}`)).toEqual([
      `NOT_A_FILE ${PKI}/sa.key is a directory, but must be a file`,
      'NOT_A_FILE /etc/kubernetes/admin.conf is a directory, but must be a file',
    ]);
    expect(warnings.filter(({ message }) => /\/(?:sa\.key|admin\.conf) /.test(message))).toEqual([]);
  });

  it('missing SANs of a certificate', async () => {
    const node = pkiNode({ controlPlaneEndpoint: 'api.example.org:6443', apiServer: { certSANs: ['10.9.9.9', 'fd00::1', '*.lab'] } });
    const { problems, warnings } = await preparePki(pkiContext(fakeHost({ files: made })), pkiOptions(node));
    expect(problems.map(({ code, message }) => `${code} ${message}`)).toEqual([
      `PKI_NAMES_MISSING ${PKI}/apiserver.crt lacks the SANs DNS:*.lab, DNS:api.example.org, IP:10.9.9.9, IP:fd00::1`,
    ]);
    expect(warnings.map(({ code }) => code).filter((code) => code !== 'PKI_KEY_READABLE')).toEqual([
      'PKI_OTHER_SERVER',
      'PKI_OTHER_SERVER',
    ]);
  });

  it('a clock in the past, and expired certificates', async () => {
    const problemsAt = async (at: string) =>
      (await preparePki(pkiContext(fakeHost({ files: made }), fakeClock(new Date(at))), pkiOptions(pkiNode()))).problems;
    const early = await problemsAt('2020-01-01T00:00:00Z');
    expect(early[0]).toEqual({
      host: 'node1',
      code: 'PKI_NOT_YET_VALID',
      message: `${PKI}/ca.crt is not valid before 2029-12-31T23:55:00Z; the current time is 2020-01-01T00:00:00Z`,
      hint: 'Synchronize the clock (timedatectl, chronyc)',
    });
    const late = await problemsAt('2031-06-01T00:00:00Z');
    expect(late.map(({ code }) => code)).toEqual(Array(7 + 5).fill('PKI_EXPIRED'));
    expect(late[0]?.hint).toBe(
      `Renew the certificate with kubeletadm certs renew apiserver, or remove ${PKI}/apiserver.crt and ${PKI}/apiserver.key and rerun the command: both files are generated again`,
    );
    expect(late.at(-1)?.message).toBe('the client certificate in /etc/kubernetes/scheduler.conf expired on 2031-01-01T00:00:00Z');
    expect((await problemsAt('2041-01-01T00:00:00Z'))[0]?.message).toBe(`${PKI}/ca.crt expired on 2039-12-30T00:00:00Z`);
  });

  it('private keys readable by others, as a warning', async () => {
    const files = Object.fromEntries(
      Object.entries(made).map(([path, content]) => [path, { type: 'file', mode: 0o600, owner: 'root:root', content }] as const),
    );
    const open = { ...files, [`${PKI}/ca.key`]: { ...files[`${PKI}/ca.key`], mode: 0o640 } as FileFact };
    const { warnings } = await preparePki(pkiContext(fakeHost({ files: open })), pkiOptions(pkiNode()));
    expect(warnings.map(({ message }) => message)).toEqual([
      `${PKI}/ca.key contains a private key and is readable by other users (mode 0640). Run chmod 600 ${PKI}/ca.key`,
    ]);
  });

  it("a kubelet.conf of another node, but not one that refers to the kubelet's own certificate file", async () => {
    const options = pkiOptions(pkiNode({}, { nodeName: 'cp-9' }), { generates: { certificate: () => false, kubeconfig: () => false } });
    const { problems } = await preparePki(pkiContext(fakeHost({ files: made })), options);
    expect(problems.map(({ message }) => message)).toContain(
      '/etc/kubernetes/kubelet.conf: it is for system:node:cp-1, but this node is system:node:cp-9',
    );
    const own = (made['/etc/kubernetes/kubelet.conf'] as string).replace(
      /client-certificate-data: .*\n {4}client-key-data: .*/,
      'client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem',
    );
    expect(own).toContain('kubelet-client-current');
    const host = fakeHost({ files: { ...made, '/etc/kubernetes/kubelet.conf': own } });
    expect((await preparePki(pkiContext(host), pkiOptions(pkiNode()))).problems).toEqual([]);
  });

  it('a single phase with a missing CA', async () => {
    const generates = { certificate: (name: string) => name === 'apiserver', kubeconfig: (name: string) => name === 'admin' };
    const { problems, certificates } = await preparePki(pkiContext(), pkiOptions(pkiNode(), { generates }));
    expect(problems.map(({ message, hint }) => `${message}. ${hint}`)).toEqual([
      `${PKI}/apiserver.crt needs the CA ${PKI}/ca.crt, which does not exist. Run the phase certs/ca first`,
      `/etc/kubernetes/admin.conf needs the CA ${PKI}/ca.crt, which does not exist. Run the phase certs/ca first`,
    ]);
    expect(certificates.get('apiserver')?.files).toEqual([]);
    const existing = fakeHost({ files: without(`${PKI}/ca.crt`, '/etc/kubernetes/admin.conf') });
    expect((await preparePki(pkiContext(existing), pkiOptions(pkiNode(), { generates }))).problems.map(({ code }) => code)).toEqual([
      'PKI_AUTHORITY_MISSING',
      'PKI_AUTHORITY_MISSING',
    ]);
  });
});

describe('an external CA', () => {
  it('is sufficient when all its certificates exist', async () => {
    const host = fakeHost({ files: without(`${PKI}/ca.key`, `${PKI}/etcd/ca.key`) });
    const prepared = await preparePki(pkiContext(host), pkiOptions(pkiNode()));
    expect(prepared.problems).toEqual([]);
    expect(prepared.externalCA).toBe(true);
    expect(prepared.externalFrontProxyCA).toBe(false);
  });

  it('is reported when it expires before its certificates', async () => {
    const host = fakeHost({ files: without(`${PKI}/apiserver.crt`, `${PKI}/apiserver.key`) });
    const context = pkiContext(host, fakeClock(new Date('2039-06-01T00:00:00Z')));
    const { warnings } = await preparePki(context, pkiOptions(pkiNode()));
    expect(warnings.map(({ message }) => message)).toContain(
      `the CA ${PKI}/ca.crt expires on 2039-12-30T00:00:00Z, before the certificate apiserver: after that date, both are invalid`,
    );
  });

  it('may be an intermediate CA: certificates must include the chain', async () => {
    const validity = { notBefore: NOW, notAfter: new Date(NOW.getTime() + 1e10) };
    const spec = { organizations: [], dnsNames: [], ipAddresses: [], usages: [], isCa: true, ...validity } as const;
    const [intermediateKey, leafKey] = [
      await certificateIssuer.generateKey('ECDSA-P256'),
      await certificateIssuer.generateKey('ECDSA-P256'),
    ];
    const root = { certificatePem: made[`${PKI}/ca.crt`] as string, keyPem: new Secret(made[`${PKI}/ca.key`] as string) };
    const intermediate = await certificateIssuer.issue({ ...spec, commonName: 'intermediate' }, intermediateKey, root);
    const client = { ...spec, commonName: 'system:kube-scheduler', usages: ['clientAuth'], isCa: false } as const;
    const leaf = await certificateIssuer.issue(client, leafKey, { certificatePem: intermediate, keyPem: intermediateKey });
    const kubeconfig = (certificatePem: string) =>
      clientCertificateKubeconfig({
        ...{ clusterName: 'kubernetes', server: 'https://192.168.56.10:6443', caPem: root.certificatePem, user: 'x' },
        ...{ certificatePem, keyPem: leafKey },
      }).reveal();
    const problemsWith = async (text: string) => {
      const files = { ...made, '/etc/kubernetes/scheduler.conf': text };
      return (await preparePki(pkiContext(fakeHost({ files }), fakeClock(new Date(NOW.getTime() + 60_000))), pkiOptions(pkiNode())))
        .problems;
    };
    expect(await problemsWith(kubeconfig(`${leaf}${intermediate}`))).toEqual([]);
    expect((await problemsWith(kubeconfig(leaf))).map(({ message }) => message)).toEqual([
      `/etc/kubernetes/scheduler.conf: its client certificate is not signed by the CA in ${PKI}/ca.crt`,
    ]);
  });
});
