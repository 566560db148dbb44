import { type ApplyFlag, type FlagTable, sets, union } from './flag-table.ts';
import type { FlagReader } from './flag-values.ts';
import * as read from './flag-values.ts';

/** The subcommands of `upgrade` with a section in UpgradeConfiguration. */
export type UpgradeCommand = 'apply' | 'node' | 'plan' | 'diff';

function upgradeFlag<T>(command: UpgradeCommand, member: string, reader: FlagReader<T>): ApplyFlag {
  return sets(`UpgradeConfiguration.${command}.${member}`, reader, (models, value) => {
    const before = models.upgrade?.[command];
    return { ...models, upgrade: { ...models.upgrade, [command]: { ...before, [member]: value } } };
  });
}

function upgradeFlags(
  command: UpgradeCommand,
  members: Readonly<Record<string, readonly [member: string, reader: FlagReader<unknown>]>>,
): FlagTable {
  return Object.fromEntries(Object.entries(members).map(([flag, [member, reader]]) => [flag, upgradeFlag(command, member, reader)]));
}

/** Lists of preflight checks are merged with those of the file. */
function upgradeIgnore(command: 'apply' | 'node' | 'plan'): FlagTable {
  const ignore = sets(`UpgradeConfiguration.${command}.ignorePreflightErrors`, read.list, (models, ids) => {
    const before = models.upgrade?.[command];
    const ignorePreflightErrors = union(before?.ignorePreflightErrors, ids);
    return { ...models, upgrade: { ...models.upgrade, [command]: { ...before, ignorePreflightErrors } } };
  });
  return { 'ignore-preflight-errors': ignore };
}

const directory: FlagReader<{ readonly directory: string }> = (value) => ({ directory: read.text(value) as string });
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
  patches: ['patches', directory],
  'skip-phases': ['skipPhases', read.list],
} as const;

/** The flags of each subcommand of `upgrade`. */
export const UPGRADE_FLAGS: Readonly<Record<UpgradeCommand, FlagTable>> = {
  apply: { ...upgradeFlags('apply', { ...CHOICE, ...WORK, force: ['forceUpgrade', read.boolean] }), ...upgradeIgnore('apply') },
  node: { ...upgradeFlags('node', WORK), ...upgradeIgnore('node') },
  plan: {
    ...upgradeFlags('plan', { ...CHOICE, 'dry-run': WORK['dry-run'], 'etcd-upgrade': WORK['etcd-upgrade'] }),
    ...upgradeIgnore('plan'),
  },
  diff: upgradeFlags('diff', { version: CHOICE.version, 'context-lines': ['contextLines', read.integer] }),
};
