import { isAppError, type Problem } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { revealText } from '../../base/text/secret.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { observe } from '../../host/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import { defaultKubeletConfiguration } from '../../kubelet/defaults/default-kubelet-configuration.ts';
import { type KubeletTexts, runningInput } from '../../kubelet/effective/field-changes.ts';
import { UNSAFE_DIRECTORY } from '../../kubelet/validate/directory-rules.ts';
import { checkDirectories } from '../../kubelet/workload/check-directories.ts';
import type { CheckedNode } from './check-pods-of-node.ts';
import type { NodeOptions } from './node-options.ts';

/**
 * Checks the directories that the new files of a node name, also of a new node: the kubelet deletes the content of
 * `podLogsDir` and runs the programs in `volumePluginDir`. The default directories and unchanged ones cost no request.
 * @returns refusals
 */
export async function checkDirectoriesOfNode(
  { host, signal }: PhaseContext,
  { skipPreflight, staged, catalogue, groups }: NodeOptions,
  { node, design, dropIns }: Pick<CheckedNode, 'node' | 'design' | 'dropIns'>,
): Promise<readonly Problem[]> {
  if (skipPreflight || staged) return [];
  const { minor, unit, files } = design;
  const effectiveOf = (configYaml: string, flagsEnv: string, configDropIns: KubeletTexts['dropIns']): JsonObject | null => {
    try {
      return groups.effectiveOf(
        runningInput({ configYaml, flagsEnv, dropIns: configDropIns }, { catalogue, minor, unitArgs: unit.extraArgs }),
      );
    } catch (error) {
      if (!isAppError(error)) throw error;
      return null;
    }
  };
  const after = effectiveOf(revealText(files.configYaml.content), revealText(files.flagsEnv.content), dropIns.after);
  const defaults = defaultKubeletConfiguration(minor, catalogue);
  const isDefault = (name: string): boolean => after?.[name] === undefined || after[name] === defaults[name];
  if (after === null || (isDefault('podLogsDir') && isDefault('volumePluginDir'))) return [];
  const found = await observe(host, fileFacts([KUBELET_CONFIG_FILE, FLAGS_ENV]), signal);
  const present = node.facts.identity.state === 'missing' ? undefined : found.get(KUBELET_CONFIG_FILE)?.content;
  const before = present === undefined ? null : effectiveOf(present, found.get(FLAGS_ENV)?.content ?? '', dropIns.before);
  const issues = await checkDirectories(host, { before: before ?? defaults, after, hidden: [] }, signal);
  return issues.map(({ path, why }) => ({
    host: host.name,
    code: UNSAFE_DIRECTORY,
    path,
    message: why,
    hint: `Use another directory for ${path}`,
  }));
}
