import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { type ConfigzUnavailableError, configzSource } from '../../../../src/dynamic/agent/configz-source.ts';
import { clientCertificateFileKubeconfig, clientCertificateKubeconfig, tokenKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { layerRunningConfig } from '../../../../src/kubelet/effective/running-config.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { type FakeReply, fakeWeb } from '../../../support/fake-web.ts';

const catalogue = await loadCatalogue();
const PEM = '-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n';
const CLIENT = '-----BEGIN CERTIFICATE-----\nB\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN PRIVATE KEY-----\nC\n-----END PRIVATE KEY-----\n';
const OWN = { kubeletconfig: { maxPods: 1 } };
const TOKEN = 'header.payload.signature';
const CONF = '/etc/kubernetes/kubelet.conf';
const CURRENT = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const SHARED = { clusterName: 'kubernetes', server: 'https://api:6443', caPem: PEM, user: 'node' };

const KUBECONFIGS = {
  files: clientCertificateFileKubeconfig({ ...SHARED, certificateFile: CURRENT, keyFile: CURRENT }),
  'relative files': clientCertificateFileKubeconfig({ ...SHARED, certificateFile: 'client.crt', keyFile: 'client.key' }),
  data: clientCertificateKubeconfig({ ...SHARED, certificatePem: CLIENT, keyPem: new Secret(KEY) }).reveal(),
  token: tokenKubeconfig({ ...SHARED, token: new Secret(TOKEN) }).reveal(),
  plugin: `${clientCertificateFileKubeconfig({ ...SHARED, certificateFile: 'x', keyFile: 'x' }).replace(/ {4}client-certificate: x\n {4}client-key: x\n/, '    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}\n')}`,
} as const;

interface Kubelet {
  readonly yaml?: string;
  readonly flags?: readonly string[];
}
const kubelet = ({ yaml = '', flags = [] }: Kubelet) => {
  const placed = flags.map((flag) => ({ name: flag.split('=')[0] as string, value: flag.split('=')[1] as string, source: 'x', index: 0 }));
  const text = `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${yaml}`;
  const configFile = { path: '/var/lib/kubelet/config.yaml', text };
  const running = layerRunningConfig({ catalogue, minor: 36, configFile, dynamicConfig: null, dropIns: [], flags: placed });
  return { running, flags: placed };
};

interface World extends Kubelet {
  readonly url?: string;
  readonly file?: string;
  readonly certificate?: string;
  readonly reply?: FakeReply;
  readonly kubeconfig?: keyof typeof KUBECONFIGS;
  /** Rotation file of the kubelet's client certificate. */
  readonly current?: string | null;
}
function world({
  url = 'https://127.0.0.1:10250',
  file = '/var/lib/kubelet/pki/kubelet.crt',
  certificate = PEM,
  reply,
  kubeconfig = 'files',
  current = CLIENT + KEY,
  ...how
}: World) {
  const host = fakeHost({
    files: {
      [file]: PEM,
      [CONF]: KUBECONFIGS[kubeconfig],
      '/etc/kubernetes/client.crt': CLIENT,
      '/etc/kubernetes/client.key': KEY,
      ...(current === null ? {} : { [CURRENT]: current }),
    },
  });
  const web = fakeWeb({ servers: { [url]: { certificate, reply: () => reply ?? { text: JSON.stringify(OWN) } } } });
  const source = configzSource({ host, web, kubeconfig: CONF, signal: new AbortController().signal });
  return { host, web, query: () => source.query(kubelet(how)) };
}

describe('configz', () => {
  it.each<[string, World]>([
    ['by default', {}],
    ['at its address and port', { yaml: 'address: 10.0.0.5\nport: 10350\n', url: 'https://10.0.0.5:10350' }],
    ['at its port by a flag', { flags: ['port=10351'], url: 'https://127.0.0.1:10351' }],
    ['at an IPv6 address', { yaml: "address: '::'\n", url: 'https://[::1]:10250' }],
    [
      'with a serving certificate of the cluster',
      { yaml: 'serverTLSBootstrap: true\n', file: '/var/lib/kubelet/pki/kubelet-server-current.pem' },
    ],
    ['with a configured certificate', { yaml: 'tlsCertFile: /etc/tls.crt\ntlsPrivateKeyFile: /etc/tls.key\n', file: '/etc/tls.crt' }],
    [
      'with a certificate relative to its configuration',
      { yaml: 'tlsCertFile: tls.crt\ntlsPrivateKeyFile: tls.key\n', file: '/var/lib/kubelet/tls.crt' },
    ],
    ['with a certificate in its --cert-dir', { flags: ['cert-dir=/srv/pki'], file: '/srv/pki/kubelet.crt' }],
  ])('is read from the kubelet, %s', async (_, how) => {
    const { query, web } = world(how);
    expect(await query()).toEqual(OWN);
    expect(web.requests).toMatchObject([{ trust: { kind: 'certificate', pem: PEM }, proxyUrl: null }]);
  });

  it.each<[keyof typeof KUBECONFIGS, string, string]>([
    ['files', CLIENT + KEY, CLIENT + KEY],
    ['relative files', CLIENT, KEY],
    ['data', CLIENT, KEY],
  ])('is requested with the client certificate of the kubelet, from %s, without a token', async (kubeconfig, certificate, key) => {
    const { query, web } = world({ kubeconfig });
    await query();
    const [request] = web.requests;
    expect(request?.clientCertificate?.certificate).toBe(certificate);
    expect(request?.clientCertificate?.key.reveal()).toBe(key);
    expect(request?.bearerToken).toBeUndefined();
  });

  it('is requested with the rotated certificate', async () => {
    const { host, query, web } = world({});
    await query();
    const rotated = CLIENT.replace('B', 'D') + KEY;
    host.files.set(CURRENT, { type: 'file', mode: 0o600, owner: 'root:root', content: rotated });
    await query();
    expect(web.requests.map(({ clientCertificate }) => clientCertificate?.certificate)).toEqual([CLIENT + KEY, rotated]);
  });

  it('is requested with a token if the kubelet has no certificate, after the server was authenticated', async () => {
    const { query, web } = world({ kubeconfig: 'token' });
    await query();
    expect(web.requests[0]?.bearerToken?.reveal()).toBe(TOKEN);
    expect(web.requests[0]?.trust).toEqual({ kind: 'certificate', pem: PEM });
  });

  it.each<[string, World, ConfigzUnavailableError['credential'], RegExp]>([
    [
      'the kubelet serves no API',
      { yaml: 'enableServer: false\n' },
      'rejected',
      /the kubelet serves no API, because its configuration sets enableServer: false/,
    ],
    [
      'the kubelet rejects the credential',
      { reply: { status: 401, text: 'Unauthorized\n' } },
      'rejected',
      /10250 returned 401: Unauthorized/,
    ],
    [
      'the kubelet is older than 1.33',
      { reply: { status: 403, text: 'Forbidden (user=x)\n' } },
      'accepted',
      /returned 403: Forbidden \(user=x\)/,
    ],
    ['the kubelet does not respond', { reply: 'silence' }, 'no-answer', /no response within 5 s/],
    ['the kubelet is unreachable', { url: 'https://127.0.0.1:1' }, 'no-answer', /connection refused/],
    ['the kubelet cannot ask the API server', { reply: { status: 500, text: 'Authorization error' } }, null, /returned 500/],
    ['the response is not JSON', { reply: { text: '<html>' } }, 'no-answer', /a response that is not a configuration/],
    ['another server listens on the port', { certificate: 'other', kubeconfig: 'token' }, 'no-answer', /no token was sent/],
    ['the serving certificate is missing', { file: '/elsewhere' }, null, /kubelet\.crt cannot be read/],
    [
      'a token is rejected, or the API server does not check it',
      { kubeconfig: 'token', reply: { status: 401 } },
      'no-answer',
      /returned 401/,
    ],
    [
      'no serving certificate was signed',
      { yaml: 'serverTLSBootstrap: true\n' },
      'no-certificate',
      /kubelet-server-current\.pem does not exist, because no CSR .* was approved/,
    ],
    ['the kubelet listens on the loopback address', { yaml: 'address: 127.0.0.1\n' }, 'no-answer', /listens only on 127\.0\.0\.1/],
    ['the client certificate is missing', { current: null }, null, /kubelet-client-current\.pem cannot be read/],
    ['the kubeconfig uses a plugin', { kubeconfig: 'plugin' }, null, /neither a client certificate nor a token/],
  ])('is not read when %s', async (_, how, credential, text) => {
    const { query, web } = world(how);
    const error = (await query().catch((error: unknown) => error)) as ConfigzUnavailableError;
    expect(error.message).toMatch(text);
    expect(error.message).not.toContain(TOKEN);
    expect(error.credential).toBe(credential);
    if (/cannot be read|neither/.test(error.message)) expect(web.requests).toEqual([]);
  });
});
