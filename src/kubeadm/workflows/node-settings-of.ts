import type { JsonObject } from '../../base/json.ts';
import { sourceToJson } from '../../codec/source.ts';
import type { NodeSettings } from '../node-settings/node-settings.ts';
import type { NodeOptions } from './node-options.ts';
import type { ObservedNode } from './observe-node.ts';

/** What a run declares for its node, as the host is to remember it. */
export function nodeSettingsOf({ registration }: Pick<ObservedNode, 'registration'>, options: NodeOptions): NodeSettings {
  const { name, criSocket, taints, kubeletExtraArgs } = registration;
  return {
    nodeRegistration: { name, criSocket, ...(taints === undefined ? {} : { taints }), kubeletExtraArgs },
    overlays: options.overlays.flatMap(({ file, root }) =>
      root === null ? [] : [{ source: fileOf(file), content: sourceToJson(root) as JsonObject }],
    ),
    declared: options.declared.map((setting) => ({ ...setting, source: fileOf(setting.source) })),
    settings: options.settings,
    patches: options.patches,
  };
}

/** Where a file lies, and the line in it, is another matter on another day: what is remembered stays the same while what is declared does. */
function fileOf(source: string): string {
  return source.replace(/:[0-9]+:[0-9]+$/, '').replace(/^.*\//, '');
}
