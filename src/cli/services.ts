import type { Clock } from '../base/clock.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Secret } from '../base/text/secret.ts';
import type { Text } from '../base/text/styled.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import type { RunJournals } from '../fleet/run-journals.ts';
import type { Host } from '../host/host.ts';
import type { LargeFile } from '../host/plan/large-file.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Web } from '../kube/web.ts';
import type { ClusterTarget, EtcdTarget } from '../kubeadm/cluster-target.ts';
import type { Lab, LabOptions } from '../lab/lab-options.ts';
import type { SshConfigFile } from '../ssh/config.ts';
import type { HostKeys } from '../ssh/host-keys.ts';
import type { SshOptions } from '../ssh/options.ts';
import type { CertificateIssuer } from '../x509/certificate-issuer.ts';

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

/** A file below a directory; `path` is relative to it, with `/`. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

/** The files a user names on the command line, on the machine the program runs on. Errors are AppError INPUT_* with the path and exit code 2. */
export interface InputFiles {
  /** The file's text; `-` is standard input. Not UTF-8 comes out with U+FFFD, which readers refuse. */
  readText(path: string): Promise<string>;
  /**
   * All files below a directory, in lexical order of their paths. A symbolic link in place of the directory is refused, as kubeadm does.
   * @param isDesired by path below the directory: others are listed without being read, and have an empty text
   */
  readTree(directory: string, isDesired: (path: string) => boolean): Promise<readonly TreeFile[]>;
  exists(path: string): Promise<boolean>;
  /** Links are followed. */
  isDirectory(path: string): Promise<boolean>;
}

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

/** Everything that touches the world, handed to the commands by wiring.ts. Built on first use, so that `--help` loads none of it. */
export interface Services {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly output: Output;
  readonly input: InputFiles;
  readonly clock: Clock;
  readonly homeDirectory: string;
  /** Name of this machine. */
  readonly hostname: string;
  readonly self: ThisProcess;
  /** 16 hexadecimal digits that nobody can foretell. */
  newId(): Promise<string>;
  /**
   * A program of this machine, ready to be sent to hosts.
   * @param path default: this program itself, where it is one file
   * @returns null: this program is no single file
   * @throws AppError INPUT_UNREADABLE (exit code 2)
   */
  readProgram(path?: string): Promise<LargeFile | null>;
  /** Writes a file of this machine, atomically; a file that may hold secrets is for its owner alone. */
  writeLocalFile(path: string, text: string): Promise<void>;
  /**
   * Runs a program on this machine as the user, in the working directory.
   * @returns what it printed
   * @throws AppError LOCAL_COMMAND_FAILED with the last line it said; HOST_COMMAND_NOT_FOUND
   */
  runLocal(argv: readonly string[]): Promise<string>;
  makeTemporaryDirectory(prefix: string): Promise<string>;
  removeTemporaryDirectory(path: string): Promise<void>;
  /** `mode path` of every file below these directories of a root. */
  listFiles(root: string, directories: readonly string[]): Promise<readonly string[]>;
  /** A new bootstrap token that nobody can foretell. */
  newToken(): Promise<Secret>;
  /** Makes keys and certificates. */
  certificateIssuer(): Promise<CertificateIssuer>;
  /** A number from 0 up to 1: chance, where nothing depends on its being a secret. */
  random(): number;
  /** Serves GETs on an address of this machine; null: there is nothing at that path. */
  /** Calls a function when a file of this host was changed, replaced, created or removed, until the signal is aborted. */
  watchFile(path: string, onChange: () => void, signal: AbortSignal): void;
  serveLocal(host: string, port: number, answer: (path: string) => LocalAnswer | null): Promise<LocalServer>;
  /** Asks on the terminal; null when there is none. */
  confirm(question: string): Promise<boolean | null>;
  /** Template texts by their path below `templates/`, without `.hbs`. */
  templates(): Promise<ReadonlyMap<string, string>>;
  reporter(options: { readonly verbosity: number; readonly format: 'text' | 'json' }): Reporter;
  connectHost(target: HostTarget): Promise<Host>;
  /** What is kept of runs over fleets. */
  runJournals(): Promise<RunJournals>;
  /** Looks at the keys of hosts and makes them known. */
  openHostKeys(ssh: SshOptions): Promise<HostKeys>;
  /** An OpenSSH client configuration with all it includes; nothing of it is worked out. */
  readSshConfig(path: string): Promise<readonly SshConfigFile[]>;
  connectCluster(target: ClusterTarget): Promise<Cluster>;
  /** The members of an etcd cluster, as objects. */
  connectEtcd(target: EtcdTarget): Promise<Cluster>;
  readonly web: Web;
  /** Starts the embedded lab: an API server and hosts in this process. */
  startLab(options: LabOptions): Promise<Lab>;
  /** Aborted by the first Ctrl-C or SIGTERM, and by the terminal's going away. */
  readonly signal: AbortSignal;
  /**
   * Has a listener called when the process ends at once, by a second interruption: it may only write. Absent: the process does not end so.
   * @returns how to take the listener off
   */
  readonly onForcedExit?: ((listener: () => void) => () => void) | undefined;
}
