import type { RunTime } from '../base/clock.ts';
import type { LocalFiles } from '../base/local-files.ts';
import type { Reporter, Reporters } from '../base/reporter.ts';
import type { ThisProcess } from '../base/this-process.ts';
import type { Host } from '../host/access/host.ts';
import type { BundleAccess } from '../host/bundle/ports.ts';
import type { LargeFile } from '../host/operation/large-file.ts';
import type { ClusterConnections, SecretSource, TemplateSource } from '../kubeadm/ports.ts';
import type { HostKeys } from '../ssh/host-keys.ts';
import type { SshConfig } from '../ssh/resolve-target.ts';
import type { SshOptions } from '../ssh/target.ts';
import type { HostTarget } from './host-target.ts';

export interface HostConnections {
  /** @param reporter logs the requests to the host with `-v 2`; absent: they are not logged */
  connectHost(target: HostTarget, reporter?: Reporter): Promise<Host>;
  /** Owner name for the locks of changed hosts. */
  readonly self: ThisProcess;
}

/** Connects to a host, and closes the connection when the work has ended. */
export async function onHost<T>(
  { connectHost }: Pick<HostConnections, 'connectHost'>,
  target: HostTarget,
  work: (host: Host) => Promise<T>,
): Promise<T> {
  const host = await connectHost(target);
  try {
    return await work(host);
  } finally {
    await host.close();
  }
}

/** Connections to the targets except the local host. */
export function connectionsTo(
  { connectHost }: Pick<HostConnections, 'connectHost'>,
  targets: readonly HostTarget[],
): readonly (() => Promise<Host>)[] {
  const others = targets.filter(({ address, member }) => address !== undefined || member !== undefined);
  return others.map((target) => () => connectHost(target));
}

export interface ProgramSource {
  /**
   * Reads a program of the local host, ready to be sent to hosts.
   * @param path default: the running program, if it is a single file
   * @returns null: the running program is not a single file
   * @throws AppError INPUT_UNREADABLE (exit code 2)
   */
  readProgram(path?: string): Promise<LargeFile | null>;
}

export interface SshConfigSource {
  /** An OpenSSH client configuration with its included files. @param path undefined: those that ssh reads without -F */
  readSshConfig(path: string | undefined): Promise<SshConfig>;
}

export interface HostKeySource {
  /** Reads the keys of hosts and records them as known. */
  openHostKeys(ssh: SshOptions): Promise<HostKeys>;
}

export interface LocalCommandOptions {
  /** Default: two minutes. */
  readonly timeoutMs?: number | undefined;
  /** Receives the text on stderr of a successful program. */
  readonly onStderr?: ((text: string) => void) | undefined;
  readonly stdin?: string | undefined;
  /** Also runs after an interruption of this program, until its timeout. */
  readonly ignoresInterruption?: boolean | undefined;
}

export interface LocalCommands {
  /**
   * Runs a program on the local host as the user, in the working directory.
   * @returns the output
   * @throws AppError LOCAL_COMMAND_FAILED with the last line of its output; HOST_COMMAND_NOT_FOUND
   */
  runLocal(argv: readonly string[], options?: LocalCommandOptions): Promise<string>;
}

export type FleetFilePorts = LocalFiles & SshConfigSource & LocalCommands;

export type NamedHostPorts = FleetFilePorts & Pick<HostConnections, 'connectHost'>;

/** Ports for naming the owner of a host's lock. */
export type LockOwnerPorts = Pick<HostConnections, 'self'> & Pick<SecretSource, 'newId'>;

/** Ports of commands for hosts and their cluster. */
export type NodeCommandPorts = FleetFilePorts & RunTime & HostConnections & ClusterConnections & SecretSource & TemplateSource;

/** Ports for a run over the hosts of a fleet and its cluster. */
export type FleetRunPorts = LocalFiles &
  BundleAccess &
  Reporters &
  RunTime &
  HostConnections &
  ProgramSource &
  ClusterConnections &
  SecretSource &
  TemplateSource;
