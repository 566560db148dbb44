import { describe, expect, it } from 'vitest';
import { hostsToApply, readPlan, savePlan } from '../../../src/fleet/plan/saved-plan.ts';
import { hostOf, resolve, resolved } from './support.ts';

describe('the proxy of a fleet file', () => {
  const fleet = () =>
    resolved(`baseline:
  variables: {site: one}
  proxy:
    https: "http://proxy.{{ site }}.example.com:3128"
    noProxy: [.example.com, 10.0.0.0/8]
    credentials: {env: PROXY_CREDENTIALS}
groups:
  - {name: two, variables: {site: two}, proxy: {http: "http://plain:3128", noProxy: []}}
  - {name: open, proxy: {https: none}}
hosts:
  - {name: n1}
  - {name: n2, groups: [two]}
  - {name: n3, groups: [open]}
`);

  it('is merged from all layers by member, and can be none', () => {
    expect(hostOf(fleet(), 'n1').preparation?.proxy).toEqual({
      http: null,
      https: 'http://proxy.one.example.com:3128',
      noProxy: ['.example.com', '10.0.0.0/8'],
      credentials: { env: 'PROXY_CREDENTIALS' },
    });
    expect(hostOf(fleet(), 'n2').preparation?.proxy).toEqual({
      http: 'http://plain:3128',
      https: 'http://proxy.two.example.com:3128',
      noProxy: [],
      credentials: { env: 'PROXY_CREDENTIALS' },
    });
    expect(hostOf(fleet(), 'n3').preparation?.proxy).toBe('none');
    expect(hostOf(resolved('hosts: [{name: n1, swap: off}]\n'), 'n1').preparation?.proxy).toBeUndefined();
  });

  it('is kept in a saved plan', () => {
    const hosts = ['n1', 'n2', 'n3'].map((name) => hostOf(fleet(), name));
    const context = {
      fleet: { file: 'f', directory: '/', name: null },
      cluster: { kubeconfig: null, context: null, configuration: null, endpoint: null, caFile: null, caCertHashes: [], token: null },
      server: 'https://x',
      takeOver: false,
      ignorePreflightErrors: [],
    };
    const outcome = { status: 'pending', plan: { name: 'n', phases: [] }, problems: [] } as const;
    const saved = savePlan(
      context,
      hosts.map((host) => [host, outcome]),
      { createdAt: new Date(0), validForMs: 1 },
    );
    const tasks = hostsToApply(readPlan(JSON.stringify(saved), 'plan.json'));
    expect(tasks.map(({ host }) => host.preparation?.proxy)).toEqual(hosts.map(({ preparation }) => preparation?.proxy));
  });

  it.each([
    ['{https: "http://me:geheim@proxy:3128"}', 'proxy.https: a proxy URL with a user or a password is not allowed in a fleet file'],
    ['{https: "http://{{ p }}"}', 'proxy.https: a proxy URL with a user or a password is not allowed in a fleet file'],
    ['{https: "proxy:3128"}', 'proxy.https: not the URL of a proxy. Use the form http://proxy.example.com:3128'],
    ['{noProxy: [a]}', 'proxy: proxy has neither http nor https'],
    ['{http: "http://p:1", noProxy: ["a,b"]}', 'proxy.noProxy[0]: "a,b" is not an address, a subnet or a domain'],
    ['{http: "http://p:1", credentials: {}}', 'proxy.credentials: credentials must have exactly one source. Set either env or file'],
    ['{http: "http://p:1", credentials: "me:geheim"}', 'proxy.credentials'],
    ['{htps: "http://p:1"}', 'proxy.htps: unknown field. Did you mean https?'],
  ])('refuses %s without showing a secret', (proxy, message) => {
    const { problems } = resolve(`hosts: [{name: n1, variables: {p: "me:geheim@x"}, proxy: ${proxy}}]\n`);
    expect(problems.join('\n')).toContain(message);
    expect(problems.join('\n')).not.toContain('geheim');
  });
});
