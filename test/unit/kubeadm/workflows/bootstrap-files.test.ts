import { describe, expect, it } from 'vitest';
import { revealText, Secret } from '../../../../src/base/text/secret.ts';
import { parseKubeconfig, resolveContext } from '../../../../src/kube/kubeconfig.ts';
import type { BootstrapCredentials } from '../../../../src/kubeadm/config/bootstrap-credentials.ts';
import { bootstrapFiles } from '../../../../src/kubeadm/workflows/node/bootstrap-files.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

const templates = await loadTemplates();
const caPem = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const target = { server: 'https://10.0.0.1:6443', caPem, clusterName: 'kubernetes', caPath: '/etc/kubernetes/pki/ca.crt' };

// Recorded from kubeadm 1.36.2 join; the context name is independent of the cluster name.
const BOOTSTRAP = (token: string, clusterName = 'kubernetes') => `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${Buffer.from(caPem).toString('base64')}
    server: https://10.0.0.1:6443
  name: ${clusterName}
contexts:
- context:
    cluster: ${clusterName}
    user: tls-bootstrap-token-user
  name: tls-bootstrap-token-user@kubernetes
current-context: tls-bootstrap-token-user@kubernetes
kind: Config
users:
- name: tls-bootstrap-token-user
  user:
    token: ${token}
`;

function contentOf(token: string, clusterName = 'kubernetes') {
  const [bootstrap] = bootstrapFiles(templates, { ...target, clusterName, token: new Secret(token) });
  return bootstrap?.content ?? '';
}

describe('bootstrap-kubelet.conf', () => {
  it.each([
    ['fedcba.fedcba9876543210', 'fedcba.fedcba9876543210'],
    // YAML parses an unquoted value as a number.
    ['123456.1234567890123456', '"123456.1234567890123456"'],
    ['12345e.1234567890123456', '12345e.1234567890123456'],
  ])('matches kubeadm, with the token %s', (token, written) => {
    const text = revealText(contentOf(token));
    expect(text).toBe(BOOTSTRAP(written));
    expect(resolveContext(parseKubeconfig(text, 'x')).user?.token?.reveal()).toBe(token);
  });

  it('contains the name of the cluster', () => {
    expect(revealText(contentOf('fedcba.fedcba9876543210', 'prod'))).toBe(BOOTSTRAP('fedcba.fedcba9876543210', 'prod'));
  });

  it('masks only the token', () => {
    expect(String(contentOf('fedcba.fedcba9876543210'))).toBe(BOOTSTRAP('[secret]'));
  });

  it('is not written for a kubelet with a client certificate', () => {
    expect(bootstrapFiles(templates, { ...target, token: null }).map(({ path }) => path)).toEqual(['/etc/kubernetes/pki/ca.crt']);
  });
});

describe('credentials other than a token', () => {
  const contentFor = (more: object, entry: BootstrapCredentials['entry'] = { token: new Secret('t') }) =>
    bootstrapFiles(templates, { ...target, ...more, token: { user: 'joiner', context: 'prod', namespace: 'kube-system', entry } })[0]
      ?.content ?? '';

  it('keep the names of user and context, and their values', () => {
    const exec = { command: 'get-token', args: ['a: b', '#'], env: [{ name: 'PASSWORD', value: new Secret('two\nlines: "x"') }] };
    const content = contentFor({}, { username: 'u', password: new Secret('S0VZ'), exec });
    const { user, context, namespace } = resolveContext(parseKubeconfig(revealText(content), 'bootstrap-kubelet.conf'));
    expect([context, namespace, user?.name, user?.password?.reveal()]).toEqual(['prod', 'kube-system', 'joiner', 'S0VZ']);
    expect(user?.exec).toEqual({ ...exec, env: [{ name: 'PASSWORD', value: 'two\nlines: "x"' }] });
    expect(String(content)).not.toMatch(/S0VZ|two/);
  });

  it('keep the connection settings of the server', () => {
    const content = revealText(contentFor({ tlsServerName: 'kubernetes', proxyUrl: 'http://proxy:3128' }));
    const { cluster } = resolveContext(parseKubeconfig(content, 'bootstrap-kubelet.conf'));
    expect(cluster).toMatchObject({ server: target.server, tlsServerName: 'kubernetes', proxyUrl: 'http://proxy:3128' });
  });
});
