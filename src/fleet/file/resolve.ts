import { memoized } from '../../base/memoized.ts';
import { closestName } from '../../base/text/closest-name.ts';
import type { SourceNode } from '../../codec/source.ts';
import { apiServerEndpoint, caPin } from '../../kubeadm/config/rules.ts';
import { isSupportedMinor, NEWEST_MINOR, OLDEST_MINOR, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { bastionRoutes, destinationKey, type Route } from './bastions.ts';
import { formatPlace, type GroupRef, type HostEntry, hostEntries, type ImportedInventory } from './entries.ts';
import {
  duplicateAddress,
  duplicateGroup,
  duplicateNode,
  invalidFleetValue,
  invalidInventoryName,
  mutuallyExclusiveMembers,
  noHosts,
  unknownGroup,
} from './fleet-problems.ts';
import { type HostSettings, hostSettings } from './host-settings.ts';
import { validateVariableNames, variableValues } from './host-variables.ts';
import { fileLayer, type Layer } from './layer.ts';
import type { LoadedFleet } from './load.ts';
import { RULES } from './merge-layers.ts';
import type { FleetCluster, FleetOrigin, HostRole, ResolvedBastion, ResolvedFleet, ResolvedHost, ResolvedSsh } from './model.ts';
import { overlayBuilder } from './overlay.ts';
import { ProblemCollector } from './problem-collector.ts';
import type { FleetFile } from './schema.ts';

/**
 * Resolves a fleet file: expands ranges, imports, groups and templates to one entry per host, and reports all
 * problems at once.
 * @param imports results of the entries of `imports` in the file, in that order
 */
export function resolveFleet(loaded: LoadedFleet, imports: readonly ImportedInventory[] = []) {
  const findings = new ProblemCollector();
  findings.addAll(loaded.problems);
  const hosts = loaded.document === null ? null : resolveHosts(loaded, imports, findings);
  const problems = findings.list();
  const fleet: ResolvedFleet = {
    file: loaded.file,
    name: loaded.fleet.name ?? null,
    cluster: clusterOf(loaded),
    kubernetesVersion: loaded.fleet.kubernetesVersion ?? null,
    hosts: hosts?.hosts ?? [],
    bastions: hosts?.bastions ?? [],
    groups: hosts?.groups ?? [],
    rollout: null,
    warnings: problems.filter(({ severity }) => severity === 'warning'),
  };
  return { fleet, problems };
}

function clusterOf({ fleet: { cluster = {} }, document }: LoadedFleet): FleetCluster {
  const {
    kubeconfig = null,
    context = null,
    configuration = null,
    endpoint = null,
    caCert = null,
    caCertHashes = [],
    token = {},
  } = cluster;
  const { env, file } = token;
  const reference = env !== undefined ? { env } : file !== undefined ? { file } : null;
  const source =
    kubeconfig === null || document === null
      ? {}
      : { kubeconfigSource: formatPlace(fileLayer('file', {}, document, []).place(['cluster', 'kubeconfig'])) };
  return { kubeconfig, ...source, context, configuration, endpoint, caFile: caCert, caCertHashes, token: reference };
}

interface Hosts {
  readonly hosts: readonly ResolvedHost[];
  readonly bastions: readonly ResolvedBastion[];
  readonly groups: readonly string[];
}

type Document = NonNullable<LoadedFleet['document']>;

function resolveHosts({ fleet, document, file }: LoadedFleet, imports: readonly ImportedInventory[], findings: ProblemCollector): Hosts {
  const root = fileLayer('file', {}, document as Document, []);
  validateFile(fleet, root, findings);
  const groups = groupLayers(fleet, document as Document, findings);
  const importedGroups = new Set(imports.flatMap((inventory) => inventory.groups));
  const baseline = fleet.baseline === undefined ? [] : [fileLayer('baseline', fleet.baseline, document as Document, ['baseline'])];
  const entries = hostEntries(fleet, document as Document, imports, findings);
  for (const layer of validatedLayers([...baseline, ...groups.values()], entries)) validateVariableNames(layer, findings);
  // With only a token, no administrator credentials are available.
  const { kubeconfig, endpoint, token } = fleet.cluster ?? {};
  const byAdministrator = kubeconfig !== undefined || endpoint === undefined || token === undefined;
  const prepared = new Map<string, PreparedHost>();
  for (const entry of entries.values()) {
    const names = groupNames(entry.groups, { groups, importedGroups, findings });
    const layers = [...baseline, ...names.flatMap((name) => groups.get(name) ?? []), ...entry.layers];
    prepared.set(entry.name, {
      entry,
      groups: names,
      layers,
      settings: hostSettings(entry, layers, { findings, kubernetesVersion: fleet.kubernetesVersion ?? null, byAdministrator }),
    });
  }
  const route = bastionRoutes(prepared, findings);
  const overlays = memoized(overlayBuilder);
  const config = fleet.sshConfig === undefined ? {} : { configFile: fleet.sshConfig };
  const hosts: ResolvedHost[] = [];
  const bastions: ResolvedBastion[] = [];
  for (const host of prepared.values()) {
    if (host.settings.role === 'bastion') bastions.push(asBastion(host));
    else hosts.push(asHost(host, host.settings.role, { ...route(host.entry.name), ...config }, overlays));
  }
  validateTogether(hosts, { prepared, route, findings });
  if (entries.size === bastions.length && findings.isEmpty) findings.add(noHosts(), { position: { file, line: 1, column: 1 }, path: '' });
  return { hosts, bastions, groups: [...new Set([...groups.keys(), ...importedGroups])] };
}

/** A host with its layers, lowest first, and its merged settings. */
interface PreparedHost {
  readonly entry: HostEntry;
  readonly groups: readonly string[];
  readonly layers: readonly Layer[];
  readonly settings: HostSettings;
}

function asBastion({ entry: { name }, settings: { ssh } }: PreparedHost): ResolvedBastion {
  const { become: _, transport: __, connectTimeoutMs: ___, commandTimeoutMs: ____, ...bastion } = ssh;
  return { name, ...bastion };
}

function asHost(
  { entry, groups, layers, settings }: PreparedHost,
  role: HostRole,
  route: Route & Pick<ResolvedSsh, 'configFile'>,
  overlays: typeof overlayBuilder,
): ResolvedHost {
  const { ssh, node, scope } = settings;
  return {
    name: entry.name,
    get position() {
      return entry.place.position;
    },
    role,
    groups,
    ssh: { ...ssh, ...route, ...(entry.sshConfig === undefined ? {} : { importedFrom: entry.sshConfig }) },
    ...node,
    overlays: layers.flatMap((layer) => overlays(layer)(scope) ?? []),
    variables: () => variableValues(entry, layers),
    origins: () => originsOf(layers),
  };
}

/** Layers of the file: a layer of a range is shared by all its hosts. */
function validatedLayers(layers: readonly Layer[], entries: ReadonlyMap<string, HostEntry>): Iterable<Layer> {
  const all = new Set(layers);
  for (const entry of entries.values()) for (const layer of entry.layers) if (layer.document !== null) all.add(layer);
  return all;
}

function validateFile({ kubernetesVersion, cluster, imports = [] }: FleetFile, root: Layer, findings: ProblemCollector): void {
  if (kubernetesVersion !== undefined) {
    const minor = parseMinor(kubernetesVersion);
    if (minor === null || !isSupportedMinor(minor))
      findings.add(
        invalidFleetValue(
          `${JSON.stringify(kubernetesVersion)} is not a supported kubelet version`,
          `Use a version from "1.${OLDEST_MINOR}" to "1.${NEWEST_MINOR}"`,
        ),
        root.place(['kubernetesVersion']),
      );
  }
  const { token, kubeconfig, endpoint, caCert, caCertHashes } = cluster ?? {};
  if (token !== undefined && (token.env === undefined) === (token.file === undefined))
    findings.add(invalidFleetValue('token must have exactly one source', 'Set either env or file'), root.place(['cluster', 'token']));
  if (kubeconfig !== undefined && /\n|^\s*apiVersion:/.test(kubeconfig))
    findings.add(
      invalidFleetValue('not a path of a kubeconfig', 'Set the path of the file, not its content'),
      root.place(['cluster', 'kubeconfig']),
    );
  for (const [i, pin] of (caCertHashes ?? []).entries()) {
    const problem = caPin(pin);
    if (problem !== null) findings.add(problem, root.place(['cluster', 'caCertHashes', i]));
  }
  const endpointProblem = endpoint === undefined ? null : apiServerEndpoint(endpoint);
  if (endpointProblem !== null) findings.add(endpointProblem, root.place(['cluster', 'endpoint']));
  if (caCert !== undefined && caCertHashes !== undefined)
    findings.add(mutuallyExclusiveMembers('caCert', 'caCertHashes'), root.place(['cluster', 'caCertHashes']));
  for (const [i, entry] of imports.entries())
    if ((entry.ansibleInventory === undefined) === (entry.sshConfig === undefined))
      findings.add(
        invalidFleetValue('an import must have exactly one source', 'Set either ansibleInventory or sshConfig'),
        root.place(['imports', i]),
      );
}

function groupLayers({ groups = [] }: FleetFile, document: Document, findings: ProblemCollector): ReadonlyMap<string, Layer> {
  const layers = new Map<string, Layer>();
  for (const [i, group] of groups.entries()) {
    const layer = fileLayer(`group ${group.name}`, group, document, ['groups', i]);
    const place = layer.place(['name']);
    const same = layers.get(group.name);
    if (!/^[A-Za-z0-9_][\w.-]{0,252}$/.test(group.name) || group.name === 'all')
      findings.add(invalidInventoryName('group', group.name), place);
    else if (same) findings.add(duplicateGroup(group.name, formatPlace(same.place(['name']))), place);
    else layers.set(group.name, layer);
  }
  return layers;
}

/** Each group once; for duplicates the later position wins. */
function groupNames(
  refs: readonly GroupRef[],
  {
    groups,
    importedGroups,
    findings,
  }: { readonly groups: ReadonlyMap<string, Layer>; readonly importedGroups: ReadonlySet<string>; readonly findings: ProblemCollector },
): readonly string[] {
  const names = new Set<string>();
  for (const { name, place } of refs) {
    if (groups.has(name) || importedGroups.has(name)) {
      names.delete(name);
      names.add(name);
      continue;
    }
    const known = [...groups.keys(), ...importedGroups];
    findings.addShared(`group ${name}`, place, () => unknownGroup(name, known, closestName(name, known)));
  }
  return [...names];
}

/** Values that must be unique across hosts: address with route, node name and node IP. */
function validateTogether(
  hosts: readonly ResolvedHost[],
  {
    prepared,
    route,
    findings,
  }: { readonly prepared: ReadonlyMap<string, PreparedHost>; readonly route: (name: string) => Route; readonly findings: ProblemCollector },
): void {
  const addresses = new Map<string, HostEntry>();
  for (const { entry, settings } of prepared.values()) {
    const { jumps, direct } = route(entry.name);
    const isFromConfig = settings.ssh.address === entry.name && settings.ssh.port === undefined && jumps.length === 0 && !direct;
    const key = (isFromConfig ? entry.machine : undefined) ?? [settings.ssh, ...jumps].map(destinationKey).join(' ');
    const [address = ''] = key.split(' ');
    const first = addresses.get(key);
    if (first === undefined) addresses.set(key, entry);
    else {
      const problem = duplicateAddress(address, { name: entry.name, first: first.name, where: formatPlace(first.place) });
      findings.add(problem, settings.placeOf('address'));
    }
  }
  const taken = { nodeName: new Map<string, string>(), nodeIP: new Map<string, string>() };
  for (const { name, nodeRegistration } of hosts) {
    const nodeIP = nodeRegistration.kubeletExtraArgs?.findLast((arg) => arg.name === 'node-ip')?.value;
    for (const [what, value] of [
      ['nodeName', nodeRegistration.name?.trim().toLowerCase()],
      ['nodeIP', nodeIP],
    ] as const) {
      // A subnet may apply to many hosts.
      if (value === undefined || (what === 'nodeIP' && value.includes('/'))) continue;
      const first = taken[what].get(value);
      const { settings } = prepared.get(name) as PreparedHost;
      if (first === undefined) taken[what].set(value, name);
      else findings.addShared(`${what} ${value}`, settings.placeOf(what), () => duplicateNode(what, value, { name, first }));
    }
  }
}

function originsOf(layers: readonly Layer[]): ReadonlyMap<string, FleetOrigin> {
  const origins = new Map<string, FleetOrigin>();
  for (const layer of layers) {
    const put = (path: string, steps: readonly (string | number)[]): void => {
      origins.delete(path);
      origins.set(path, { layer: layer.label, position: layer.place(steps).position });
    };
    for (const [member, value] of Object.entries(layer.written)) {
      const rule = RULES.get(member);
      if (rule === undefined || value === undefined) continue;
      if (member === 'kubeletConfiguration') {
        if (layer.kubelet !== null) putFields(layer.kubelet, [], (path, steps) => put(path, ['kubeletConfiguration', ...steps]));
      } else if (rule.merge === 'byKey')
        for (const name of Object.keys(value)) put(rule.isStruct ? `${member}.${name}` : `${member}[${name}]`, [member, name]);
      else put(member, [member]);
    }
  }
  return origins;
}

/** The leaves of a KubeletConfiguration by their paths. */
function putFields(node: SourceNode, steps: readonly string[], put: (path: string, steps: readonly string[]) => void): void {
  if (node.kind === 'map' && node.entries.length > 0) {
    for (const { key, value } of node.entries)
      if (steps.length > 0 || (key !== 'apiVersion' && key !== 'kind')) putFields(value, [...steps, key], put);
    return;
  }
  const path = steps.map((step, i) => (!/^[A-Za-z_][\w-]*$/.test(step) ? `[${step}]` : i === 0 ? step : `.${step}`)).join('');
  put(`kubeletConfiguration.${path}`, steps);
}
