import { resolveSshTarget, type SshConfig, type SshOverrides } from '../ssh/resolve-target.ts';
import type { SshTarget } from '../ssh/target.ts';
import type { ResolvedBastion, ResolvedSsh } from './file/model.ts';

/**
 * Resolves the SSH target of a fleet host: from the fleet file, then the command line, then ssh_config.
 * @param options.directory of the fleet file, for relative key files
 * @param options.overrides settings of the command line, for all hosts; identity files are tried before those of the fleet file
 * @throws AppError SSH_CONFIG_INVALID, USAGE
 */
export function fleetSshTarget(
  { name, ssh }: { readonly name: string; readonly ssh: ResolvedSsh },
  config: SshConfig,
  { directory, overrides }: { readonly directory: string; readonly overrides: SshOverrides },
): SshTarget {
  const { connectTimeoutMs, jumps, direct } = ssh;
  const common: SshOverrides = { ...overrides, ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }) };
  const own = { ...common, ...hostOverrides({ name, ...ssh }, directory, overrides) };
  const isDirect = direct || jumps.length > 0;
  const resolved = resolveSshTarget(ssh.address, config, isDirect ? { ...own, proxyJump: 'none' } : own);
  const target = ssh.importedFrom === undefined ? resolved : { ...resolved, importedFrom: ssh.importedFrom };
  if (jumps.length === 0) return pinned(target, ssh);
  const { proxyJump: _, name: __, user: ___, port: ____, ...shared } = common;
  const hops = jumps.flatMap((jump, i) => {
    // The first bastion uses the route of ssh_config, the others are reached from the previous one.
    const route = i === 0 ? {} : { proxyJump: 'none' };
    const hop = resolveSshTarget(jump.address, config, { ...shared, ...hostOverrides(jump, directory, {}), ...route });
    return [...hop.proxyJump, pinned({ ...hop, proxyJump: [] }, jump)];
  });
  return { ...pinned(target, ssh), proxyJump: hops };
}

function hostOverrides(
  { name, user, port, identityFiles }: Pick<ResolvedBastion, 'name' | 'user' | 'port' | 'identityFiles'>,
  directory: string,
  overrides: SshOverrides,
): SshOverrides {
  const files = [...(overrides.identityFiles ?? []), ...identityFiles.map((path) => resolveKeyPath(path, directory))];
  return { name, identityFiles: files, ...(user === undefined ? {} : { user }), ...(port === undefined ? {} : { port }) };
}

/** `~`, `%` and `${}` are expanded as in ssh_config. */
function resolveKeyPath(path: string, directory: string): string {
  return /^[/~%$]/.test(path) || directory === '' ? path : `${directory}/${path}`;
}

function pinned(target: SshTarget, { hostKeys }: Pick<ResolvedSsh, 'hostKeys'>): SshTarget {
  return hostKeys.length === 0 ? target : { ...target, pinnedHostKeys: hostKeys };
}
