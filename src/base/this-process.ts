/** Identifies this process on hosts that it changes. */
export interface ThisProcess {
  /** For messages: `alice@laptop`. */
  readonly name: string;
  readonly id: number;
  /** Changes with every boot. */
  readonly machine: string;
  /** Whether a process of the local host is running. */
  isRunning(id: number): boolean;
}
