import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Directories of drop-ins of the kubelet's unit, the stronger last. */
const DROP_IN_DIRECTORIES = ['usr/lib/systemd/system/kubelet.service.d', 'etc/systemd/system/kubelet.service.d'];
const DEFAULT_CONFIG = '/var/lib/kubelet/config.yaml';

/** Paths of the drop-ins of the kubelet's unit below a root, as systemd orders them: by file name. */
export function kubeletDropIns(rootDir: string): readonly string[] {
  const byName = new Map<string, string>();
  for (const directory of DROP_IN_DIRECTORIES) {
    const path = join(rootDir, directory);
    for (const name of existsSync(path) ? readdirSync(path) : []) if (name.endsWith('.conf')) byName.set(name, `/${directory}/${name}`);
  }
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
}

/** The file the kubelet's unit has it read: `--config` of `KUBELET_CONFIG_ARGS`, where systemd's rule holds that what an EnvironmentFile says wins. */
export function kubeletConfigPath(rootDir: string): string {
  const lines = kubeletDropIns(rootDir).flatMap((path) => readFileSync(join(rootDir, path), 'utf8').split('\n'));
  const files = lines.flatMap((line) => /^EnvironmentFile=-?(\S+)/.exec(line)?.[1] ?? []);
  const fromFiles = files.flatMap((path) => (existsSync(join(rootDir, path)) ? readFileSync(join(rootDir, path), 'utf8').split('\n') : []));
  const pathIn = (texts: readonly string[]): string | undefined =>
    texts
      .flatMap((text) => /^KUBELET_CONFIG_ARGS="?--config=([^\s"]+)/.exec(text.slice(text.indexOf('KUBELET_CONFIG_ARGS')))?.[1] ?? [])
      .at(-1);
  return pathIn(fromFiles) ?? pathIn(lines.filter((line) => line.startsWith('Environment='))) ?? DEFAULT_CONFIG;
}
