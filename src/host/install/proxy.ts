import { cidrContains, formatCidr, parseCidr, parseIp } from '../../base/text/ip.ts';
import { printable } from '../../base/text/printable.ts';
import { type Secret, SensitiveText } from '../../base/text/secret.ts';
import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import type { Host } from '../access/host.ts';
import { observe } from '../access/observe.ts';
import { defaultDevice4, defaultDevice6 } from '../facts/default-route.ts';
import { combineFacts, defineFact, type Fact } from '../facts/fact.ts';
import { fileFacts } from '../facts/file-facts.ts';
import { initSystem } from '../facts/init-system.ts';
import type { FileFact } from '../facts/query.ts';
import { type UnitState, unitState } from '../facts/unit.ts';
import type { ProxySetting } from '../operation/install-model.ts';
import type { HostChange, PhasePlan } from '../plan/change.ts';
import { type DesiredFile, diffFile } from '../plan/diff-file.ts';

/** Readable by root only: systemd shows the `Environment=` of a unit to every user of the host (systemd.exec(5)). */
export const PROXY_ENVIRONMENT_FILE = '/etc/kubeletadm/proxy.env';

const KUBELET = 'kubelet';
const RUNTIMES = ['containerd', 'crio'] as const;
const UNITS = [...RUNTIMES, KUBELET] as const;
type ProxyUnit = (typeof UNITS)[number];

/** The same file as that of `config user-data`, which is replaced. */
export function proxyDropIn(unit: ProxyUnit): string {
  return `/etc/systemd/system/${unit}.service.d/http-proxy.conf`;
}

/** First words of a drop-in that belongs to kubeletadm. */
const OWN = '# Written by kubeletadm';

export interface ProxyFacts {
  readonly init: 'systemd' | 'openrc' | null;
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly units: Readonly<Record<ProxyUnit, UnitState | null>>;
  /** The subnets of the host at which other hosts reach it; the reason if they are unknown. */
  readonly networks: readonly string[] | { readonly why: string };
}

const ADDRESSES = ['ip', '-o', 'address', 'show', 'scope', 'global'] as const;

/** Interfaces of networks inside the host: Pods, containers and virtual machines. */
const INTERNAL =
  /^(?:cni|cbr|flannel|cali|tunl|vxlan|cilium|lxc|weave|kube-|antrea|ovn|genev|docker|br-|veth|virbr|podman|nodelocaldns|dummy)/;

const nodeNetworks = defineFact(
  {
    route4: { kind: 'file', path: '/proc/net/route' },
    route6: { kind: 'file', path: '/proc/net/ipv6_route' },
    addresses: { kind: 'command', argv: ADDRESSES },
  },
  ({ route4, route6, addresses }): ProxyFacts['networks'] => {
    const { exitCode, stdout, stderr } = addresses;
    if (exitCode !== 0) return { why: `${ADDRESSES.join(' ')} failed: ${printable(lastLine(stderr) || `exit code ${exitCode}`, 200)}` };
    return networksOf(stdout, [defaultDevice4(route4?.content ?? ''), defaultDevice6(route6?.content ?? '')]);
  },
);

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

/**
 * Those of the default routes, else of all interfaces that lead out of the host; without addresses that can
 * move to another host.
 * @param output of `ip -o address show scope global`
 */
export function networksOf(output: string, devices: readonly (string | null)[]): readonly string[] {
  const found = output.split('\n').flatMap((line) => {
    const [, device = '', address = ''] = /^\d+:\s+(\S+)\s+inet6?\s+(\S+)/.exec(line) ?? [];
    const network = parseCidr(address);
    // The address of a load balancer (keepalived, kube-vip) is a network of its own on the host that holds it now.
    return network === null || /\/(?:32|128)$/.test(address) ? [] : [{ device, network: formatCidr(network) }];
  });
  const routed = found.filter(({ device }) => devices.includes(device));
  const outside = routed.length > 0 ? routed : found.filter(({ device }) => !INTERNAL.test(device));
  return [...new Set(outside.map(({ network }) => network))].sort();
}

export const proxyFiles = fileFacts([PROXY_ENVIRONMENT_FILE, ...UNITS.map(proxyDropIn)]);

const INSTALLED = {
  init: initSystem,
  files: proxyFiles,
  units: combineFacts({ containerd: unitState('containerd'), crio: unitState('crio'), kubelet: unitState(KUBELET) }),
};

