import type { Json } from '../../base/json.ts';

/**
 * One action or finding of a migration. `lossy`: behaviour of the old kubelet that the new one does not
 * support; the migration is refused unless forced.
 */
export interface MigrationStep {
  readonly did: 'removed' | 'moved' | 'rewritten' | 'pinned' | 'kept' | 'changes';
  /** `featureGates.NodeSwap`, `--max-pods`. */
  readonly what: string;
  /** A clause with reason and effect. */
  readonly message: string;
  readonly lossy: boolean;
}

/** A change of the file: undefined removes the field. */
export interface FieldEdit {
  readonly path: readonly string[];
  readonly value: Json | undefined;
}

export interface Migrated {
  readonly steps: readonly MigrationStep[];
  readonly edits: readonly FieldEdit[];
}
