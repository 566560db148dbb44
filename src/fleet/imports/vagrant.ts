import { AppError } from '../../base/errors.ts';
import type { SshConfigLine } from '../../ssh/config.ts';
import { readSshConfigLines } from '../../ssh/config.ts';
import type { StarterMachine } from './starter.ts';

/**
 * Parses the output of `vagrant ssh-config`. Machines with usual names of control planes (`cp1`,
 * `control-plane`, `master`) get that role. Vagrant disables host key checking; that setting is ignored.
 * @param file name in problems
 * @throws AppError SSH_CONFIG_INVALID; FLEET_IMPORT_INVALID (exit code 2) without machines, or if one is not
 *   reached over plain SSH
 */
export function readVagrantMachines(text: string, file: string): readonly StarterMachine[] {
  const machines = new Map<string, Map<string, SshConfigLine[]>>();
  let current: Map<string, SshConfigLine[]> | null = null;
  for (const line of readSshConfigLines(text, file)) {
    if (line.keyword === 'host') {
      const [name = ''] = line.args;
      if (machines.has(name))
        throw invalid(line, `host "${name}" is listed twice`, 'Save the output of a single run of vagrant ssh-config');
      current = new Map();
      machines.set(name, current);
    } else if (current === null) throw invalid(line, 'not the output of vagrant ssh-config', 'The first line must begin with Host');
    else current.set(line.keyword, [...(current.get(line.keyword) ?? []), line]);
  }
  if (machines.size === 0) throw invalid({ file, line: 1 }, 'no host found', 'Run vagrant up, then rerun this command');
  return [...machines].map(([name, settings]) => machineOf(name, settings, file));
}

function machineOf(name: string, settings: ReadonlyMap<string, readonly SshConfigLine[]>, file: string): StarterMachine {
  const first = (keyword: string): string | null => settings.get(keyword)?.[0]?.args[0] ?? null;
  const around = Object.keys(SPELLED).flatMap((keyword) => settings.get(keyword) ?? [])[0];
  if (around !== undefined)
    throw invalid(around, `host "${name}" uses ${SPELLED[around.keyword]}, which --from-vagrant does not support`, VIA_SSH_CONFIG);
  const address = first('hostname');
  const port = first('port');
  if (address === null) throw invalid({ file, line: 1 }, `host "${name}" has no HostName`, 'Run vagrant up, then rerun this command');
  return {
    name,
    role: /^(?:cp|control-?plane|master)(?:[-_.]?[0-9]+)?$/i.test(name) ? 'control-plane' : 'worker',
    address,
    user: first('user'),
    port: port === null || port === '22' ? null : Number(port),
    identityFiles: (settings.get('identityfile') ?? []).flatMap(({ args }) => args[0] ?? []),
  };
}

/** Unsupported keywords, as ssh_config(5) spells them. */
const SPELLED: Readonly<Record<string, string>> = { proxycommand: 'ProxyCommand', proxyjump: 'ProxyJump', include: 'Include' };

const VIA_SSH_CONFIG = 'Save the output of vagrant ssh-config to a file, then run kubeletadm fleet init --from-ssh-config FILE';

function invalid({ file, line }: { readonly file: string; readonly line: number }, message: string, hint: string): AppError {
  return new AppError({ code: 'FLEET_IMPORT_INVALID', position: { file, line, column: 1 }, message, hint }, { exitCode: 2 });
}
