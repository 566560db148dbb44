import type { Problem } from '../../../base/errors.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { defaultKubeletConfiguration } from '../../../kubelet/defaults/effective-configuration.ts';
import { effectiveOf, type KubeletReading, type SetupChange } from '../../../kubelet/effective/field-changes.ts';
import { UNSAFE_DIRECTORY } from '../../../kubelet/validate/directory-rules.ts';
import { checkDirectories } from '../../../kubelet/workload/check-directories.ts';
import type { NodeOptions } from './node-options.ts';

/**
 * Checks the directories that the new files of a node name, also of a new node: the kubelet deletes the content of
 * `podLogsDir` and runs the programs in `volumePluginDir`. The default directories and unchanged ones cost no request.
 * @returns refusals
 */
export async function checkDirectoriesOfNode(
  { host, signal }: PhaseContext,
  { skipPreflight, staged }: NodeOptions,
  { setups, reading, isNew }: { readonly setups: SetupChange; readonly reading: KubeletReading; readonly isNew: boolean },
): Promise<readonly Problem[]> {
  if (skipPreflight || staged) return [];
  const after = effectiveOf(setups.after, reading);
  const defaults = defaultKubeletConfiguration(reading.minor, reading.catalogue);
  const isDefault = (name: string): boolean => after?.[name] === undefined || after[name] === defaults[name];
  if (after === null || (isDefault('podLogsDir') && isDefault('volumePluginDir'))) return [];
  const before = setups.before === null || isNew ? null : effectiveOf(setups.before, reading);
  const issues = await checkDirectories(host, { before: before ?? defaults, after, hidden: [] }, signal);
  return issues.map(({ path, why }) => ({
    host: host.name,
    code: UNSAFE_DIRECTORY,
    path,
    message: why,
    hint: `Use another directory for ${path}`,
  }));
}