export const proxyFacts: Fact<ProxyFacts> = combineFacts({ ...INSTALLED, networks: nodeNetworks });

export type RemovedProxyFacts = Omit<ProxyFacts, 'networks'>;

const INSTALLED_FACTS = combineFacts(INSTALLED);

/** The units only if a file is removed. Null: no file of a fleet file. */
export async function observeRemovedProxy(host: Host, signal?: AbortSignal): Promise<RemovedProxyFacts | null> {
  const files = await observe(host, proxyFiles, signal);
  return fleetFiles(files).length === 0 ? null : observe(host, INSTALLED_FACTS, signal);
}

/**
 * Removes the files of a fleet file from a host that leaves its cluster, and restarts the running container
 * runtime. Drop-ins that do not read the environment file are those of an image or an administrator.
 */
export function planProxyRemoval(facts: RemovedProxyFacts | null): PhasePlan {
  const reason = 'written by apply';
  const files = facts === null ? [] : fleetFiles(facts.files).map((change) => ({ ...change, reason }));
  if (facts === null || files.length === 0) return { changes: [], noop: 'no proxy of a fleet file' };
  const restarts = restartsFor(facts, files).filter(({ unit }) => unit !== KUBELET);
  return {
    changes: [
      ...files,
      ...(facts.init === 'systemd' ? [{ kind: 'daemon-reload', reason: 'the drop-ins of the proxy change' } as const] : []),
      ...restarts.map((restart) => ({ kind: 'restart-unit', ...restart }) as const),
    ],
  };
}

/** Destinations that every node reaches directly. */
const LOCAL = ['localhost', '127.0.0.1', '::1'] as const;

interface ProxyPlanInput {
  readonly proxy: ProxySetting;
  /** `user:password`, encoded for a URL; null: none. */
  readonly credentials: Secret | null;
  /** Subnets, domains and the API endpoint of the cluster. */
  readonly clusterExceptions: readonly string[];
  /** DNS name or IP address of the API server that the kubelet uses; null: not known yet. */
  readonly apiServer: string | null;
  readonly templates: Templates;
}

/** Restarts the running units whose environment changes; with `none`, removes the files that kubeletadm wrote. */
export function planProxy(facts: ProxyFacts, input: ProxyPlanInput): PhasePlan {
  const { proxy } = input;
  const isRunning = facts.units.kubelet?.activeState === 'active';
  const files = proxy === 'none' ? removals(facts.files) : writes(facts, input);
  const changes = files.map((change): HostChange => (isRunning ? { ...change, impact: 'safe' } : change));
  const restarts = restartsFor(facts, files);
  const needsReload =
    files.some(({ path }) => path !== PROXY_ENVIRONMENT_FILE) || restarts.some(({ unit }) => facts.units[unit]?.needsReload);
  const all: readonly HostChange[] = [
    ...changes,
    ...(needsReload ? [{ kind: 'daemon-reload', reason: 'the drop-ins of the proxy change' } as const] : []),
    ...restarts.map(({ unit, reason }) => ({ kind: 'restart-unit', unit, reason, impact: 'safe' }) as const),
  ];
  const plan: PhasePlan = { changes: all, ...noSubnet(facts, proxy) };
  return all.length > 0 ? plan : { ...plan, noop: proxy === 'none' ? 'no proxy' : 'the proxy is unchanged' };
}

function noSubnet({ networks }: ProxyFacts, proxy: ProxySetting): Pick<PhasePlan, 'warnings'> {
  const isKnown = !('why' in networks) && networks.length > 0;
  if (proxy === 'none' || isKnown || proxy.noProxy.some((each) => parseCidr(each) !== null)) return {};
  const message =
    'NO_PROXY contains no subnet of the hosts: the addresses of the host have no subnet. Add the subnet of the hosts to noProxy';
  return { warnings: [{ code: 'HOST_SUBNET_UNKNOWN', message }] };
}

export function isFleetDropIn(file: FileFact | null): boolean {
  const { content = '' } = file ?? {};
  return content.startsWith(OWN) && content.includes(PROXY_ENVIRONMENT_FILE);
}

type FileChange = Extract<HostChange, { kind: 'write-file' | 'remove-file' }>;

