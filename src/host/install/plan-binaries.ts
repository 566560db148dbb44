import { AppError } from '../../base/errors.ts';
import type { BundleContents } from '../bundle/ports.ts';
import { combineFacts, defineFact, type Fact, mapFact } from '../facts/fact.ts';
import { fileFacts } from '../facts/file-facts.ts';
import type { FileFact } from '../facts/query.ts';
import { type UnitState, unitState } from '../facts/unit.ts';
import { type BinaryInstall, type InstalledFile, isUrl } from '../operation/install-model.ts';
import type { LargeFile, RangedFile } from '../operation/large-file.ts';
import type { HostChange, PhasePlan } from '../plan/change.ts';

export interface BinaryFacts {
  /** SHA-256 by path of the existing files. */
  readonly sums: ReadonlyMap<string, string>;
  readonly modes: ReadonlyMap<string, number>;
  /** SHA-256 by name of the extracted archives. */
  readonly unpacked: ReadonlyMap<string, string>;
  readonly units: ReadonlyMap<string, UnitState | null>;
}

/** Directory for archives during extraction, and for the records of extracted archives. */
const ARCHIVES = '/var/lib/kubeletadm/archives';

function notePath({ name }: InstalledFile): string {
  return `${ARCHIVES}/${name}.sha256`;
}

const SUMS = 'for f; do [ ! -f "$f" ] || { sha256sum <"$f" | cut -d" " -f1; stat -Lc %a "$f"; echo "$f"; }; done';

export function binaryFacts({ files, units }: BinaryInstall): Fact<BinaryFacts> {
  const programs = files.filter(({ isArchive }) => !isArchive).map(({ path }) => path);
  const archives = files.filter(({ isArchive }) => isArchive);
  const names = [...new Set(['kubelet', ...units])];
  const all = combineFacts({
    sums: defineFact({ sums: { kind: 'command', argv: ['sh', '-c', SUMS, 'sh', ...programs] } }, ({ sums }) => sums.stdout),
    notes: fileFacts(archives.map(notePath)),
    units: combineFacts(Object.fromEntries(names.map((name) => [name, unitState(name)]))),
  });
  return mapFact(all, (found) => {
    const lines = found.sums.split('\n');
    const sums = new Map<string, string>();
    const modes = new Map<string, number>();
    for (let i = 0; i + 2 < lines.length; i += 3) {
      sums.set(lines[i + 2] as string, lines[i] as string);
      modes.set(lines[i + 2] as string, Number.parseInt(lines[i + 1] as string, 8));
    }
    const notes: ReadonlyMap<string, FileFact | null> = found.notes;
    const unpacked = new Map(archives.map((file) => [file.name, notes.get(notePath(file))?.content?.trim() ?? '']));
    return { sums, modes, unpacked, units: new Map(Object.entries(found.units)) };
  });
}

export function filesToInstall({ files }: BinaryInstall, { sums, modes, unpacked }: BinaryFacts): readonly InstalledFile[] {
  return files.filter(({ name, path, sha256, mode, isArchive }) =>
    isArchive ? unpacked.get(name) !== sha256 : sums.get(path) !== sha256 || modes.get(path) !== mode,
  );
}

/**
 * Plans the files that differ by SHA-256, then the units.
 * @param contents local files by name. @param bundle files that it contains are copied from it
 * @throws AppError INSTALL_CHECKSUM (exit code 3): a local file differs from the declared one
 */
export function planBinaries(
  install: BinaryInstall,
  facts: BinaryFacts,
  {
    contents,
    host,
    bundle = null,
  }: { readonly contents: ReadonlyMap<string, LargeFile>; readonly host: string; readonly bundle?: BundleContents | null },
): PhasePlan {
  const desired = filesToInstall(install, facts);
  const changes: HostChange[] = desired.flatMap((file) =>
    placeFile(file, facts, { content: contents.get(file.name) ?? null, bundled: bundle?.fileBySha256(file.sha256) ?? null, host }),
  );
  if (desired.some(({ path, isArchive }) => isArchive || /\/systemd\//.test(path)))
    changes.push({ kind: 'daemon-reload', reason: 'the new binaries may come with new unit files' });
  for (const unit of install.units) {
    const state = facts.units.get(unit);
    if (state?.unitFileState !== 'enabled') changes.push({ kind: 'enable-unit', unit, reason: 'the unit is not enabled at boot' });
    if (state?.activeState !== 'active') changes.push({ kind: 'start-unit', unit, reason: 'the unit is not running' });
  }
  const kubelet = desired.some(({ path }) => path.endsWith('/kubelet'));
  if (kubelet && facts.units.get('kubelet')?.activeState === 'active')
    changes.push({ kind: 'restart-unit', unit: 'kubelet', reason: 'the kubelet binary is replaced', impact: 'drain' });
  const names = install.files.map(({ name }) => name).join(', ');
  return changes.length > 0 ? { changes } : { changes, noop: `${names}: unchanged` };
}

function placeFile(
  file: InstalledFile,
  { sums, unpacked }: BinaryFacts,
  { content, bundled, host }: { readonly content: LargeFile | null; readonly bundled: RangedFile | null; readonly host: string },
): readonly HostChange[] {
  const { name, source, sha256, mode, path, isArchive } = file;
  const at = isArchive ? `${ARCHIVES}/${name}` : path;
  const known = isArchive ? unpacked.get(name) !== '' : sums.has(path);
  const reason = known ? (sums.get(path) === sha256 ? 'its mode differs' : 'its SHA-256 differs') : 'does not exist';
  if (content !== null && content.sha256 !== sha256) {
    const message = `${source} has the SHA-256 ${content.sha256}, but ${sha256} is declared`;
    throw new AppError({ host, code: 'INSTALL_CHECKSUM', message, hint: 'Correct sha256, or provide the right file' }, { exitCode: 3 });
  }
  // The previous program is not known here: removing the new one would leave none.
  const keep = sums.has(at) ? true : undefined;
  const arrives: HostChange =
    bundled !== null
      ? { kind: 'upload-file', path: at, mode, owner: 'root:root', content: bundled, keep, reason }
      : isUrl(source) || content === null
        ? { kind: 'download-file', path: at, url: source, sha256, mode, reason }
        : { kind: 'put-file', path: at, mode, owner: 'root:root', content, keep, reason };
  if (!isArchive) return [arrives];
  const note = { mode: 0o644, owner: 'root:root', reason: 'records the unpacked archive' };
  const before = known ? { content: `${unpacked.get(name)}\n`, mode: 0o644, owner: 'root:root' } : null;
  return [
    arrives,
    { kind: 'extract-archive', path: at, to: path, reason },
    { kind: 'remove-file', path: at, before: null, reason: 'the archive is unpacked' },
    { kind: 'write-file', path: notePath(file), content: `${sha256}\n`, ...note, action: known ? 'update' : 'create', before },
  ];
}
