/**
 * The CoreDNS releases with known options, in ascending order. From 1.8.3 on, no release lists an option as removed or as
 * newly required, so kubeadm changes no Corefile for an upgrade.
 * @see coredns/corefile-migration 1.0.31 (kubeadm 1.36). Its options of 1.14.2 are assumed for 1.14.3 to 1.14.6 (kubeadm 1.37)
 */
const RELEASES: readonly string[] = (
  '1.8.3 1.8.4 1.8.5 1.8.6 1.8.7 1.9.0 1.9.1 1.9.2 1.9.3 1.9.4 1.10.0 1.10.1 1.11.0 1.11.1 1.11.3 1.11.4 ' +
  '1.12.0 1.12.1 1.12.2 1.12.3 1.12.4 1.13.0 1.13.1 1.13.2 1.14.0 1.14.1 1.14.2 1.14.3 1.14.4 1.14.5 1.14.6'
).split(' ');

/** The first and the last release that has an option; absent: all. */
type Releases = { readonly since?: string; readonly until?: string };

const ALWAYS: Releases = {};

const PLUGINS: Readonly<Record<string, Readonly<Record<string, Releases>>>> = {
  autopath: {},
  cache: {
    ...always('success denial prefetch'),
    serve_stale: { since: '1.9.4' },
    disable: { since: '1.9.4' },
    servfail: { since: '1.9.4' },
    keepttl: { since: '1.10.1' },
  },
  errors: { ...always('consolidate'), stacktrace: { since: '1.9.3' } },
  forward: {
    ...always('except force_tcp prefer_udp expire max_fails tls tls_servername policy health_check max_concurrent'),
    next: { since: '1.11.4' },
    fail_fast: { since: '1.11.4', until: '1.11.4' },
    failfast_all_unhealthy_upstreams: { since: '1.12.0' },
  },
  health: always('lameduck'),
  hosts: always('ttl no_reverse reload fallthrough'),
  k8s_external: { ...always('apex ttl'), fallthrough: { since: '1.11.0' } },
  kubernetes: always('endpoint tls kubeconfig namespaces labels pods endpoint_pod_names ttl noendpoints fallthrough ignore'),
  loadbalance: {},
  log: always('class'),
  loop: {},
  prometheus: {},
  ready: {},
  reload: {},
  rewrite: { ...always('type class name answer edns0 ttl'), cname_target: { since: '1.11.0' } },
  transfer: always('to'),
};

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{1,4}:[:0-9A-Fa-f]+)/;

/**
 * Whether a Corefile works in a later CoreDNS without a change.
 * @param versions image tags: `v1.13.1`. An empty `from`: CoreDNS is not deployed
 * @returns `issue`: why CoreDNS cannot be upgraded between these versions, as a clause; `unsupported`: plugins and options whose
 *   compatibility must be verified by hand: `loadbalance prefer`, `route53`
 * @see kubeadm 1.36 phases/upgrade/preflight.go: checks CoreDNSMigration, CoreDNSUnsupportedPlugins
 */
export function checkCorefile(
  text: string,
  versions: { readonly from: string; readonly to: string },
): { readonly issue: string | null; readonly unsupported: readonly string[] } {
  const [from, to] = [versions.from.replace(/^v/, ''), versions.to.replace(/^v/, '')];
  if (from === to) return { issue: null, unsupported: [] };
  const [first, last] = [RELEASES.indexOf(from), RELEASES.indexOf(to)];
  const known = `known releases are ${RELEASES[0]} to ${RELEASES.at(-1)}`;
  if (from === '') return { issue: 'no Deployment runs CoreDNS, so its version is unknown', unsupported: [] };
  if (first < 0) return { issue: `CoreDNS ${from} is not a known release: ${known}`, unsupported: [] };
  if (last < first)
    return {
      issue: last < 0 ? `the new CoreDNS ${to} is not a known release: ${known}` : `CoreDNS ${from} cannot be downgraded to ${to}`,
      unsupported: [],
    };
  const path = RELEASES.slice(first + 1, last + 1);
  const found = parseCorefile(text).flatMap((plugin) => unsupportedBy(plugin, path));
  return { issue: null, unsupported: [...new Set(found)] };
}

function always(names: string): Readonly<Record<string, Releases>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, ALWAYS]));
}

function unsupportedBy({ name, options }: ReturnType<typeof parseCorefile>[number], path: readonly string[]): readonly string[] {
  const known = Object.hasOwn(PLUGINS, name) ? PLUGINS[name] : undefined;
  if (known === undefined) return [name];
  return options
    .filter((option) => !(name === 'hosts' && ADDRESS.test(option)))
    .filter((option) => !(Object.hasOwn(known, option) && isInAll(known[option] ?? ALWAYS, path)))
    .map((option) => `${name} ${option}`);
}

function isInAll({ since, until }: Releases, path: readonly string[]): boolean {
  const at = (release: string): number => RELEASES.indexOf(release);
  const [first, last] = [path[0] ?? '', path.at(-1) ?? ''];
  return (since === undefined || at(since) <= at(first)) && (until === undefined || at(until) >= at(last));
}

/** The plugins of all server blocks. */
function parseCorefile(text: string) {
  const plugins: { readonly name: string; readonly options: string[] }[] = [];
  let depth = 0;
  for (const line of text.split('\n')) {
    const words = wordsOf(line);
    if (words[0] === '}') {
      depth--;
      continue;
    }
    const [name] = words;
    if (name !== undefined && name !== '{') {
      if (depth === 1) plugins.push({ name, options: [] });
      if (depth === 2) plugins.at(-1)?.options.push(name);
    }
    if (words.at(-1) === '{') depth++;
  }
  return plugins;
}

/** The words of a line without its comment; a quoted text is one word. */
function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const [, quoted, bare] of line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)) {
    if (quoted === undefined && bare?.startsWith('#')) break;
    words.push(quoted ?? bare ?? '');
  }
  return words;
}