function writes({ files, units, networks }: ProxyFacts, input: ProxyPlanInput): readonly FileChange[] {
  const { proxy, templates } = input;
  if (proxy === 'none') return [];
  const loaded = RUNTIMES.filter((unit) => units[unit]?.loadState === 'loaded');
  // A runtime that is installed later needs its proxy before it pulls the first image.
  const runtimes = RUNTIMES.filter(
    (unit) => loaded.length === 0 || loaded.includes(unit) || (files.get(proxyDropIn(unit)) ?? null) !== null,
  );
  const variables = [
    ...variable('HTTP_PROXY', proxy.http, input.credentials),
    ...variable('HTTPS_PROXY', proxy.https, input.credentials),
    { name: 'NO_PROXY', parts: [exceptions(networks, input, proxy.noProxy).join(',')] },
  ];
  const text = renderTemplate(templates, PROXY_ENVIRONMENT_FILE, { variables });
  const desired: readonly DesiredFile[] = [
    // The previous content may contain credentials even if the new one does not.
    { path: PROXY_ENVIRONMENT_FILE, content: typeof text === 'string' ? new SensitiveText([text]) : text, mode: 0o600, owner: 'root:root' },
    ...[...runtimes, KUBELET].map((unit) => {
      const path = proxyDropIn(unit as ProxyUnit);
      const content = new SensitiveText([String(renderTemplate(templates, path, { environmentFile: PROXY_ENVIRONMENT_FILE }))]);
      return { path, content, mode: 0o644, owner: 'root:root' };
    }),
  ];
  return desired.map((file) => diffFile(files.get(file.path) ?? null, file)).filter((change) => change !== null);
}

/** The values of NO_PROXY. An API server in one of the subnets is not listed: otherwise a host that joins would change. */
function exceptions(
  networks: ProxyFacts['networks'],
  { clusterExceptions, apiServer }: ProxyPlanInput,
  noProxy: readonly string[],
): readonly string[] {
  const [cluster, own] = [[...LOCAL, ...clusterExceptions], 'why' in networks ? [] : networks];
  const address = parseIp(apiServer ?? '');
  const isCovered = [...cluster, ...own, ...noProxy].some((each) => {
    const subnet = address === null ? null : parseCidr(each);
    return address !== null && subnet !== null && cidrContains(subnet, address);
  });
  return [...new Set([...cluster, ...(apiServer === null || isCovered ? [] : [apiServer]), ...own, ...noProxy])];
}

/** @param url validated: without user, password, spaces and quotes */
function variable(
  name: string,
  url: string | null,
  credentials: Secret | null,
): readonly { name: string; parts: readonly (string | Secret)[] }[] {
  if (url === null) return [];
  if (credentials === null) return [{ name, parts: [url] }];
  const [scheme = '', rest = ''] = url.split('://');
  return [{ name, parts: [`${scheme}://`, credentials, `@${rest}`] }];
}

function fleetFiles(files: ProxyFacts['files']): readonly FileChange[] {
  return removals(files).filter(({ path }) => path === PROXY_ENVIRONMENT_FILE || isFleetDropIn(files.get(path) ?? null));
}

function removals(files: ProxyFacts['files']): readonly FileChange[] {
  return [...files].flatMap(([path, file]): readonly FileChange[] => {
    if (file?.content?.startsWith(OWN) !== true) return [];
    const before = { content: file.content, mode: file.mode, owner: file.owner };
    return [{ kind: 'remove-file', path, before, reason: 'the host has no proxy' }];
  });
}

/** The running units whose files change, or were changed after they started: a run was killed before the restart. */
function restartsFor(
  { files, units }: RemovedProxyFacts,
  changes: readonly FileChange[],
): readonly { readonly unit: ProxyUnit; readonly reason: string }[] {
  const changed = new Set(changes.map(({ path }) => path));
  return UNITS.flatMap((unit) => {
    const state = units[unit];
    if (state?.activeState !== 'active') return [];
    const paths = [PROXY_ENVIRONMENT_FILE, proxyDropIn(unit)];
    if (paths.some((path) => changed.has(path))) return [{ unit, reason: 'its proxy changes' }];
    const newer = paths.some((path) => state.startedAt !== null && (files.get(path)?.modifiedAt ?? 0) > state.startedAt);
    const isOurs = files.get(proxyDropIn(unit))?.content?.startsWith(OWN) === true;
    return newer && isOurs ? [{ unit, reason: 'its proxy changed since it started' }] : [];
  });
}
