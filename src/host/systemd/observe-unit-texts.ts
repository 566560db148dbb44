import type { Host } from '../access/host.ts';
import { observe } from '../access/observe.ts';
import { combineFacts, defineFact } from '../facts/fact.ts';
import { fileFacts } from '../facts/file-facts.ts';
import type { FileFact } from '../facts/query.ts';
import type { UnitState } from '../facts/unit.ts';
import { environmentFilesOf, type UnitSourceFile, type UnitTexts } from './exec-start.ts';
import { KUBELET_UNIT, UNIT_DIRECTORIES, UNIT_FILE_PATHS } from './kubelet-unit-paths.ts';

/** Texts of files after a planned change, by path; null: the file is removed. */
export type PlannedTexts = ReadonlyMap<string, string | null>;

/**
 * Reads the unit of the kubelet, its drop-ins and their environment files, as systemd reads them at the next start after a
 * daemon-reload: the files and their order are those that systemd has loaded, or the files on disk if they changed since.
 * @param planned texts that replace files of the host. Default: none
 * @returns null without a unit
 * @see systemd.unit(5): of drop-ins with the same name, the one in the first directory of the unit path is read; all
 *   are sorted by name
 */
export async function observeUnitTexts(
  host: Host,
  unit: Pick<UnitState, 'fragmentPath' | 'dropInPaths' | 'needsReload'> | null,
  { planned = new Map(), signal }: { readonly planned?: PlannedTexts; readonly signal?: AbortSignal | undefined } = {},
): Promise<UnitTexts | null> {
  const loaded = [unit?.fragmentPath ?? null, ...(unit?.dropInPaths ?? [])].filter((path) => path !== null);
  // Without a running systemd, the usual files are all that is known.
  const usual = UNIT_FILE_PATHS.filter((path) => UNIT_DIRECTORIES.some((directory) => path.startsWith(`${directory}/`)));
  const isStale = unit?.needsReload === true;
  const candidates = [...loaded, ...(isStale ? await listDropIns(host, signal) : []), ...(isStale || loaded.length === 0 ? usual : [])];
  const found = await readTexts(host, [...new Set(candidates)], planned, signal);
  const existing = [...found, ...plannedUnitFiles(planned, found)].filter(({ text }) => text !== null);
  const unitFiles = inReadingOrder(existing);
  if (unitFiles.length === 0) return null;
  return { unitFiles, environmentFiles: await readEnvironmentFiles(host, environmentFilesOf(unitFiles), planned, signal) };
}

/**
 * A unit and its drop-ins in the order in which systemd reads them; of files with the same name the one in
 * the first directory of the unit path.
 */
export function inReadingOrder(files: readonly UnitSourceFile[]): readonly UnitSourceFile[] {
  const dropIns = files.filter(({ path }) => path.endsWith('.conf'));
  const unitFile = first(files.filter((file) => !dropIns.includes(file)));
  const effective = [...new Set(dropIns.map(({ path }) => baseName(path)))]
    .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .flatMap((name) => first(dropIns.filter(({ path }) => baseName(path) === name)) ?? []);
  return [...(unitFile === undefined ? [] : [unitFile]), ...effective];
}

/** The names of drop-ins on disk, which systemd may not have loaded. */
async function listDropIns(host: Host, signal: AbortSignal | undefined): Promise<readonly string[]> {
  const lists = UNIT_DIRECTORIES.map((directory) => {
    const path = `${directory}/${KUBELET_UNIT}.d`;
    const fact = defineFact({ names: { kind: 'list', path } }, ({ names }) => (names ?? []).map((name) => `${path}/${name}`));
    return [path, fact] as const;
  });
  const found = await observe(host, combineFacts(Object.fromEntries(lists)), signal);
  return Object.values(found)
    .flat()
    .filter((path) => path.endsWith('.conf'));
}

function plannedUnitFiles(planned: PlannedTexts, found: readonly UnitSourceFile[]): readonly UnitSourceFile[] {
  const known = new Set(found.map(({ path }) => path));
  const isOfUnit = (path: string): boolean =>
    UNIT_DIRECTORIES.some((directory) => path === `${directory}/${KUBELET_UNIT}` || path.startsWith(`${directory}/${KUBELET_UNIT}.d/`));
  return [...planned].flatMap(([path, text]) => (isOfUnit(path) && !known.has(path) ? [{ path, text }] : []));
}

/** The file in the directory with the highest priority. */
function first(files: readonly UnitSourceFile[]): UnitSourceFile | undefined {
  const rank = ({ path }: UnitSourceFile): number => {
    const at = UNIT_DIRECTORIES.findIndex((directory) => path.startsWith(`${directory}/`));
    return at < 0 ? UNIT_DIRECTORIES.length : at;
  };
  return files.toSorted((a, b) => rank(a) - rank(b))[0];
}

async function readTexts(
  host: Host,
  paths: readonly string[],
  planned: PlannedTexts,
  signal: AbortSignal | undefined,
): Promise<readonly UnitSourceFile[]> {
  const onHost = paths.filter((path) => !planned.has(path));
  const files = onHost.length === 0 ? new Map<string, FileFact | null>() : await observe(host, fileFacts(onHost), signal);
  return paths.map((path) =>
    planned.has(path)
      ? { path, text: planned.get(path) ?? null }
      : { path, text: textOf(files.get(path) ?? null), modifiedAt: files.get(path)?.modifiedAt },
  );
}

/** A link to /dev/null has no content and masks the file of the same name in other directories. */
function textOf(file: FileFact | null): string | null {
  return file === null ? null : (file.content ?? '');
}

/** An `EnvironmentFile=` may be a pattern for several files. */
async function readEnvironmentFiles(
  host: Host,
  paths: readonly string[],
  planned: PlannedTexts,
  signal: AbortSignal | undefined,
): Promise<readonly UnitSourceFile[]> {
  const patterns = [...new Set(paths.filter((path) => /[*?[]/.test(path)))];
  const expanded = new Map<string, readonly string[]>();
  for (const pattern of patterns) {
    const fact = defineFact({ found: { kind: 'command', argv: ['sh', '-c', GLOB, 'sh', pattern] } }, ({ found }) => found.stdout);
    expanded.set(pattern, (await observe(host, fact, signal)).split('\n').filter(Boolean));
  }
  return readTexts(
    host,
    paths.flatMap((path) => expanded.get(path) ?? [path]),
    planned,
    signal,
  );
}

const GLOB = `IFS=; for f in $1; do [ -f "$f" ] && printf '%s\\n' "$f"; done; true`;

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
