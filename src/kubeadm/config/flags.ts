import type { Problem } from '../../base/errors.ts';
import { flagNeeds } from '../../codec/document-problems.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import * as read from './flag-values.ts';
import { type FlagReader, type Flags, type FlagValue, isProblem } from './flag-values.ts';
import { checkValues, type LoadedConfig } from './load.ts';
import { type BootstrapToken, type JoinConfiguration, MODEL_MEMBERS, type ModelKind, type ModelSet } from './model.ts';
import { type Origin, positionsOf } from './origins.ts';

/** The subcommands of `upgrade` with a section in UpgradeConfiguration. */
export type UpgradeCommand = 'apply' | 'node' | 'plan' | 'diff';

/** Merges flags of `init` over InitConfiguration and ClusterConfiguration; both exist afterwards. */
export function mergeInitFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  return checkValues(merge({ init: {}, cluster: {}, ...config }, flags, INIT_FLAGS));
}

/** Merges flags and argument (`api-server-endpoint`) of `join` over JoinConfiguration, which exists afterwards. */
export function mergeJoinFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  const merged = merge({ join: {}, ...config }, flags, JOIN_FLAGS);
  return checkValues({ ...merged, problems: [...merged.problems, ...needlessFlags(merged.join ?? {}, flags)] });
}

export function mergeResetFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  return checkValues(merge({ reset: {}, ...config }, flags, RESET_FLAGS));
}

/** Merges flags and argument (`bootstrap-token`) of `token create`; InitConfiguration has one token afterwards. */
export function mergeTokenFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  return checkValues(merge({ ...config, init: { bootstrapTokens: [{}] } }, flags, TOKEN_FLAGS));
}

/**
 * Merges flags and argument (`version`) of one `upgrade` subcommand over UpgradeConfiguration, which exists afterwards.
 */
export function mergeUpgradeFlags(config: LoadedConfig, command: UpgradeCommand, flags: Flags): LoadedConfig {
  return checkValues(merge({ upgrade: {}, ...config }, flags, UPGRADE_FLAGS[command]));
}

function merge(config: LoadedConfig, flags: Flags, table: FlagTable): LoadedConfig {
  let models: ModelSet = config;
  const origins = new Map<string, Origin>(config.origins);
  const problems: Problem[] = [...config.problems];
  for (const [name, apply] of Object.entries(table)) {
    const value = flags[name];
    if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) continue;
    const applied = apply(models, value);
    const argument = ARGUMENTS.get(name);
    const flag = argument === undefined ? `--${name}` : `argument ${argument}`;
    if (isProblem(applied)) problems.push({ ...applied, path: flag });
    else {
      models = applied.models;
      for (const path of applied.paths) setOrigin(origins, path, { flag });
    }
  }
  // An invalid flag must not cause an additional error about a missing value.
  const damaged = problems.length > config.problems.length ? new Set(Object.keys(MODEL_MEMBERS) as ModelKind[]) : config.damaged;
  return { ...config, ...models, problems, origins, positions: positionsOf(origins), damaged };
}

/** Positional arguments: kubeadm's name and the name in the help. */
const ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ['api-server-endpoint', 'address:port'],
  ['bootstrap-token', 'token'],
  ['version', 'version'],
]);

