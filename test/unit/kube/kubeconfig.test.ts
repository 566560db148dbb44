import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { credentialKinds, discoveryCluster, parseKubeconfig, resolveContext } from '../../../src/kube/kubeconfig.ts';

const PEM = (label: string) => Buffer.from(`-----BEGIN ${label}-----\nAA==\n-----END ${label}-----\n`).toString('base64');
const CA = PEM('CERTIFICATE');
const KEY = PEM('EC PRIVATE KEY');
const ADMIN = `apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: ${CA}
    server: https://10.0.0.1:6443/
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: admin
  name: admin@kubernetes
- context: {cluster: kubernetes, user: admin, namespace: shop}
  name: shop
current-context: admin@kubernetes
users:
- name: admin
  user:
    client-certificate-data: ${CA}
    client-key-data: ${KEY}
`;

function problemsOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof AppError) {
      expect(error.exitCode).toBe(2);
      return error.message;
    }
    throw error;
  }
  throw new Error('no problem');
}

describe('parseKubeconfig and resolveContext', () => {
  it('parses a kubeconfig of kubeadm', () => {
    const target = resolveContext(parseKubeconfig(ADMIN, 'admin.conf'));
    expect(target).toMatchObject({
      context: 'admin@kubernetes',
      namespace: 'default',
      cluster: { server: 'https://10.0.0.1:6443', caData: CA },
    });
    expect(target.user?.keyData?.reveal()).toBe(KEY);
    expect(credentialKinds(target.user)).toEqual(['client-certificate']);
  });

  it.each([
    ['slashes in the server', ADMIN.replace('10.0.0.1:6443/', `10.0.0.1${'/'.repeat(200_000)}x`)],
    ['spaces in the CA', ADMIN.replace(`authority-data: ${CA}`, `authority-data: "A${' '.repeat(200_000)}!"`)],
  ])('is read in linear time with 200,000 %s', (_, text) => {
    const started = performance.now();
    try {
      resolveContext(parseKubeconfig(text, 'admin.conf'));
    } catch (error) {
      expect(error).toBeInstanceOf(AppError);
    }
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it('uses the requested context', () => {
    expect(resolveContext(parseKubeconfig(ADMIN, 'admin.conf'), 'shop').namespace).toBe('shop');
  });

  it('reads JSON, and every kind of credentials', () => {
    const user = {
      token: 't',
      tokenFile: '/t',
      username: 'u',
      password: 'p',
      exec: { command: 'x' },
      'auth-provider': { name: 'oidc' },
      as: 'jane',
      'as-groups': ['a'],
      'as-uid': '7',
      'as-user-extra': { reason: ['incident 7', 'night'] },
    };
    const config = parseKubeconfig(
      JSON.stringify({
        'current-context': 'c',
        clusters: [
          {
            name: 'k',
            cluster: { server: 'https://k', 'tls-server-name': 'n', 'proxy-url': 'http://p', 'insecure-skip-tls-verify': true },
          },
        ],
        contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
        users: [{ name: 'u', user }],
      }),
      'x.json',
    );
    const target = resolveContext(config);
    expect(target.cluster).toMatchObject({ insecureSkipTlsVerify: true, tlsServerName: 'n', proxyUrl: 'http://p' });
    expect(credentialKinds(target.user)).toEqual(['token-file', 'token', 'basic', 'exec', 'auth-provider']);
    expect(target.user?.impersonate).toEqual({ user: 'jane', groups: ['a'], uid: '7', extra: { reason: ['incident 7', 'night'] } });
    expect(JSON.stringify(config)).not.toMatch(/"t"|"p"/);
  });

  it('is anonymous without a user', () => {
    const text = ADMIN.replace('    user: admin\n', '');
    expect(resolveContext(parseKubeconfig(text, 'admin.conf')).user).toBeNull();
    expect(credentialKinds(null)).toEqual([]);
  });

  const replaced = (from: string | RegExp, to: string) => () => resolveContext(parseKubeconfig(ADMIN.replace(from, to), 'admin.conf'));
  it.each<[string, () => unknown, string]>([
    ['empty', () => parseKubeconfig('', 'a.conf'), 'a.conf:1:1: the kubeconfig is empty [KUBECONFIG_INVALID]'],
    ['comments only', () => parseKubeconfig('# x\n', 'a.conf'), 'a.conf:1:1: the kubeconfig is empty [KUBECONFIG_INVALID]'],
    [
      'a list',
      () => parseKubeconfig('- x', 'a.conf'),
      'a.conf:1:1: not a kubeconfig: the file must contain apiVersion: v1 and kind: Config [KUBECONFIG_INVALID]',
    ],
    [
      'another kind',
      () => parseKubeconfig('kind: Pod', 'a.conf'),
      'a.conf:1:1: the file is not a kubeconfig: kind is Pod, expected Config [KUBECONFIG_INVALID]',
    ],
    [
      'no YAML',
      () => parseKubeconfig('a: [', 'a.conf'),
      expect.stringMatching(/^a\.conf:1:4: not valid YAML: the \[ is not closed .* \[CONFIG_SYNTAX\]$/) as unknown as string,
    ],
    [
      'clusters that are not a list',
      () => parseKubeconfig('clusters: {}', 'a.conf'),
      'a.conf:1:11 clusters: must be a list [KUBECONFIG_INVALID]',
    ],
    [
      'an entry that is not an object',
      () => parseKubeconfig('users: [x]', 'a.conf'),
      'a.conf:1:9 users[0]: must be an object with name and user [KUBECONFIG_INVALID]',
    ],
    [
      'several at once',
      () => parseKubeconfig('users:\n- name: 1\n  user: {token: 2, exec: x}\n', 'a.conf'),
      [
        'a.conf:2:9 users[0].name: must be a string: quote it [KUBECONFIG_INVALID]',
        'a.conf:3:17 users[0].user.token: must be a string: quote it [KUBECONFIG_INVALID]',
        'a.conf:3:26 users[0].user.exec: must be an object [KUBECONFIG_INVALID]',
      ].join('\n'),
    ],
    [
      'no current context',
      replaced(/current-context.*\n/, ''),
      'admin.conf:1:1: the kubeconfig has no current-context. Set current-context, or pass --context with one of: admin@kubernetes, shop. [KUBECONFIG_NO_CONTEXT]',
    ],
    [
      'an unknown current context',
      replaced('current-context: admin', 'current-context: root'),
      'admin.conf:15:1: the kubeconfig has no context "root@kubernetes". Existing contexts: "admin@kubernetes", "shop". [KUBECONFIG_INVALID]',
    ],
    [
      'an unknown requested context',
      () => resolveContext(parseKubeconfig(ADMIN, 'admin.conf'), 'x'),
      'admin.conf:1:1: the kubeconfig has no context "x". Existing contexts: "admin@kubernetes", "shop". [KUBECONFIG_INVALID]',
    ],
    [
      'an unknown cluster',
      replaced('cluster: kubernetes', 'cluster: other'),
      'admin.conf:9:3: the kubeconfig has no cluster "other". Existing clusters: "kubernetes". [KUBECONFIG_INVALID]',
    ],
    [
      'an unknown user',
      replaced('user: admin', 'user: other'),
      'admin.conf:9:3: the kubeconfig has no user "other". Existing users: "admin". [KUBECONFIG_INVALID]',
    ],
    [
      'no server',
      replaced(/server: .*/, 'server: ""'),
      'admin.conf:4:3: cluster "kubernetes" has no server. Set server to the address of the API server, e.g. https://10.0.0.1:6443. [KUBECONFIG_INVALID]',
    ],
    [
      'an address without scheme',
      replaced('https://10.0.0.1:6443/', '10.0.0.1:6443'),
      'admin.conf:4:3: cluster "kubernetes": "10.0.0.1:6443" is not the address of an API server. Write the address as https://HOST:PORT. [KUBECONFIG_INVALID]',
    ],
    [
      'both a CA and none',
      replaced('server:', 'insecure-skip-tls-verify: true\n    server:'),
      'admin.conf:4:3: cluster "kubernetes" has both insecure-skip-tls-verify and a CA certificate. Remove insecure-skip-tls-verify. [KUBECONFIG_INVALID]',
    ],
    [
      'an invalid CA',
      replaced(CA, 'eA=='),
      'admin.conf:4:3: cluster "kubernetes": certificate-authority-data is not the base64 of a PEM certificate [KUBECONFIG_INVALID]',
    ],
    [
      'a certificate without key',
      replaced(/ {4}client-key-data.*\n/, ''),
      'admin.conf:17:3: user "admin" has a client certificate but no client-key or client-key-data [KUBECONFIG_INVALID]',
    ],
    [
      'a key without certificate',
      replaced(/ {4}client-certificate-data.*\n/, ''),
      'admin.conf:17:3: user "admin" has a client key but no client-certificate or client-certificate-data [KUBECONFIG_INVALID]',
    ],
    [
      'an invalid key',
      replaced(KEY, CA),
      'admin.conf:17:3: user "admin": client-key-data is not the base64 of a PEM key [KUBECONFIG_INVALID]',
    ],
    [
      'an invalid flag',
      replaced('server:', 'insecure-skip-tls-verify: "true"\n    server:'),
      'admin.conf:6:31 clusters[0].cluster.insecure-skip-tls-verify: must be true or false [KUBECONFIG_INVALID]',
    ],
  ])('refuses %s', (_, work, message) => {
    expect(problemsOf(work)).toEqual(message);
  });

  it('ignores errors in entries that the context does not use', () => {
    const text = `${ADMIN}- name: broken\n  user: {client-certificate-data: nonsense}\n`;
    expect(resolveContext(parseKubeconfig(text, 'admin.conf')).user?.name).toBe('admin');
  });

  it('is not misled by keys of the prototype', () => {
    const config = parseKubeconfig(
      '__proto__: {kind: Config}\nconstructor: x\nusers: [{name: u, user: {exec: {__proto__: {a: b}}}}]',
      'a.conf',
    );
    expect(config.contexts).toEqual([]);
    expect(Object.getPrototypeOf(config.users[0]?.exec)).toBe(Object.prototype);
  });
});

describe('discoveryCluster', () => {
  it('prefers the cluster without a name', () => {
    const text = `clusters:\n- name: a\n  cluster: {server: 'https://a'}\n- name: ""\n  cluster: {server: 'https://b'}\ncontexts: null\nusers: null\n`;
    expect(discoveryCluster(parseKubeconfig(text, 'info')).server).toBe('https://b');
  });

  it('else uses that of the current context, regardless of its user', () => {
    expect(discoveryCluster(parseKubeconfig(ADMIN.replace(/\nusers:[\s\S]*/, '\n'), 'info')).name).toBe('kubernetes');
  });

  it('refuses a file without either', () => {
    expect(problemsOf(() => discoveryCluster(parseKubeconfig('clusters: []', 'info')))).toBe(
      'info:1:1: the kubeconfig has no current-context. Check that this is the right file. [KUBECONFIG_NO_CONTEXT]',
    );
  });
});
