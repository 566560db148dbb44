import { describe, expect, it } from 'vitest';
import { type ConfigzNotToldError, configzSource } from '../../../src/agent/configz-source.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import { loadCatalogue } from '../../../src/core/kubelet/catalogue.ts';
import { layerRunningConfig } from '../../../src/core/kubelet/effective/running-config.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { type FakeReply, fakeWeb } from '../../support/fake-web.ts';

const catalogue = await loadCatalogue();
const PEM = '-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n';
const OWN = { kubeletconfig: { maxPods: 1 } };
const PROXIED = { kubeletconfig: { maxPods: 2 } };
const TOKEN = 'header.payload.signature';

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
  readonly hasToken?: boolean;
  /** What the API server gets of the kubelet. */
  readonly proxied?: JsonObject | 'down';
}
function world({
  url = 'https://127.0.0.1:10250',
  file = '/var/lib/kubelet/pki/kubelet.crt',
  certificate = PEM,
  reply,
  hasToken = true,
  proxied = 'down',
  ...how
}: World) {
  const host = fakeHost({ files: { [file]: PEM, ...(hasToken ? { '/token': `${TOKEN}\n` } : {}) } });
  const cluster = fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }] });
  cluster.proxyNode('n', () => (proxied === 'down' ? 'down' : { status: 200, body: proxied }));
  const web = fakeWeb({ servers: { [url]: { certificate, reply: () => reply ?? { text: JSON.stringify(OWN) } } } });
  const source = configzSource({ host, cluster, web, nodeName: 'n', tokenFile: '/token', signal: new AbortController().signal });
  return { web, cluster, ask: () => source.ask(kubelet(how)) };
}

describe('configz', () => {
  it.each<[string, World]>([
    ['by default', {}],
    ['at its address and port', { yaml: 'address: 10.0.0.5\nport: 10350\n', url: 'https://10.0.0.5:10350' }],
    ['at its port by a flag', { flags: ['port=10351'], url: 'https://127.0.0.1:10351' }],
    ['at an address of IPv6', { yaml: "address: '::'\n", url: 'https://[::1]:10250' }],
    ['by the certificate of the cluster', { yaml: 'serverTLSBootstrap: true\n', file: '/var/lib/kubelet/pki/kubelet-server-current.pem' }],
    ['by a certificate that was put there', { yaml: 'tlsCertFile: /etc/tls.crt\ntlsPrivateKeyFile: /etc/tls.key\n', file: '/etc/tls.crt' }],
    [
      'by one relative to its configuration',
      { yaml: 'tlsCertFile: tls.crt\ntlsPrivateKeyFile: tls.key\n', file: '/var/lib/kubelet/tls.crt' },
    ],
    ['by one in its --cert-dir', { flags: ['cert-dir=/srv/pki'], file: '/srv/pki/kubelet.crt' }],
  ])('is asked of the kubelet itself, %s, and then of nobody else', async (_, how) => {
    const { ask, web, cluster } = world({ ...how, proxied: PROXIED });
    expect(await ask()).toEqual(OWN);
    expect(web.requests).toMatchObject([{ trust: { kind: 'certificate', pem: PEM }, proxyUrl: null }]);
    expect(web.requests[0]?.bearerToken?.reveal()).toBe(TOKEN);
    expect(cluster.calls).toEqual([]);
  });

  it.each<[string, World]>([
    ['has no API', { yaml: 'enableServer: false\n' }],
    ['can not be reached', { url: 'https://127.0.0.1:1' }],
    ['is not who shows that certificate', { certificate: 'other' }],
    ['does not know the account', { reply: { status: 401, text: 'Unauthorized' } }],
    ['does not let it', { reply: { status: 403, text: 'Forbidden (user=x)' } }],
    ['talks nonsense', { reply: { text: '<html>' } }],
    ['keeps its certificate elsewhere', { file: '/elsewhere' }],
    ['can be shown no token', { hasToken: false }],
  ])('is asked through the API server where the kubelet %s', async (_, how) => {
    expect(await world({ ...how, proxied: PROXIED }).ask()).toEqual(PROXIED);
  });

  it.each<[string, World, boolean, RegExp]>([
    [
      'it serves none',
      { yaml: 'enableServer: false\n' },
      true,
      /the kubelet itself: it serves no API \(enableServer: false\); through the API server: /,
    ],
    ['it does not know accounts any more', { reply: { status: 401, text: 'Unauthorized\n' } }, true, /10250 answers 401: Unauthorized;/],
    ['it hangs', { reply: 'silence' }, true, /no answer within 5 s/],
    ['somebody else is there', { certificate: 'other' }, true, /does not show the certificate of the kubelet, it was told nothing/],
  ])('is not told, with both causes: %s', async (_, how, isAnswer, text) => {
    const error = (await world(how)
      .ask()
      .catch((error: unknown) => error)) as ConfigzNotToldError;
    expect(error.message).toMatch(text);
    expect(error.message).not.toContain(TOKEN);
    expect(error.isAnswer).toBe(isAnswer);
  });
});
