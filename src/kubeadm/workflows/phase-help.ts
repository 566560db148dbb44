/** A phase in help and completion. */
export interface PhaseHelp {
  readonly name: string;
  readonly short: string;
}

/** A command with phases. */
export type PhasedCommand = 'init' | 'join' | 'reset' | 'upgrade apply' | 'upgrade node';

/** The phases of each command, in order. */
export type PhaseLists = Readonly<Record<PhasedCommand, readonly PhaseHelp[]>>;