/** Removes the previous origins at and below the path. */
function setOrigin(origins: Map<string, Origin>, path: string, origin: Origin): void {
  for (const known of origins.keys()) if (known.startsWith(path) && /^[.[]/.test(known.slice(path.length))) origins.delete(known);
  origins.set(path, origin);
}

const INIT = 'InitConfiguration';

const INIT_FLAGS: FlagTable = {
  ...nodeFlags(INIT),
  ...memberFlags(INIT, { token: ['bootstrapTokens', readTokens] }),
  'token-ttl': (models, value) => {
    const ttl = read.duration(value);
    if (isProblem(ttl)) return ttl;
    const tokens: readonly BootstrapToken[] = models.init?.bootstrapTokens?.length ? models.init.bootstrapTokens : [{}];
    const bootstrapTokens = tokens.map(({ expires: _, ...token }) => ({ ...token, ttl }));
    const paths = tokens.map((_, i) => `${INIT}.bootstrapTokens[${i}].ttl`);
    return { models: { ...models, init: { ...models.init, bootstrapTokens } }, paths };
  },
  ...memberFlags(INIT, {
    'certificate-key': ['certificateKey', read.certificateKey],
    'apiserver-advertise-address': ['localAPIEndpoint.advertiseAddress', read.text],
    'apiserver-bind-port': ['localAPIEndpoint.bindPort', read.integer],
  }),
  ...memberFlags('ClusterConfiguration', {
    'pod-network-cidr': ['networking.podSubnet', read.text],
    'service-cidr': ['networking.serviceSubnet', read.text],
    'service-dns-domain': ['networking.dnsDomain', read.text],
    'kubernetes-version': ['kubernetesVersion', read.text],
    'control-plane-endpoint': ['controlPlaneEndpoint', read.text],
    'apiserver-cert-extra-sans': ['apiServer.certSANs', read.list],
    'cert-dir': ['certificatesDir', read.text],
    'image-repository': ['imageRepository', read.text],
  }),
  'feature-gates': (models, value) => {
    const gates = read.featureGates(value);
    if (isProblem(gates)) return gates;
    const paths = Object.keys(gates).map((name) => formatFieldPath(['ClusterConfiguration', 'featureGates', name]));
    return { models: { ...models, cluster: { ...models.cluster, featureGates: { ...models.cluster?.featureGates, ...gates } } }, paths };
  },
};

function readTokens(value: FlagValue): readonly BootstrapToken[] | Problem {
  const token = read.token(value);
  return isProblem(token) ? token : [{ token }];
}

const JOIN = 'JoinConfiguration';

/** The flags and the argument of `join`. */
const JOIN_FLAGS: FlagTable = {
  ...nodeFlags(JOIN),
  ...memberFlags(`${JOIN}.discovery`, {
    'api-server-endpoint': ['bootstrapToken.apiServerEndpoint', read.text],
    'discovery-file': ['file', (value) => ({ kubeConfigPath: read.text(value) })],
  }),
  token: setToken,
  ...memberFlags(`${JOIN}.discovery`, {
    'discovery-token': ['bootstrapToken.token', read.token],
    'discovery-token-ca-cert-hash': ['bootstrapToken.caCertHashes', read.list],
    'discovery-token-unsafe-skip-ca-verification': ['bootstrapToken.unsafeSkipCAVerification', read.boolean],
    'tls-bootstrap-token': ['tlsBootstrapToken', read.token],
  }),
  'control-plane': setControlPlane,
  ...onlyForControlPlane(
    memberFlags(`${JOIN}.controlPlane`, {
      'certificate-key': ['certificateKey', read.certificateKey],
      'apiserver-advertise-address': ['localAPIEndpoint.advertiseAddress', read.text],
      'apiserver-bind-port': ['localAPIEndpoint.bindPort', read.integer],
    }),
  ),
};

/**
 * Sets the token for discovery and TLS bootstrap; only for TLS bootstrap with discovery by file. More
 * specific flags are applied later.
 */
function setToken(models: ModelSet, value: FlagValue): ReturnType<ApplyFlag> {
  const token = read.token(value);
  if (isProblem(token)) return token;
  const { file, bootstrapToken } = models.join?.discovery ?? {};
  const isForDiscovery = file === undefined || bootstrapToken !== undefined;
  const discovery = {
    ...models.join?.discovery,
    tlsBootstrapToken: token,
    ...(isForDiscovery && { bootstrapToken: { ...bootstrapToken, token } }),
  };
  return {
    models: { ...models, join: { ...models.join, discovery } },
    paths: [`${JOIN}.discovery.tlsBootstrapToken`, ...(isForDiscovery ? [`${JOIN}.discovery.bootstrapToken.token`] : [])],
  };
}

/** Makes the node a control plane or a worker. Control plane settings of a file keep their position. */
function setControlPlane(models: ModelSet, value: FlagValue): ReturnType<ApplyFlag> {
  const desired = read.boolean(value);
  if (isProblem(desired)) return desired;
  const { controlPlane, ...worker } = models.join ?? {};
  if (!desired) return { models: { ...models, join: worker }, paths: [] };
  if (controlPlane) return { models, paths: [] };
  return { models: { ...models, join: { ...worker, controlPlane: {} } }, paths: [`${JOIN}.controlPlane`] };
}

/** Without --control-plane these flags are ignored, and reported by `needlessFlags`. */
function onlyForControlPlane(table: FlagTable): FlagTable {
  const guarded = Object.entries(table).map(([name, apply]): [string, ApplyFlag] => [
    name,
    (models, value) => {
      const applied = apply(models, value);
      return isProblem(applied) || models.join?.controlPlane ? applied : { ...applied, models };
    },
  ]);
  return Object.fromEntries(guarded);
}

/**
 * Control plane flags without --control-plane. kubeadm warns and joins a worker; here they are errors, since
 * the user wants a control plane.
 */
function needlessFlags(join: JoinConfiguration, flags: Flags): readonly Problem[] {
  if (join.controlPlane) return [];
  const given = ['certificate-key', 'apiserver-advertise-address', 'apiserver-bind-port'].filter(
    (name) => flags[name] !== undefined && flags[name] !== '',
  );
  return given.map((name) => ({ ...flagNeeds('--control-plane'), path: `--${name}` }));
}

const RESET_FLAGS: FlagTable = {
  ...memberFlags('ResetConfiguration', {
    'cert-dir': ['certificatesDir', read.text],
    'cri-socket': ['criSocket', read.text],
    'cleanup-tmp-dir': ['cleanupTmpDir', read.boolean],
    'dry-run': ['dryRun', read.boolean],
    force: ['force', read.boolean],
  }),
  ...ignoreFlag('ResetConfiguration'),
  ...memberFlags('ResetConfiguration', { 'skip-phases': ['skipPhases', read.list] }),
};

/** The flags and the argument (`bootstrap-token`) of `token create`, which define one token. */
const TOKEN_FLAGS = memberFlags('InitConfiguration.bootstrapTokens[0]', {
  'bootstrap-token': ['token', read.token],
  description: ['description', read.text],
  ttl: ['ttl', read.duration],
  usages: ['usages', read.list],
  groups: ['groups', read.list],
});

const CHOICE = {
  'allow-experimental-upgrades': ['allowExperimentalUpgrades', read.boolean],
  'allow-release-candidate-upgrades': ['allowRCUpgrades', read.boolean],
  version: ['kubernetesVersion', read.text],
  'print-config': ['printConfig', read.boolean],
} as const;
const WORK = {
  'certificate-renewal': ['certificateRenewal', read.boolean],
  'dry-run': ['dryRun', read.boolean],
  'etcd-upgrade': ['etcdUpgrade', read.boolean],
  patches: ['patches', (value: FlagValue) => ({ directory: read.text(value) })],
  'skip-phases': ['skipPhases', read.list],
} as const;
const UPGRADE = 'UpgradeConfiguration';

/** The flags of each subcommand of `upgrade`. */
const UPGRADE_FLAGS: Readonly<Record<UpgradeCommand, FlagTable>> = {
  apply: {
    ...memberFlags(`${UPGRADE}.apply`, { ...CHOICE, ...WORK, force: ['forceUpgrade', read.boolean] }),
    ...ignoreFlag(`${UPGRADE}.apply`),
  },
  node: { ...memberFlags(`${UPGRADE}.node`, WORK), ...ignoreFlag(`${UPGRADE}.node`) },
  plan: {
    ...memberFlags(`${UPGRADE}.plan`, { ...CHOICE, 'dry-run': WORK['dry-run'], 'etcd-upgrade': WORK['etcd-upgrade'] }),
    ...ignoreFlag(`${UPGRADE}.plan`),
  },
  diff: memberFlags(`${UPGRADE}.diff`, { version: CHOICE.version, 'context-lines': ['contextLines', read.integer] }),
};

/** Applies a flag: returns the changed models and the set paths, or the problem of its value. */
type ApplyFlag = (models: ModelSet, value: FlagValue) => { readonly models: ModelSet; readonly paths: readonly string[] } | Problem;

/** Flags and positional arguments by name, applied in this order, so that later ones win. */
type FlagTable = Readonly<Record<string, ApplyFlag>>;

/**
 * Flags that set one member each.
 * @param at path of the part that has the members, which begins with the kind
 */
function memberFlags(at: string, members: Readonly<Record<string, readonly [path: string, reader: FlagReader<unknown>]>>): FlagTable {
  return Object.fromEntries(
    Object.entries(members).map(([flag, [path, reader]]) => [flag, sets(`${at}.${path}`, reader, (_, value) => value)]),
  );
}

/** `--ignore-preflight-errors`: names of checks, which are added to those of the file, ignoring case. */
function ignoreFlag(at: string): FlagTable {
  const union = (before: unknown, ids: readonly string[]) =>
    new Map([...((before ?? []) as readonly string[]), ...ids].map((id) => [id.toLowerCase(), id])).values();
  return { 'ignore-preflight-errors': sets(`${at}.ignorePreflightErrors`, read.list, (before, ids) => [...union(before, ids)]) };
}

function sets<T>(path: string, reader: FlagReader<T>, change: (before: unknown, value: T) => unknown): ApplyFlag {
  return (models, value) => {
    const parsed = reader(value);
    if (isProblem(parsed)) return parsed;
    const [kind, ...names] = path.split(/[.[\]]+/);
    const member = MODEL_MEMBERS[kind as ModelKind];
    return { models: { ...models, [member]: changeAt(models[member], names, (before) => change(before, parsed as T)) }, paths: [path] };
  };
}

function changeAt(value: unknown, [name, ...rest]: readonly string[], change: (before: unknown) => unknown): unknown {
  if (name === undefined) return change(value);
  if (Array.isArray(value)) return value.with(Number(name), changeAt(value[Number(name)], rest, change));
  const members = (value ?? {}) as Readonly<Record<string, unknown>>;
  return { ...members, [name]: changeAt(members[name], rest, change) };
}

/** Flags about the node, shared by `init` and `join`. */
function nodeFlags(kind: 'InitConfiguration' | 'JoinConfiguration'): FlagTable {
  return {
    ...memberFlags(`${kind}.nodeRegistration`, {
      'node-name': ['name', read.text],
      'cri-socket': ['criSocket', read.text],
      'node-taints': ['taints', read.taints],
    }),
    ...ignoreFlag(`${kind}.nodeRegistration`),
    ...memberFlags(kind, {
      patches: ['patches.directory', read.text],
      'skip-phases': ['skipPhases', read.list],
      'dry-run': ['dryRun', read.boolean],
    }),
  };
}
