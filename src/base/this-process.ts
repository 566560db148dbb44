/** This process, as it is told to hosts it writes to. */
export interface ThisProcess {
  /** For people: `alice@laptop`. */
  readonly name: string;
  readonly id: number;
  /** Another one after every boot. */
  readonly machine: string;
  /** Whether a process of this machine runs. */
  isRunning(id: number): boolean;
}
