import type { Problem } from '../../base/errors.ts';
import { type FlagTable, sets, union } from './flag-table.ts';
import * as read from './flag-values.ts';
import { type Flags, isProblem } from './flag-values.ts';
import { INIT_FLAGS } from './flags-init.ts';
import { JOIN_FLAGS, needlessFlags } from './flags-join.ts';
import { UPGRADE_FLAGS, type UpgradeCommand } from './flags-upgrade.ts';
import { checkValues, type LoadedConfig } from './load.ts';
import { type BootstrapToken, MODEL_MEMBERS, type ModelKind, type ModelSet, type ResetConfiguration } from './model.ts';
import { type Origin, positionsOf } from './origins.ts';

/** Merges flags of `init` over InitConfiguration and ClusterConfiguration; both exist afterwards. */
export function mergeInitFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  return checkValues(merge({ init: {}, cluster: {}, ...config }, flags, INIT_FLAGS));
}

/**
 * Merges flags and argument (`api-server-endpoint`) of `join` over JoinConfiguration, which exists
 * afterwards.
 */
export function mergeJoinFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  const merged = merge({ join: {}, ...config }, flags, JOIN_FLAGS);
  return checkValues({ ...merged, problems: [...merged.problems, ...needlessFlags(merged.join ?? {}, flags)] });
}

/** Merges flags of `reset` over ResetConfiguration, which exists afterwards. */
export function mergeResetFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  return checkValues(merge({ reset: {}, ...config }, flags, RESET_FLAGS));
}

/**
 * Merges flags and argument (`bootstrap-token`) of `token create`; InitConfiguration has one token
 * afterwards.
 */
export function mergeTokenFlags(config: LoadedConfig, flags: Flags): LoadedConfig {
  return checkValues(merge({ ...config, init: { bootstrapTokens: [{}] } }, flags, TOKEN_FLAGS));
}

/**
 * Merges flags and argument (`version`) of one `upgrade` subcommand over UpgradeConfiguration, which exists
 * afterwards.
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

const RESET = 'ResetConfiguration';

const RESET_FLAGS: FlagTable = {
  'cert-dir': sets(`${RESET}.certificatesDir`, read.text, (models, certificatesDir) => inReset(models, { certificatesDir })),
  'cri-socket': sets(`${RESET}.criSocket`, read.text, (models, criSocket) => inReset(models, { criSocket })),
  'cleanup-tmp-dir': sets(`${RESET}.cleanupTmpDir`, read.boolean, (models, cleanupTmpDir) => inReset(models, { cleanupTmpDir })),
  'dry-run': sets(`${RESET}.dryRun`, read.boolean, (models, dryRun) => inReset(models, { dryRun })),
  force: sets(`${RESET}.force`, read.boolean, (models, force) => inReset(models, { force })),
  'ignore-preflight-errors': sets(`${RESET}.ignorePreflightErrors`, read.list, (models, ids) =>
    inReset(models, { ignorePreflightErrors: union(models.reset?.ignorePreflightErrors, ids) }),
  ),
  'skip-phases': sets(`${RESET}.skipPhases`, read.list, (models, skipPhases) => inReset(models, { skipPhases })),
};

function inReset(models: ModelSet, reset: ResetConfiguration): ModelSet {
  return { ...models, reset: { ...models.reset, ...reset } };
}

const TOKEN = 'InitConfiguration.bootstrapTokens[0]';

/** The flags and the argument (`bootstrap-token`) of `token create`, which define one token. */
const TOKEN_FLAGS: FlagTable = {
  'bootstrap-token': sets(`${TOKEN}.token`, read.token, (models, token) => inToken(models, { token })),
  description: sets(`${TOKEN}.description`, read.text, (models, description) => inToken(models, { description })),
  ttl: sets(`${TOKEN}.ttl`, read.duration, (models, ttl) => inToken(models, { ttl })),
  usages: sets(`${TOKEN}.usages`, read.list, (models, usages) => inToken(models, { usages })),
  groups: sets(`${TOKEN}.groups`, read.list, (models, groups) => inToken(models, { groups })),
};

function inToken(models: ModelSet, part: BootstrapToken): ModelSet {
  return { ...models, init: { ...models.init, bootstrapTokens: [{ ...models.init?.bootstrapTokens?.[0], ...part }] } };
}
