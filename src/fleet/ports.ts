import type { RunTime } from '../base/clock.ts';
import type { LocalFiles } from '../base/local-files.ts';
import type { Reporters } from '../base/reporter.ts';
import type { ThisProcess } from '../base/this-process.ts';
import type { Host } from '../host/host.ts';
import type { LargeFile } from '../host/plan/large-file.ts';
import type { ClusterConnections, SecretSource, TemplateSource } from '../kubeadm/ports.ts';
import type { SshConfigFile } from '../ssh/config.ts';
import type { HostTarget } from './host-target.ts';

/** Connections to hosts. */
export interface HostConnections {
  connectHost(target: HostTarget): Promise<Host>;
  /** Named in the locks of the hosts that it changes. */
  readonly self: ThisProcess;
}

/** Connections to the targets that are not this machine. */
export function connectionsTo(
  { connectHost }: Pick<HostConnections, 'connectHost'>,
  targets: readonly HostTarget[],
): readonly (() => Promise<Host>)[] {
  const others = targets.filter(({ address, member }) => address !== undefined || member !== undefined);
  return others.map((target) => () => connectHost(target));
}

/** Programs that are sent to hosts. */
export interface ProgramSource {
  /**
   * A program of this machine, ready to be sent to hosts.
   * @param path default: this program itself, where it is one file
   * @returns null: this program is no single file
   * @throws AppError INPUT_UNREADABLE (exit code 2)
   */
  readProgram(path?: string): Promise<LargeFile | null>;
}

/** The SSH configuration of the user. */
export interface SshConfigSource {
  /** An OpenSSH client configuration with all it includes; nothing of it is worked out. */
  readSshConfig(path: string): Promise<readonly SshConfigFile[]>;
}

/** Programs of the local host. */
export interface LocalCommands {
  /**
   * Runs a program on this machine as the user, in the working directory.
   * @returns what it printed
   * @throws AppError LOCAL_COMMAND_FAILED with the last line it said; HOST_COMMAND_NOT_FOUND
   */
  runLocal(argv: readonly string[]): Promise<string>;
}

/** What reading a fleet file needs. */
export type FleetFilePorts = LocalFiles & SshConfigSource & LocalCommands;

/** What is needed to name the owner of a host's lock. */
export type WritingPorts = Pick<HostConnections, 'self'> & Pick<SecretSource, 'newId'>;

/** What a run over the hosts of a fleet and its cluster needs. */
export type FleetRunPorts = LocalFiles &
  Reporters &
  RunTime &
  HostConnections &
  ProgramSource &
  ClusterConnections &
  SecretSource &
  TemplateSource;
