import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { environmentFilesOf, execStartWords, type UnitSourceFile } from '../../src/host/systemd/exec-start.ts';
import { KUBELET_CONFIG_FILE, KUBELET_PROGRAM, KUBELET_UNIT_FILE } from '../../src/kube/well-known.ts';
import type { HostText } from '../../src/kubelet/effective/running-config.ts';

/** Directories with drop-ins of the kubelet's unit, in ascending priority. */
const DROP_IN_DIRECTORIES = ['usr/lib/systemd/system/kubelet.service.d', 'etc/systemd/system/kubelet.service.d'];
const UNIT_PLACES = [KUBELET_UNIT_FILE, '/usr/lib/systemd/system/kubelet.service'];

/** The path of the kubelet's unit below a root; null: none exists. */
export function kubeletUnit(rootDir: string): string | null {
  return UNIT_PLACES.find((path) => existsSync(join(rootDir, path))) ?? null;
}

/** Paths of the drop-ins of the kubelet's unit below a root, sorted by file name as in systemd. */
export function kubeletDropIns(rootDir: string): readonly string[] {
  const byName = new Map<string, string>();
  for (const directory of DROP_IN_DIRECTORIES) {
    const path = join(rootDir, directory);
    for (const name of existsSync(path) ? readdirSync(path) : []) if (name.endsWith('.conf')) byName.set(name, `/${directory}/${name}`);
  }
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
}

/**
 * The command line with which systemd would start the kubelet, the program first; without a unit the program
 * alone.
 */
export function kubeletCommand(rootDir: string): readonly string[] {
  const read = (path: string): UnitSourceFile => {
    const file = join(rootDir, path);
    return { path, text: existsSync(file) ? readFileSync(file, 'utf8') : null };
  };
  const unit = kubeletUnit(rootDir);
  const unitFiles = [...(unit === null ? [] : [unit]), ...kubeletDropIns(rootDir)].map(read);
  const words = execStartWords(unitFiles, environmentFilesOf(unitFiles).map(read));
  return words === null || words.length === 0 ? [KUBELET_PROGRAM] : words.map(({ word }) => word);
}

/**
 * The drop-in files of `--config-dir` of a kubelet with this command line, in merge order; files in directories below are
 * omitted.
 * @returns null: the directory does not exist
 */
export function configDropInsOf(rootDir: string, command: readonly string[]): readonly HostText[] | null {
  const directory = command.findLast((word) => word.startsWith('--config-dir='))?.slice('--config-dir='.length) ?? '';
  if (directory === '') return [];
  if (!existsSync(join(rootDir, directory))) return null;
  const names = readdirSync(join(rootDir, directory)).filter((name) => name.endsWith('.conf'));
  const paths = names.toSorted((a, b) => (a < b ? -1 : 1)).map((name) => `${directory}/${name}`);
  return paths.map((path) => ({ path, text: readFileSync(join(rootDir, path), 'utf8') }));
}

/** The configuration file of a kubelet with this command line. */
export function configPathOf(command: readonly string[]): string {
  return command.findLast((word) => word.startsWith('--config='))?.slice('--config='.length) ?? KUBELET_CONFIG_FILE;
}
