import type { Json } from '../../base/json.ts';

/**
 * One thing a migration did or found. `lossy`: something the old kubelet did that the new one cannot be told to do; the migration is refused unless that is
 * allowed.
 */
export interface MigrationStep {
  readonly did: 'removed' | 'moved' | 'rewritten' | 'pinned' | 'kept' | 'changes';
  /** `featureGates.NodeSwap`, `--max-pods`. */
  readonly what: string;
  /** A clause: why, and what it means. */
  readonly message: string;
  readonly lossy: boolean;
}

/** A change of the file: undefined takes the field out. */
export interface FieldEdit {
  readonly path: readonly string[];
  readonly value: Json | undefined;
}

export interface Migrated {
  readonly steps: readonly MigrationStep[];
  readonly edits: readonly FieldEdit[];
}
