import type { RunTime } from '../../base/clock.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { ProblemPage } from '../../base/problem-entries.ts';
import type { Reporters } from '../../base/reporter.ts';
import type { Text } from '../../base/text/styled.ts';
import type { AgentHostPort } from '../../dynamic/ports.ts';
import type { ConfigSigner } from '../../dynamic/signing/statement.ts';
import type { RunJournals } from '../../fleet/history/journal.ts';
import type { PlanSignatures } from '../../fleet/plan/plan-signatures.ts';
import type { HostConnections, HostKeySource, LocalCommands, ProgramSource, SshConfigSource } from '../../fleet/ports.ts';
import type { BundleAccess } from '../../host/bundle/ports.ts';
import type { ClusterConnections, SecretSource, TemplateSource } from '../../kubeadm/ports.ts';
import type { HostEntry } from '../../kubeadm/user-data/model.ts';
import type { HookServers } from '../../rollouts/cluster-api/run-extension.ts';
import type { FileRules, FileVerdict } from './file-verdict.ts';

/**
 * Destination of results and progress. Results (plans, rendered files, tables) go to stdout, everything else
 * to stderr. The output escapes control characters, because the text may contain output of hosts and servers.
 */
export interface Output {
  stdout(text: Text): void;
  stderr(text: Text): void;
  /** Content of a file, on stdout: kept byte for byte, and escaped as other text only where stdout is a terminal. */
  document(text: string): void;
  /** As stdout, with lines wrapped at spaces on a terminal: for text that is read, not copied. Absent: as stdout. */
  readonly prose?: (text: Text) => void;
  /** Shows a display in the last lines, and draws it again if the size changes; null removes it. Absent: no terminal. */
  readonly status?: (display: Display | null) => void;
  /** Width of the terminal of stderr, in characters; undefined: unknown. Absent: no terminal. */
  readonly width?: (() => number | undefined) | undefined;
  /** `--color`. Absent: the output has no colours. */
  readonly setColour?: ((when: ColourChoice) => void) | undefined;
}

export type ColourChoice = 'auto' | 'always' | 'never';

/** The name under which the program was started. As `kubeadm` it is a drop-in: see docs/kubeadm.md. */
export type ProgramName = 'kubeletadm' | 'kubeadm' | 'kubectl kubeletadm';

/** Size of a terminal, in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** Renders the lines of a display for the size of the terminal. */
export type Display = (size: TerminalSize) => readonly Text[];

/** Writes text verbatim, terminal codes included. */
export interface RawOutput {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly status?: RawStatus;
  readonly width?: (() => number | undefined) | undefined;
}

/** Shows a display in the last lines; null removes it. */
type RawStatus = (render: ((size: TerminalSize) => string) | null) => void;

/** The user interface: results, progress and questions. */
interface Terminal extends Reporters {
  readonly output: Output;
  /** Whether questions can be asked: standard input and standard error are terminals. */
  readonly canAsk: boolean;
  /** Asks on the terminal; null without a terminal. */
  confirm(question: string): Promise<boolean | null>;
  /**
   * Runs an editor for a file on the terminal. @param editor a command line of the shell
   * @returns its exit code; 127: it was not found
   */
  runEditor(editor: string, path: string): Promise<number>;
}

/** Notification of an immediate exit. */
interface ForcedExit {
  /**
   * Calls the listener when a second interruption ends the process; the listener may only write. Absent: the
   * process has no such exit.
   * @returns removes the listener
   */
  readonly onForcedExit?: ((listener: () => void) => () => void) | undefined;
}

/** Programs and directories of the local host, apart from the files that a user names. */
interface LocalMachine {
  /** Host name of the local host. */
  readonly hostname: string;
  /** The Node.js that runs the program, and the platform as Go names it: `linux/amd64`. */
  readonly runtime: { readonly nodeVersion: string; readonly platform: string };
  makeTemporaryDirectory(prefix: string): Promise<string>;
  removeTemporaryDirectory(path: string): Promise<void>;
  /**
   * Reads a directory as the root directory of a host, in the order of paths; a directory precedes its entries.
   * @throws AppError INPUT_UNREADABLE, INPUT_NOT_A_DIRECTORY, INPUT_TOO_LARGE or USER_DATA_UNUSABLE (exit code 2)
   */
  readHostEntries(root: string): Promise<readonly HostEntry[]>;
}

/**
 * All ports of the program. wiring.ts creates each on first use, so that `--help` loads none of them.
 * Functions take only the ports that they use.
 */
export interface Services
  extends LocalFiles,
    BundleAccess,
    LocalCommands,
    LocalMachine,
    AgentHostPort,
    HookServers,
    Terminal,
    ForcedExit,
    RunTime,
    HostConnections,
    ProgramSource,
    SshConfigSource,
    HostKeySource,
    ClusterConnections,
    SecretSource,
    TemplateSource,
    ConfigSigner {
  /** Validates many files on all processors; null if threads do not help. Absent: the program has no threads. */
  readonly validateInThreads?: (files: readonly string[], rules: FileRules) => Promise<readonly FileVerdict[] | null>;
  /** The name under which the program was started; command lines are printed with it. */
  readonly programName: ProgramName;
  /** The words that start the program from the working directory: `kubeletadm`, `npx tsx src/bin.ts`. Absent: its name. */
  readonly commandPrefix?: () => Promise<string>;
  /** Receives the number of hosts by result when a run over hosts ends; absent: not needed. */
  readonly runEnded?: ((hosts: Readonly<Record<string, number>>) => void) | undefined;
  /** The words of the command line, without the program; absent: none, as in tests of a use case. */
  readonly commandLine?: readonly string[] | undefined;
  /** The pages of the documentation that explain codes of problems. */
  problemPages(): Promise<readonly ProblemPage[]>;
  /** Records of runs over fleets. */
  runJournals(): Promise<RunJournals>;
  /** Signatures of saved plans, made with the keys of the user. */
  planSignatures(): Promise<PlanSignatures>;
  /** These ports with another root directory of the local host, as after chroot. @throws AppError ROOTFS_UNUSABLE */
  inRoot(directory: string): Promise<Services>;
}
