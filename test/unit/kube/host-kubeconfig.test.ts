import { describe, expect, it } from 'vitest';
import { type CertificateAuthority, createCa, type KeyPair } from '../../../lab/api-server/pki.ts';
import { AppError, formatProblem } from '../../../src/base/errors.ts';
import { Secret, SensitiveText } from '../../../src/base/text/secret.ts';
import { type HostKubeconfig, type HostKubeconfigSource, rebuildHostKubeconfig } from '../../../src/kube/host-kubeconfig.ts';
import { parseKubeconfig, resolveContext } from '../../../src/kube/kubeconfig.ts';
import type { OperatorKubeconfig } from '../../../src/kube/operator-kubeconfig.ts';
import type { ClusterTarget } from '../../../src/kubeadm/control-plane/cluster-target.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const SERVER = 'https://10.0.0.1:6443';
const ADMIN_CONF = '/etc/kubernetes/admin.conf';

const ca: CertificateAuthority = await createCa();
const client: KeyPair = await ca.issueClient({ commonName: 'kubernetes-admin' });

const embedded = () => ({ 'client-certificate-data': base64(client.certPem), 'client-key-data': base64(client.keyPem) });
const caData = () => ({ 'certificate-authority-data': base64(ca.certPem) });

interface Entries {
  readonly cluster?: object;
  readonly user?: object | null;
  readonly name?: string;
  readonly more?: object;
}

function textOf({ cluster = caData(), user = embedded(), name = 'kubernetes-admin', more = {} }: Entries = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': `${name}@prod`,
    contexts: [{ name: `${name}@prod`, context: { cluster: 'prod', user: user === null ? '' : name } }],
    clusters: [{ name: 'prod', cluster: { server: SERVER, ...cluster } }],
    users: user === null ? [] : [{ name, user }],
    ...more,
  });
}

interface Try {
  readonly files?: Readonly<Record<string, string>>;
  readonly path?: string;
}

async function rebuild(text: HostKubeconfigSource['text'], { files = {}, path = ADMIN_CONF }: Try = {}) {
  const read: string[] = [];
  const readFile = async (file: string): Promise<string | null> => {
    read.push(file);
    return files[file] ?? null;
  };
  const rebuilt = rebuildHostKubeconfig({ host: 'cp-1', path, text, readFile, hint: 'Correct the file' });
  const outcome = await rebuilt.then(
    (kubeconfig) => ({ kubeconfig, target: resolveContext(parseKubeconfig(kubeconfig.text.reveal(), 'rebuilt')) }),
    (error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      return { error, problems: error.problems.map(formatProblem) };
    },
  );
  return { read, ...outcome };
}

async function refusalOf(text: string, options: Try = {}): Promise<readonly string[]> {
  const outcome = await rebuild(text, options);
  if (!('error' in outcome)) throw new Error('it was not refused');
  expect(outcome.error.exitCode).toBe(3);
  return outcome.problems;
}

