import { type CommandLineWord, environmentFilesOf, execStartWords, type UnitSourceFile, type UnitTexts } from './exec-start.ts';
import { parseUnitFile } from './unit-file.ts';

export function withoutDropIn({ unitFiles, environmentFiles }: UnitTexts, path: string): UnitTexts {
  const kept = unitFiles.filter((file) => file.path !== path);
  const named = new Set(environmentFilesOf(kept));
  return { unitFiles: kept, environmentFiles: environmentFiles.filter((file) => named.has(file.path)) };
}

/** The command line with which systemd would start the service if a drop-in, and its environment files, existed. */
export function commandLineWithDropIn(
  texts: UnitTexts,
  dropIn: UnitSourceFile,
  environmentFiles: readonly UnitSourceFile[] = [],
): readonly CommandLineWord[] {
  const [unit, ...others] = texts.unitFiles;
  const dropIns = byName([...others, dropIn]);
  const files = unit === undefined ? dropIns : [unit, ...dropIns];
  const known = new Map([...texts.environmentFiles, ...environmentFiles].map((file) => [file.path, file]));
  const environment = environmentFilesOf(files).map((path) => known.get(path) ?? { path, text: null });
  return execStartWords(files, environment) ?? [];
}

/** The command line as written, with its variables; null without ExecStart. */
export function writtenCommand({ unitFiles }: UnitTexts): string | null {
  const directives = unitFiles.flatMap(({ text }) => parseUnitFile(text ?? ''));
  return directives.findLast(({ section, name, value }) => section === 'Service' && name === 'ExecStart' && value !== '')?.value ?? null;
}

/** The effective (last) value of a flag. */
export function lastFlag(words: readonly CommandLineWord[], flag: string): { readonly value: string; readonly source: string } | null {
  const found = words.flatMap(({ word, source }, at) => {
    const [name, value] = word.replace(/^--?/, '').split(/=(.*)/s);
    if (!word.startsWith('-') || name !== flag) return [];
    return [{ value: value ?? words[at + 1]?.word ?? '', source }];
  });
  return found.at(-1) ?? null;
}

function byName(files: readonly UnitSourceFile[]): readonly UnitSourceFile[] {
  const nameOf = ({ path }: UnitSourceFile): string => path.slice(path.lastIndexOf('/') + 1);
  return files.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : 0));
}
