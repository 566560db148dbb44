import type { JsonObject } from '../../../base/json.ts';
import { sourceToJson } from '../../../codec/source.ts';
import type { NodeSettings } from '../../node-settings/node-settings.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

/** The settings of a node that are saved on the host for upgrades. */
export function nodeSettingsOf(
  { registration, hostFlags }: Pick<ObservedNode, 'registration' | 'hostFlags'>,
  options: NodeOptions,
): NodeSettings {
  const isSplit = options.configDir === true;
  const { name, criSocket, taints } = registration;
  const { kept } = hostFlags;
  const kubeletExtraArgs = registration.kubeletExtraArgs.filter((arg) => !kept.some((flag) => flag.name === arg.name));
  const keptFlags = kept.length === 0 ? {} : { keptFlags: kept.map(({ name, value }) => ({ name, value })) };
  return {
    nodeRegistration: { name, criSocket, ...(taints === undefined ? {} : { taints }), kubeletExtraArgs, ...keptFlags },
    overlays: options.overlays.flatMap(({ file, root, layer }) =>
      root === null ? [] : [{ source: fileOf(file), content: sourceToJson(root) as JsonObject, ...(isSplit && { layer }) }],
    ),
    declared: options.declared.map((setting) => ({ ...setting, source: fileOf(setting.source) })),
    settings: options.settings,
    patches: options.patches,
    ...(isSplit ? { configDir: true } : {}),
  };
}

/** Drops folder and line, so that moving a declaration does not change the saved settings. */
function fileOf(source: string): string {
  return source.replace(/:[0-9]+:[0-9]+$/, '').replace(/^.*\//, '');
}
