import { withCluster } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import { NODE_SETTINGS_PATH } from '../node-settings/node-settings.ts';
import { upgradeKubeletConfig } from '../phases/kubelet-start.ts';
import { type RestoredFiles, restoreFiles } from '../phases/restore-files.ts';
import { saveUpgradedNodeSettings } from '../phases/save-node-settings.ts';
import { prepareUpgrade, type UpgradeNodeOptions } from './upgrade/upgrade-node.ts';

interface UndoOptions extends UpgradeNodeOptions {
  /** All files of the kubelet after the undo. */
  readonly restore: RestoredFiles;
  /** Other files that the undo restores. */
  readonly others: RestoredFiles;
  readonly warnings: readonly Warning[];
}

/** Restores earlier files of a node, with the checks, the confirmation and the verification of `upgrade node`. */
export const undoWorkflow: Workflow<UndoOptions, Awaited<ReturnType<typeof prepareUndo>>['input']> = {
  name: 'undo',
  phases: [
    restoreFiles.select((input) => ({ files: input.others })),
    upgradeKubeletConfig.select((input) => input.kubeletConfig),
    saveUpgradedNodeSettings.select((input) => input.save),
  ],
  prepare: withCluster((context, options: UndoOptions) => prepareUndo(context, options)),
};

async function prepareUndo(context: Parameters<typeof prepareUpgrade>[0], options: UndoOptions) {
  const { others, restore, warnings } = options;
  const prepared = await prepareUpgrade(context, options);
  const { kubeletConfig, save } = prepared.input;
  const { backupDir: _, ...kubelet } = kubeletConfig;
  // The first phase removes settings that did not exist before.
  const isStored = restore.get(NODE_SETTINGS_PATH) == null;
  return {
    ...prepared,
    input: { others, kubeletConfig: kubelet, save: { ...save, isStored } },
    warnings: [...warnings, ...prepared.warnings],
  };
}
