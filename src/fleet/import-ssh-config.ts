import type { SshConfigFile } from '../ssh/config.ts';
import type { ImportedHost, ImportedInventory } from './entries.ts';

/**
 * The names of `Host` lines without wildcards and negation. Their other settings are read at connection time.
 */
export function importSshConfig(files: readonly SshConfigFile[]): ImportedInventory {
  const hosts = new Map<string, ImportedHost>();
  const visit = ({ lines }: SshConfigFile): void => {
    for (const { keyword, args, file, line, included = [] } of lines) {
      for (const each of included) visit(each);
      if (keyword !== 'host') continue;
      for (const name of args) {
        if (/[*?!]/.test(name) || hosts.has(name)) continue;
        hosts.set(name, { name, place: { position: { file, line, column: 1 }, path: '' }, groups: [], written: {} });
      }
    }
  };
  for (const file of files) visit(file);
  return { hosts: [...hosts.values()], groups: [] };
}
