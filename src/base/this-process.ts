/** Identifies this process on hosts that it changes. */
export interface ThisProcess {
  /** For people: `alice@laptop`. */
  readonly name: string;
  readonly id: number;
  /** Another one after every boot. */
  readonly machine: string;
  /** Whether a process of the local host is running. */
  isRunning(id: number): boolean;
}
