import type { Command } from 'commander';

/** A value for the word at the cursor. */
export interface Candidate {
  readonly value: string;
  readonly description?: string | undefined;
}

/** Values for an option or argument. */
export interface Values {
  readonly items: readonly Candidate[];
  /** The word is a comma-separated list of such values. */
  readonly isList?: boolean;
  /** The values are only beginnings: no space follows. */
  readonly isPrefix?: boolean;
  /** Also names of files, or of directories. */
  readonly paths?: 'files' | 'directories';
}

/** The command line up to the cursor. */
export interface PartialLine {
  readonly command: Command;
  /** Names of the command, without the program: `fleet plan`. */
  readonly path: string;
  /** Arguments before the cursor. */
  readonly args: readonly string[];
  /** The last value of each option before the cursor, by its long name. */
  readonly options: ReadonlyMap<string, string>;
}
