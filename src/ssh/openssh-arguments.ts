import { quoteShell } from '../base/text/shell-quote.ts';
import { isDefaultIdentity } from './resolve-target.ts';
import type { SshTarget } from './target.ts';

interface OpensshLogin {
  /** Path of the control socket. */
  readonly socket: string;
  /** Control socket of the connection to the jump host; null: as configured in ssh_config. */
  readonly via: string | null;
  /** Command that runs on the local host after the login. */
  readonly localCommand: string;
  readonly configFile?: string | undefined;
  /** A known_hosts file with the only accepted keys. */
  readonly pinnedKeysFile?: string | undefined;
}

/**
 * The arguments with which `ssh` logs in to a host and then serves commands on its control socket. Settings
 * that the built-in client does not support (certificates, Kerberos, algorithms, ProxyCommand) take effect
 * through the host's alias; ssh never prompts, and nothing is forwarded.
 * @see ssh_config(5)
 */
export function opensshArguments(target: SshTarget, login: OpensshLogin): readonly string[] {
  const { socket, via, localCommand, configFile, pinnedKeysFile } = login;
  const { connectTimeoutMs, strictHostKeyChecking, hostKeyAlias } = target;
  const options = [
    'BatchMode=yes',
    'ControlMaster=yes',
    'ControlPersist=no',
    `ControlPath=${configWord(socket)}`,
    'PermitLocalCommand=yes',
    `LocalCommand=${localCommand}`,
    'RemoteCommand=none',
    'RequestTTY=no',
    'ForwardAgent=no',
    'ForwardX11=no',
    'ClearAllForwardings=yes',
    'UpdateHostKeys=no',
    'LogLevel=INFO',
    `ConnectTimeout=${Math.max(1, Math.ceil(connectTimeoutMs / 1000))}`,
    'ServerAliveInterval=15',
    'ServerAliveCountMax=3',
    `HostName=${target.hostName}`,
    `Port=${target.port}`,
    `User=${target.user}`,
    ...(hostKeyAlias === null ? [] : [`HostKeyAlias=${hostKeyAlias}`]),
    ...(pinnedKeysFile === undefined
      ? [
          `StrictHostKeyChecking=${strictHostKeyChecking}`,
          `UserKnownHostsFile=${configWords(target.userKnownHostsFiles)}`,
          `GlobalKnownHostsFile=${configWords(target.globalKnownHostsFiles)}`,
        ]
      : [
          'StrictHostKeyChecking=yes',
          `UserKnownHostsFile=${configWord(pinnedKeysFile)}`,
          'GlobalKnownHostsFile=none',
          'KnownHostsCommand=none',
        ]),
    ...target.identityFiles.filter((path) => !isDefaultIdentity(path)).map((path) => `IdentityFile=${configWord(path)}`),
    ...(target.identitiesOnly ? ['IdentitiesOnly=yes'] : []),
    ...(via === null
      ? []
      : [`ProxyCommand=ssh ${controlSocketArguments(via).map(quoteShell).join(' ').replaceAll('%', '%%')} -W '[%h]:%p' jump`]),
  ];
  const file = configFile === undefined ? [] : ['-F', configFile];
  return [...file, '-N', '-T', ...options.flatMap((option) => ['-o', option]), '--', target.alias ?? target.hostName];
}

/**
 * The arguments with which `ssh` uses a control socket, and fails if the socket is gone instead of opening a
 * new connection.
 */
export function controlSocketArguments(socket: string): readonly string[] {
  const options = [`ControlPath=${configWord(socket)}`, 'ControlMaster=no', 'ProxyCommand=false', 'BatchMode=yes', 'LogLevel=ERROR'];
  return ['-F', 'none', '-T', ...options.flatMap((option) => ['-o', option])];
}

/** A path as an argument of ssh_config: `%` starts a token, `"` and `\` are special. */
function configWord(path: string): string {
  return `"${path.replace(/["\\]/g, '\\$&').replaceAll('%', '%%')}"`;
}

function configWords(paths: readonly string[]): string {
  return paths.length === 0 ? 'none' : paths.map(configWord).join(' ');
}
