import { type FlagTable, sets, union } from './flag-table.ts';
import * as read from './flag-values.ts';
import type { ModelSet, ResetConfiguration } from './model.ts';

const RESET = 'ResetConfiguration';

export const RESET_FLAGS: FlagTable = {
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