describe('rebuildHostKubeconfig', () => {
  it('accepts the embedded data of kubeadm, and keeps the names', async () => {
    const { kubeconfig, target, read } = (await rebuild(textOf())) as Awaited<ReturnType<typeof rebuild>> & {
      kubeconfig: HostKubeconfig;
      target: ReturnType<typeof resolveContext>;
    };
    expect(target).toMatchObject({
      context: 'kubernetes-admin@prod',
      cluster: { name: 'prod', server: SERVER, caData: base64(ca.certPem), insecureSkipTlsVerify: false },
      user: { name: 'kubernetes-admin', certData: base64(client.certPem) },
    });
    expect(target.user?.keyData?.reveal()).toBe(base64(client.keyPem));
    expect(kubeconfig).toMatchObject({ file: `cp-1:${ADMIN_CONF}`, server: SERVER, caPem: ca.certPem });
    expect(String(kubeconfig.text)).not.toContain(base64(client.keyPem));
    expect(read).toEqual([]);
  });

  it('reads the files that a kubelet.conf references on the host, both from one file', async () => {
    const pem = '/var/lib/kubelet/pki/kubelet-client-current.pem';
    const text = textOf({
      cluster: { 'certificate-authority': 'pki/ca.crt' },
      user: { 'client-certificate': pem, 'client-key': pem },
    });
    const files = { [pem]: `${client.certPem}${client.keyPem}`, '/etc/kubernetes/pki/ca.crt': ca.certPem };
    const outcome = await rebuild(text, { files, path: '/etc/kubernetes/kubelet.conf' });
    expect(outcome).toMatchObject({
      read: ['/etc/kubernetes/pki/ca.crt', pem, pem],
      target: { cluster: { caData: base64(ca.certPem) }, user: { certData: base64(client.certPem) } },
    });
    expect('target' in outcome && outcome.target.user?.keyData?.reveal()).toBe(base64(client.keyPem));
  });

  it.each<[string, object, Record<string, string>, string]>([
    ['a token', { token: 'abc' }, {}, 'abc'],
    ['a token in a file on the host', { tokenFile: '/run/token' }, { '/run/token': 'abc\n' }, 'abc'],
    [
      'a token in a file before one that is embedded, as client-go',
      { token: 'old', tokenFile: '/run/token' },
      { '/run/token': 'new' },
      'new',
    ],
  ])('accepts %s', async (_, user, files, token) => {
    const outcome = await rebuild(textOf({ user }), { files });
    expect('target' in outcome && outcome.target.user?.token?.reveal()).toBe(token);
    expect('target' in outcome && outcome.target.user?.tokenFile).toBeUndefined();
  });

  it('prefers data to files, and does not read the files', async () => {
    const user = { ...embedded(), 'client-certificate': '/x', 'client-key': '/y' };
    expect((await rebuild(textOf({ cluster: { ...caData(), 'certificate-authority': '/z' }, user }))).read).toEqual([]);
  });

  it('keeps tls-server-name', async () => {
    const outcome = await rebuild(textOf({ cluster: { ...caData(), 'tls-server-name': 'api.prod' } }));
    expect(outcome).toMatchObject({ target: { cluster: { tlsServerName: 'api.prod' } } });
  });

  it('keeps only the current context', async () => {
    const other = { name: 'other', user: { exec: { command: 'rm' } } };
    const text = textOf({ more: { users: [other, { name: 'kubernetes-admin', user: embedded() }], 'x-extension': { exec: 'rm' } } });
    const outcome = await rebuild(new SensitiveText([new Secret(text)]));
    expect('kubeconfig' in outcome && outcome.kubeconfig.text.reveal()).not.toMatch(/rm|other|x-extension/);
  });

  it.each<[string, Entries, string]>([
    [
      'exec',
      { user: { exec: { command: 'id' } } },
      'users[0].user.exec: not allowed in a kubeconfig read from a host: the local host would run',
    ],
    ['exec in addition to a token', { user: { token: 't', exec: {} } }, 'users[0].user.exec:'],
    ['auth-provider', { user: { token: 't', 'auth-provider': { name: 'gcp' } } }, 'users[0].user.auth-provider:'],
    ['username', { user: { token: 't', username: 'u' } }, 'users[0].user.username:'],
    ['password', { user: { token: 't', password: 'p' } }, 'users[0].user.password:'],
    ['as', { user: { token: 't', as: 'root' } }, 'users[0].user.as:'],
    ['as-groups', { user: { token: 't', 'as-groups': ['system:masters'] } }, 'users[0].user.as-groups:'],
    ['as-uid', { user: { token: 't', 'as-uid': '1' } }, 'users[0].user.as-uid:'],
    ['as-user-extra', { user: { token: 't', 'as-user-extra': { a: ['b'] } } }, 'users[0].user.as-user-extra:'],
    ['insecure-skip-tls-verify', { cluster: { 'insecure-skip-tls-verify': true } }, 'clusters[0].cluster.insecure-skip-tls-verify:'],
    ['proxy-url', { cluster: { 'proxy-url': 'http://p:1' } }, 'clusters[0].cluster.proxy-url:'],
    ['plain HTTP', { cluster: { server: 'http://10.0.0.1:8080' } }, 'clusters[0].cluster.server:'],
    ['a path', { cluster: { server: 'https://10.0.0.1/admin' } }, 'clusters[0].cluster.server:'],
    ['a query', { cluster: { server: 'https://10.0.0.1/?a=b' } }, 'clusters[0].cluster.server:'],
    ['a user in the address', { cluster: { server: 'https://u:p@10.0.0.1' } }, 'clusters[0].cluster.server:'],
    ['an invalid server name', { cluster: { ...caData(), 'tls-server-name': 'a\u0000b' } }, 'clusters[0].cluster.tls-server-name:'],
    ['an escape sequence in a name', { name: 'x\u001b]0;y' }, 'contexts[0].context:'],
  ])('rejects %s with host, line and field', async (_, entries, expected) => {
    const [problem, ...more] = await refusalOf(textOf(entries));
    expect(problem).toContain(`cp-1: ${ADMIN_CONF}:1:`);
    expect(problem).toContain(expected);
    expect(problem).toMatch(/ Correct the file\. \[HOST_KUBECONFIG_REFUSED\]$/);
    expect(more).toEqual([]);
  });

  it('reports all rejected fields at once', async () => {
    const text = textOf({ cluster: { 'insecure-skip-tls-verify': true, 'proxy-url': 'http://p:1' }, user: { exec: { command: 'id' } } });
    expect(await refusalOf(text)).toHaveLength(3);
  });

  it('reports the line', async () => {
    const text = `kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "${SERVER}"}}]
users:
- name: other
- name: u
  user:
    exec: {command: id}
`;
    expect(await refusalOf(text)).toEqual([expect.stringContaining(`cp-1: ${ADMIN_CONF}:9:5 users[1].user.exec: `)]);
  });

  it('treats null, false and empty values as absent', async () => {
    const user = { ...embedded(), exec: null, 'auth-provider': null, username: '', 'as-groups': [], as: '' };
    expect(await rebuild(textOf({ cluster: { ...caData(), 'insecure-skip-tls-verify': false, 'proxy-url': '' }, user }))).toHaveProperty(
      'target',
    );
  });

  it.each<[string, Entries, Record<string, string>, string]>([
    ['no CA', { cluster: {} }, {}, 'clusters[0].cluster.certificate-authority-data: the cluster has no CA certificate'],
    [
      'a CA file that the host does not have',
      { cluster: { 'certificate-authority': '/home/operator/ca.crt' } },
      {},
      'clusters[0].cluster.certificate-authority: the file /home/operator/ca.crt does not exist on the host',
    ],
    ['a CA file without a certificate', { cluster: { 'certificate-authority': '/ca' } }, { '/ca': 'x' }, 'contains no PEM certificate'],
    [
      'a token file that the host does not have',
      { user: { tokenFile: '../../home/operator/.vault-token' } },
      {},
      'users[0].user.tokenFile: the file /home/operator/.vault-token does not exist on the host',
    ],
    [
      'a key file that the host does not have',
      { user: { 'client-certificate': '/c', 'client-key': '/home/operator/key' } },
      { '/c': 'x' },
      'users[0].user.client-key: the file /home/operator/key does not exist on the host',
    ],
    ['an invalid path', { user: { tokenFile: '/a\nb' } }, {}, 'users[0].user.tokenFile: not a valid path'],
    ['a token with a line break', { user: { tokenFile: '/t' } }, { '/t': 'a\r\nX-Evil: b' }, 'the token contains invalid characters'],
    ['a token file that is too large', { user: { tokenFile: '/t' } }, { '/t': 'a'.repeat(300_000) }, '/t has 300000 characters'],
    ['no credentials', { user: {} }, {}, 'users[0].user: the user has neither a client certificate nor a token'],
    ['no user', { user: null }, {}, 'users: the user has neither a client certificate nor a token'],
  ])('reports the missing part: %s', async (_, entries, files, expected) => {
    const [problem, ...more] = await refusalOf(textOf(entries), { files });
    expect(problem).toContain(`cp-1: ${ADMIN_CONF}:1:`);
    expect(problem).toContain(expected);
    expect(problem).toMatch(/\[HOST_KUBECONFIG_UNUSABLE\]$/);
    expect(more).toEqual([]);
  });

  it.each([
    ['', /KUBECONFIG_INVALID/],
    ['{', /CONFIG_SYNTAX/],
    ['kind: Pod\n', /KUBECONFIG_INVALID/],
    ['kind: Config\n', /KUBECONFIG_NO_CONTEXT/],
    ['x'.repeat(300_000), /has 300000 characters; the limit is 262144.*HOST_KUBECONFIG_UNUSABLE/],
  ])('rejects an invalid kubeconfig: %.20j', async (text, expected) => {
    const [problem] = await refusalOf(text);
    expect(problem).toMatch(/^cp-1: /);
    expect(problem).toMatch(expected);
  });
});

describe('the argument of connectCluster', () => {
  it('accepts no plain text and no object of the same shape', () => {
    const text = textOf();
    // @ts-expect-error a string is not an operator kubeconfig
    const raw: ClusterTarget = { kubeconfig: text };
    // @ts-expect-error nor is a SensitiveText
    const masked: ClusterTarget = { kubeconfig: new SensitiveText([text]) };
    // @ts-expect-error an object literal cannot have its private field
    const operator: OperatorKubeconfig = { text, file: ADMIN_CONF };
    // @ts-expect-error its private field cannot be forged
    const host: HostKubeconfig = { text: new SensitiveText([text]), file: ADMIN_CONF, server: SERVER, caPem: ca.certPem };
    // @ts-expect-error a host kubeconfig is not an operator kubeconfig
    const asOperator = (kubeconfig: HostKubeconfig): OperatorKubeconfig => kubeconfig;
    expect([raw, masked, operator, host, asOperator]).toHaveLength(5);
  });
});
