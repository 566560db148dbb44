import type { RunTime } from '../base/clock.ts';
import type { LocalFiles } from '../base/local-files.ts';
import type { Reporters } from '../base/reporter.ts';
import type { Text } from '../base/text/styled.ts';
import type { HostConnections, LocalCommands, ProgramSource, SshConfigSource } from '../fleet/ports.ts';
import type { RunJournals } from '../fleet/run-journals.ts';
import type { ClusterConnections, SecretSource, TemplateSource } from '../kubeadm/ports.ts';
import type { Lab, LabOptions } from '../lab/lab-options.ts';
import type { HostKeys } from '../ssh/host-keys.ts';
import type { SshOptions } from '../ssh/options.ts';

/**
 * Where results and progress go. Results (plans, rendered files, tables) on stdout, everything else on stderr. Control characters are escaped by the output:
 * what is printed may hold text of hosts and servers as they sent it.
 */
export interface Output {
  stdout(text: Text): void;
  stderr(text: Text): void;
  /** Content of a file, on stdout: kept byte for byte, and escaped as other text only where stdout is a terminal. */
  document(text: string): void;
  /** Shows how far things are in a line at the bottom, null takes it away. Absent: there is no terminal. */
  readonly status?: (line: string | null) => void;
}

/** Where text is written as it is, terminal codes included. */
export interface RawOutput {
  stdout(text: string): void;
  stderr(text: string): void;
  /** Shows how far things are in a line at the bottom, null takes it away. Absent: there is no terminal. */
  readonly status?: (line: string | null) => void;
}

/** What is served at a path. */
export interface LocalAnswer {
  readonly status: number;
  /** The content type. */
  readonly type: string;
  readonly body: string;
}

/** A server on this machine. */
export interface LocalServer {
  readonly port: number;
  close(): Promise<void>;
}

/** The user: where results and progress go, and who answers questions. */
export interface Terminal extends Reporters {
  readonly output: Output;
  /** Asks on the terminal; null when there is none. */
  confirm(question: string): Promise<boolean | null>;
}

/** The end of a process that does not wait. */
export interface ForcedExit {
  /**
   * Has a listener called when the process ends at once, by a second interruption: it may only write. Absent: the process does not end so.
   * @returns how to take the listener off
   */
  readonly onForcedExit?: ((listener: () => void) => () => void) | undefined;
}

/** Programs and directories of this machine, beyond the files that a user names. */
export interface LocalMachine {
  /** Name of this machine. */
  readonly hostname: string;
  makeTemporaryDirectory(prefix: string): Promise<string>;
  removeTemporaryDirectory(path: string): Promise<void>;
  /** `mode path` of every file below these directories of a root. */
  listFiles(root: string, directories: readonly string[]): Promise<readonly string[]>;
  /** Calls a function when a file of this host was changed, replaced, created or removed, until the signal is aborted. */
  watchFile(path: string, onChange: () => void, signal: AbortSignal): void;
  /** Serves GETs on an address of this machine; null: there is nothing at that path. */
  serveLocal(host: string, port: number, answer: (path: string) => LocalAnswer | null): Promise<LocalServer>;
}

/** The SSH configuration and the known host keys of the user. */
export interface SshFiles extends SshConfigSource {
  /** Looks at the keys of hosts and makes them known. */
  openHostKeys(ssh: SshOptions): Promise<HostKeys>;
}

/**
 * All ports of the program, which wiring.ts builds on first use, so that `--help` loads none of it. Functions take the ports that they use.
 */
export interface Services
  extends LocalFiles,
    LocalCommands,
    LocalMachine,
    Terminal,
    ForcedExit,
    RunTime,
    HostConnections,
    ProgramSource,
    SshFiles,
    ClusterConnections,
    SecretSource,
    TemplateSource {
  /** A number from 0 up to 1: chance, where nothing depends on its being a secret. */
  random(): number;
  /** What is kept of runs over fleets. */
  runJournals(): Promise<RunJournals>;
  /** Starts the embedded lab: an API server and hosts in this process. */
  startLab(options: LabOptions): Promise<Lab>;
}
