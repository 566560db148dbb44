import { isAppError, type Problem } from '../../base/errors.ts';
import type { SshConfigFile } from '../../ssh/config.ts';
import type { SshConfig } from '../../ssh/resolve-target.ts';
import { formatPlace } from '../file/entries.ts';
import { duplicateAddress } from '../file/fleet-problems.ts';
import type { ResolvedHost } from '../file/model.ts';
import { fleetSshTarget } from '../ssh-target.ts';
import { machineOf } from './import-ssh-config.ts';

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
