import { isAppError, type Problem } from '../../base/errors.ts';
import type { SshConfigFile } from '../../ssh/config.ts';
import { resolveSshTarget, type SshConfig } from '../../ssh/resolve-target.ts';
import type { SshTarget } from '../../ssh/target.ts';
import { destinationKey } from '../file/bastions.ts';
import { formatPlace, type ImportedHost, type ImportedInventory } from '../file/entries.ts';
import { duplicateAddress } from '../file/fleet-problems.ts';
import type { ResolvedHost } from '../file/model.ts';
import { fleetSshTarget } from '../ssh-target.ts';

/** Hosts that serve Git repositories. */
const CODE_HOST = /^(?:ssh\.|altssh\.)?(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|dev\.azure\.com)$/;

/**
 * The names of `Host` lines without wildcards and negation, except those of Git servers. Their other settings are read at
 * connection time.
 * @returns also the names of Git servers
 */
export function importSshConfig(config: SshConfig): { readonly inventory: ImportedInventory; readonly gitServers: readonly string[] } {
  const hosts = new Map<string, ImportedHost>();
  const gitServers = new Set<string>();
  const visit = ({ lines }: SshConfigFile, root: string): void => {
    for (const { keyword, args, file, line, included = [] } of lines) {
      for (const each of included) visit(each, root);
      if (keyword !== 'host') continue;
      for (const name of args) {
        if (/[*?!]/.test(name) || hosts.has(name) || gitServers.has(name)) continue;
        // The built-in client refuses a ProxyCommand, which may lead to any machine.
        const builtin = targetOf(name, config, 'builtin');
        const target = builtin ?? targetOf(name, config, 'openssh');
        if (target !== null && (target.user === 'git' || CODE_HOST.test(target.hostName))) gitServers.add(name);
        else
          hosts.set(name, {
            name,
            place: { position: { file, line, column: 1 }, path: '' },
            groups: [],
            written: {},
            sshConfig: root,
            ...(builtin === null ? {} : { machine: machineOf(builtin) }),
          });
      }
    }
  };
  for (const file of config.files) visit(file, file.path);
  return { inventory: { hosts: [...hosts.values()], groups: [] }, gitServers: [...gitServers] };
}

/** Null: the client does not support the settings, or they are invalid. The commands of `Match exec` are not run. */
function targetOf(name: string, config: SshConfig, client: 'builtin' | 'openssh'): SshTarget | null {
  try {
    return resolveSshTarget(name, { ...config, exec: () => false }, { client });
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/** Address and port of a host and its jump hosts. */
export function machineOf(target: SshTarget): string {
  return [target, ...target.proxyJump].map(({ hostName, port }) => destinationKey({ address: hostName, port })).join(' ');
}

/** Keywords of ssh_config that lead to another address or over another route. */
const ROUTING: ReadonlySet<string> = new Set(['hostname', 'port', 'proxyjump']);

/**
 * Hosts that ssh_config makes the same machine: equal address, port, jump hosts and user of different names; a gateway may
 * select the machine by the user. A host whose settings the built-in client does not support (ProxyCommand, which may lead to any
 * machine) equals no other, nor does a host with a command of `Match exec`, which is not run.
 */
export function duplicateMachines(hosts: readonly ResolvedHost[], config: SshConfig): readonly Problem[] {
  if (!config.files.some(isRouting)) return [];
  const machines = new Map<string, ResolvedHost>();
  return hosts.flatMap((host) => {
    const key = machineInConfig(host, config);
    const first = key === null ? undefined : machines.get(key);
    if (key !== null && first === undefined) machines.set(key, host);
    if (key === null || first === undefined) return [];
    const [address = ''] = key.split(' ');
    const where = formatPlace({ position: first.position, path: '' });
    return [{ ...duplicateAddress(`${address} in ssh_config`, { name: host.name, first: first.name, where }), position: host.position }];
  });
}

function isRouting({ lines }: SshConfigFile): boolean {
  return lines.some(({ keyword, included = [] }) => ROUTING.has(keyword) || included.some(isRouting));
}

function machineInConfig(host: ResolvedHost, config: SshConfig): string | null {
  let isKnown = true;
  const exec = (): boolean => {
    isKnown = false;
    return false;
  };
  try {
    const target = fleetSshTarget(host, { ...config, exec }, { directory: '', overrides: {} });
    return isKnown ? `${machineOf(target)} ${target.user}` : null;
  } catch (error) {
    // Reported when the host is connected.
    if (isAppError(error)) return null;
    throw error;
  }
}
