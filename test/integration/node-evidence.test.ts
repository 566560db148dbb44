import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import { observe } from '../../src/host/access/observe.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { Transport } from '../../src/host/transport.ts';
import { challengeOf, type NodeProof, proveNode } from '../../src/kubeadm/node-identity/node-identity.ts';
import { type NodeEvidence, nodeEvidence } from '../../src/kubelet/facts/node-evidence.ts';
import { readCertificateChain } from '../../src/x509/read-certificate.ts';
import { requirement } from '../support/requirement.ts';
import { shellTransport } from '../support/shell-transport.ts';
import { findProgram, SHELLS } from '../support/shells.ts';

const CURRENT = 'var/lib/kubelet/pki/kubelet-client-current.pem';
const CONF = 'etc/kubernetes/kubelet.conf';
const nonce = (): string => randomBytes(8).toString('hex');

/** Hosts are directories; their programs are those of the local host. */
describe('evidence of a host for its Node', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-evidence-'));
  let ca: string;
  let ec: { readonly certPem: string; readonly keyPem: string };
  let count = 0;

  beforeAll(async () => {
    const clusterCa = await createCa();
    ca = clusterCa.certPem;
    ec = await clusterCa.issueClient({ commonName: 'system:node:n1', organizations: ['system:nodes'] });
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  function newRoot(files: Readonly<Record<string, string>>): string {
    const root = join(directory, `root ${++count}`);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return root;
  }

  interface Asked {
    readonly evidence: NodeEvidence;
    readonly challenge: string;
    /** The complete output of the host. */
    readonly output: string;
  }

  async function query(root: string, { transport = shellTransport({ shell: ['/bin/sh'] }), kubeconfig = `/${CONF}` } = {}): Promise<Asked> {
    let output = '';
    const listening: Transport = {
      ...transport,
      run: async (argv, options) => {
        const result = await transport.run(argv, options);
        output += Buffer.concat([result.stdout, result.stderr]).toString('utf8');
        return result;
      },
    };
    const host = hostOverTransport(inRoot(listening, root), { nonce });
    const challenge = challengeOf(nonce());
    return { evidence: await observe(host, nodeEvidence(challenge, kubeconfig)), challenge, output };
  }

  /** Like the hosts of the lab: a variable contains the path of the root. */
  function inRoot(transport: Transport, root: string): Transport {
    return {
      ...transport,
      run: ([shell = '', option = '', line = '', ...rest], options) =>
        transport.run([shell, option, `KUBELETADM_ROOT='${root}'; export KUBELETADM_ROOT; ${line}`, ...rest], options),
    };
  }

  const validate = ({ evidence, challenge }: Asked, trusted = ca): NodeProof =>
    proveNode(evidence, { cas: readCertificateChain(trusted) ?? [], challenge, now: new Date() });
  const conf = (user: string): string => `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: https://api:6443 } }]
users:
- name: default-auth
  user:
    ${user}
`;
  const named = conf(`client-certificate: /${CURRENT}\n    client-key: /${CURRENT}`);

  describe.each(SHELLS)('in $name', (shell) => {
    it.skipIf(requirement(`the evidence in ${shell.name}`, shell.missing))('is found and signed', async () => {
      const options = shell.options(directory);
      const path = join(directory, `${shell.name} openssl`);
      mkdirSync(path);
      symlinkSync(findProgram('openssl') ?? '', join(path, 'openssl'));
      const env = { ...options.env, PATH: `${options.env?.PATH ?? process.env.PATH}:${path}` };
      const root = newRoot({ [CONF]: named, [CURRENT]: ec.certPem + ec.keyPem, 'etc/machine-id': 'abc\n' });
      const asked = await query(root, { transport: shellTransport({ ...options, env }) });
      expect(asked.evidence).toMatchObject({ source: `/${CURRENT}`, machineId: 'abc', certificate: ec.certPem });
      expect(validate(asked)).toEqual({ kind: 'proven', nodeName: 'n1' });
      expect(asked.output).not.toContain('PRIVATE KEY');
      expect(asked.output).not.toContain(ec.keyPem.split('\n')[1]);
    });
  });

  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  it.each<[string, (pair: typeof ec) => Readonly<Record<string, string>>, string]>([
    [
      'in kubelet.conf itself',
      ({ certPem, keyPem }) => ({ [CONF]: conf(`client-certificate-data: ${base64(certPem)}\n    client-key-data: ${base64(keyPem)}`) }),
      `/${CONF}`,
    ],
    [
      'in separate files with quoted paths',
      ({ certPem, keyPem }) => ({
        [CONF]: conf(`client-certificate: "/etc/k/c.crt"\n    client-key: '/etc/k/c.key'`),
        'etc/k/c.crt': certPem,
        'etc/k/c.key': keyPem,
      }),
      '/etc/k/c.crt',
    ],
    [
      'next to kubelet.conf',
      ({ certPem, keyPem }) => ({ [CONF]: conf('client-certificate: pki/c.pem'), 'etc/kubernetes/pki/c.pem': certPem + keyPem }),
      '/etc/kubernetes/pki/c.pem',
    ],
    ["in the kubelet's pki directory", ({ certPem, keyPem }) => ({ [CONF]: conf('{}'), [CURRENT]: keyPem + certPem }), `/${CURRENT}`],
  ])('is found %s', async (_, files, source) => {
    const asked = await query(newRoot(files(ec)));
    expect(asked.evidence.source).toBe(source);
    expect(validate(asked)).toEqual({ kind: 'proven', nodeName: 'n1' });
    expect(asked.output).not.toContain(ec.keyPem.split('\n')[1]);
  });

  it('is found by another kubeconfig', async () => {
    const root = newRoot({ 'var/lib/kubelet/kubeconfig': named, [CURRENT]: ec.certPem + ec.keyPem });
    expect(validate(await query(root, { kubeconfig: '/var/lib/kubelet/kubeconfig' }))).toEqual({ kind: 'proven', nodeName: 'n1' });
    expect((await query(root)).evidence).toMatchObject({ source: null, certificate: null, signature: null });
  });

  it('is signed with an RSA key', async () => {
    const at = (name: string): string => join(directory, name);
    const openssl = (...args: string[]): string => execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', at('ca.key'), '-out', at('ca.crt'), '-subj', '/CN=kubernetes');
    openssl(
      'req',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      at('k.key'),
      '-out',
      at('k.csr'),
      '-subj',
      '/O=system:nodes/CN=system:node:n2',
    );
    writeFileSync(at('ext'), 'extendedKeyUsage=clientAuth\n');
    const ca2 = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at('ext')];
    const leaf = openssl('x509', '-req', '-in', at('k.csr'), ...ca2);
    const root = newRoot({ [CONF]: named, [CURRENT]: leaf + readFileSync(at('k.key'), 'utf8') });
    expect(validate(await query(root), readFileSync(at('ca.crt'), 'utf8'))).toEqual({ kind: 'proven', nodeName: 'n2' });
  });

  it('reports a host without certificate, key or openssl', async () => {
    expect(validate(await query(newRoot({})))).toMatchObject({ cause: 'missing', claimed: null });
    const lost = validate(await query(newRoot({ [CONF]: named })));
    expect(lost).toMatchObject({ cause: 'missing', why: `the host has no kubelet client certificate in /${CURRENT}` });
    const keyless = validate(await query(newRoot({ [CONF]: named, [CURRENT]: ec.certPem })));
    expect(keyless).toMatchObject({ cause: 'no-key', claimed: 'n1' });
    const tools = join(directory, 'no openssl');
    mkdirSync(tools);
    for (const name of ['sh', 'sed', 'head', 'cat', 'base64', 'tr', 'stat', 'readlink', 'printf', 'wc', 'rm', 'mktemp', 'dd', 'od'])
      symlinkSync(findProgram(name) ?? '', join(tools, name));
    const transport = shellTransport({ shell: ['/bin/sh'], env: { PATH: tools } });
    const bare = validate(await query(newRoot({ [CONF]: named, [CURRENT]: ec.certPem + ec.keyPem }), { transport }));
    expect(bare).toMatchObject({ cause: 'no-openssl', claimed: 'n1' });
  });

  it('reads the machine-id like the kubelet: the first existing file, even an empty one', async () => {
    const dbus = 'var/lib/dbus/machine-id';
    expect((await query(newRoot({ [dbus]: 'dbus\n' }))).evidence.machineId).toBe('dbus');
    expect((await query(newRoot({ [dbus]: 'dbus\n', 'etc/machine-id': '' }))).evidence.machineId).toBe('');
  });
});
