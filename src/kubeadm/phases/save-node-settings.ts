import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase } from '../../host/phase.ts';
import { type DesiredFile, diffFile } from '../../host/plan/diff-file.ts';
import { encodeNodeSettings, NODE_SETTINGS_PATH, type NodeSettings } from '../node-settings/node-settings.ts';

export interface SaveNodeSettingsInput {
  readonly nodeSettings: NodeSettings;
  /** False for a user without permission to chown (an unprivileged `--rootfs`). */
  readonly mayChown: boolean;
  /** kubelet-start stores the settings, before it writes the unit files. */
  readonly isStored?: boolean;
}

/** The file of the settings. */
export function nodeSettingsFile(nodeSettings: NodeSettings): DesiredFile {
  return { path: NODE_SETTINGS_PATH, content: encodeNodeSettings(nodeSettings), mode: 0o600, owner: 'root:root' };
}

/**
 * Stores the settings declared for a node on its host, so that `upgrade node` can reuse them. Runs after the
 * kubelet was healthy with them: rolled-back settings are never stored. Child of the phase that writes the
 * kubelet files, so both are run or skipped together.
 */
function saveNodeSettings(parent: string) {
  return definePhase<SaveNodeSettingsInput, FileFact | null>({
    name: `${parent}/remember`,
    short: 'Store the settings of this command (options and files) on the host, for later upgrades',
    changesKubelet: true,
    needsNoAddress: true,
    observe: async ({ host, signal }) => (await observe(host, fileFacts([NODE_SETTINGS_PATH]), signal)).get(NODE_SETTINGS_PATH) ?? null,
    plan: (found, { nodeSettings, mayChown, isStored = false }) => {
      if (isStored) return { changes: [], noop: 'the phase kubelet-start stores the node settings' };
      const change = diffFile(found, nodeSettingsFile(nodeSettings), { mayChown });
      return change === null ? { changes: [], noop: 'the stored node settings are unchanged' } : { changes: [change] };
    },
  });
}

export const saveStartedNodeSettings = saveNodeSettings('kubelet-start');

export const saveUpgradedNodeSettings = saveNodeSettings('kubelet-config');
