import { AppError, type Problem, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { isVariableName, readAssignments, splitCommandWords } from '../../host/systemd/environment.ts';
import {
  type CommandLineWord,
  environmentFilesOf,
  execStartOf,
  execStartWords,
  type UnitSourceFile,
  unitVariables,
} from '../../host/systemd/exec-start.ts';
import { inReadingOrder } from '../../host/systemd/observe-unit-texts.ts';
import { ignoredUnitLines, parseUnitFile, unitValues } from '../../host/systemd/unit-file.ts';
import { splitUnitWords } from '../../host/systemd/unit-words.ts';
import { OLDEST_MINOR } from '../catalogue/catalogue.ts';
import { loadCatalogue } from '../catalogue/load-catalogue.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { readMinor } from '../minor-option.ts';
import { type KubeletMigration, migrateKubelet } from './migrate-kubelet.ts';

export interface MigrateFilesRequest {
  readonly file: string;
  /** The version of the kubelet that the file is for, and of the one it is converted for. */
  readonly from: string;
  readonly to: string;
  /** Units, drop-ins and environment files of a kubelet, files with a command line, or command lines. */
  readonly flagFiles: readonly string[];
  /** `name=value` of flags of the kubelet. */
  readonly extraArgs: readonly string[];
  /** Write explicit values for defaults that differ. */
  readonly keepDefaults: boolean;
}

export interface FilesMigration extends KubeletMigration {
  /** The kubelet has flags. */
  readonly hasFlags: boolean;
  /** Warnings about the sources of the flags. */
  readonly flagNotes: readonly Problem[];
}

/**
 * Converts the configuration file and the flags of a kubelet for another version; writes nothing.
 * @throws AppError with exit code 2: an invalid version, file or flag
 */
export async function migrateFiles(services: Pick<LocalFiles, 'input'>, request: MigrateFilesRequest): Promise<FilesMigration> {
  const { file, keepDefaults } = request;
  const [from, to] = [readMinor(request.from, 'from', OLDEST_MINOR), readMinor(request.to, 'to', OLDEST_MINOR)];
  const catalogue = await loadCatalogue();
  const read = await readFlagSources(services, request.flagFiles);
  const words = [...read.words.map(({ word }) => word), ...request.extraArgs.map((text) => `--${text.replace(/^-+/, '')}`)];
  const { flags, others } = parseCommandLine(words, { catalogue, minor: from });
  if (others[0] !== undefined) {
    const source = read.words.find(({ word }) => word === others[0])?.source;
    const place = source === undefined ? '' : ` (${source})`;
    throw usageError(`${others[0]}${place} is not a flag: a kubelet with this argument does not start`);
  }
  const migration = migrateKubelet(await services.input.readText(file), file, { from, to, catalogue, flags, keepDefaults });
  return { ...migration, hasFlags: words.length > 0, flagNotes: read.notes };
}

/** The command line of a kubelet without the program, and warnings about its sources. */
export interface FlagSources {
  readonly words: readonly CommandLineWord[];
  readonly notes: readonly Problem[];
}

/** The last variables of a command line: those of kubeadm's drop-in come after all others. */
const LAST_VARIABLES = ['KUBELET_KUBEADM_ARGS', 'KUBELET_EXTRA_ARGS'];

/**
 * Reads the flags that systemd would pass to a kubelet.
 * @param sources units, drop-ins and environment files, which belong together; a file with a command line; or a command
 *   line
 * @throws AppError FLAGS_FILE_INVALID (exit code 2) for a file without flags
 */
export async function readFlagSources(services: Pick<LocalFiles, 'input'>, sources: readonly string[]): Promise<FlagSources> {
  const files: SourceFile[] = [];
  for (const source of sources) {
    const text = isCommandLine(source) ? source : await services.input.readText(source);
    files.push({ path: isCommandLine(source) ? 'the command line in --flags' : source, text, kind: kindOf(source, text) });
  }
  const fromUnit = readUnit(files);
  const raw = files.filter(({ kind }) => kind === 'words').flatMap(rawWords);
  return { words: [...fromUnit.words, ...raw], notes: [...files.flatMap(ignoredLines), ...fromUnit.notes] };
}

interface SourceFile extends UnitSourceFile {
  readonly text: string;
  readonly kind: 'unit' | 'environment' | 'words';
}

/** The path of a unit, or of a drop-in: `kubelet.service.d/x.conf`, `20-extra.conf`. */
const UNIT_FILE = /\.service$|\.service\.d\/[^/]*\.conf$|(?:^|\/)[0-9]+-[^/]*\.conf$/;

/** A word with a flag, or a program and its flags. */
function isCommandLine(source: string): boolean {
  return /^-./.test(source) || /\s--?[A-Za-z]/.test(source);
}

function kindOf(source: string, text: string): SourceFile['kind'] {
  if (isCommandLine(source)) return 'words';
  if (/^[ \t]*\[(?:Unit|Service|Install)\][ \t]*\r?$/m.test(text) || UNIT_FILE.test(source)) return 'unit';
  const assignments = readAssignments(text);
  if (assignments.some(({ name }) => isVariableName(name.replace(/^export\s+/, '')))) return 'environment';
  if (/(?:^|[\s\0])--?[A-Za-z]/.test(text)) return 'words';
  throw invalid(`${source} has no flags of a kubelet`);
}

function invalid(message: string): AppError {
  const hint =
    'Pass the unit, its drop-ins and environment files (systemctl cat kubelet > kubelet.unit), or the command line of the kubelet';
  return new AppError({ code: 'FLAGS_FILE_INVALID', message, hint }, { exitCode: 2 });
}

/** Words of a command line in a shell's notation, or as /proc/PID/cmdline has them. */
function rawWords({ path, text }: SourceFile): readonly CommandLineWord[] {
  const words = text.includes('\0') ? text.split('\0').filter(Boolean) : splitCommandWords(text.replace(/\\\r?\n/g, ' '));
  const own = words.map((word) => ({ word, source: path }));
  return words[0]?.startsWith('-') === true ? own : withoutProgram(own, path);
}

/** The flags after the program, which may be started by another one: `hyperkube kubelet --v=2`. */
function withoutProgram(words: readonly CommandLineWord[], place: string): readonly CommandLineWord[] {
  const at = words.findIndex(({ word }) => /(?:^|\/)kubelet[^/\s]*$/.test(word));
  if (at < 0) throw invalid(`${place}: the command line starts ${words[0]?.word ?? 'no program'}, not a kubelet`);
  return words.slice(at + 1);
}

function readUnit(files: readonly SourceFile[]): FlagSources {
  const unitFiles = inReadingOrder(files.filter(({ kind }) => kind === 'unit'));
  const environment = files.filter(({ kind }) => kind === 'environment');
  if (unitFiles.length + environment.length === 0) return { words: [], notes: [] };
  const command = execStartOf(unitFiles);
  if (command === undefined) return readVariables(unitFiles, environment);
  const named = environmentFilesOf(unitFiles);
  const read = [...new Set([...named.flatMap((path) => fileAt(environment, path) ?? []), ...environment])];
  const words = withoutProgram(execStartWords(unitFiles, read) ?? [], command.path);
  const commandWords = splitUnitWords(command.value);
  const isUsed = (name: string): boolean => commandWords.some((word) => word === `$${name}` || word.includes(`\${${name}}`));
  const unused = [...unitVariables(unitFiles, read)].filter(([name, { value }]) => hasFlags(value) && !isUsed(name));
  return {
    words,
    notes: [
      ...missingFiles(unitFiles, environment),
      ...environment
        .filter((file) => !named.some((path) => fileAt([file], path) !== undefined))
        .map(({ path }) => note(`${path} is read as an environment file of the unit, but no EnvironmentFile= names it`)),
      ...unused.map(([name, { source }]) =>
        note(`${withName(name, source)} is not in force: the ExecStart of ${command.path} does not use the variable`),
      ),
    ],
  };
}

/** Without an ExecStart, variables with flags are taken for words of the command line. */
function readVariables(unitFiles: readonly UnitSourceFile[], environment: readonly SourceFile[]): FlagSources {
  const variables = [...unitVariables(unitFiles, environment)].filter(([, { value }]) => hasFlags(value));
  const names = variables.map(([name]) => name).toSorted((a, b) => LAST_VARIABLES.indexOf(a) - LAST_VARIABLES.indexOf(b));
  const paths = [...unitFiles, ...environment].map(({ path }) => path).join(', ');
  if (names.length === 0) throw invalid(`${paths}: no ExecStart=, and no variable has flags of a kubelet`);
  const text = `[Service]\nExecStart=kubelet ${names.map((name) => `$${name}`).join(' ')}\n`;
  const words = execStartWords([...unitFiles, { path: paths, text }], environment) ?? [];
  const others = names.filter((name) => !LAST_VARIABLES.includes(name));
  const assumed = note(`no ExecStart= was given: the flags of ${names.join(', ')} are read as one command line`);
  return { words: words.slice(1), notes: [...missingFiles(unitFiles, environment), ...(others.length === 0 ? [] : [assumed])] };
}

/** A value of flags, not of settings for them. */
function hasFlags(value: string): boolean {
  return /^\s*["']?--?[A-Za-z]/.test(value);
}

function withName(name: string, source: string): string {
  return source.startsWith(`${name} in `) ? source : `${name} in ${source}`;
}

/** The given copy of a file that a unit names; the names of both files are the same. A pattern may name any file. */
function fileAt(files: readonly SourceFile[], path: string): SourceFile | undefined {
  if (/[*?[]/.test(path)) return files[0];
  return files.find((file) => file.path === path) ?? files.find((file) => baseName(file.path) === baseName(path));
}

function missingFiles(unitFiles: readonly UnitSourceFile[], environment: readonly SourceFile[]): readonly Problem[] {
  const missing = environmentFilesOf(unitFiles).filter((path) => fileAt(environment, path) === undefined);
  return missing.map((path) =>
    note(`the unit reads ${path}, which was not passed: its flags, if any, are missing`, `If the file exists, pass a copy with --flags`),
  );
}

/** The lines that set something, and that systemd ignores. */
function ignoredLines({ path, text, kind }: SourceFile): readonly Problem[] {
  if (kind === 'words') return [];
  if (kind === 'environment')
    return readAssignments(text)
      .filter(({ name }) => !isVariableName(name))
      .map(({ name, line }) => ignored(path, line, name));
  const assignments = unitValues(parseUnitFile(text), 'Service', 'Environment').flatMap(splitUnitWords);
  const invalidNames = assignments.filter((word) => !word.includes('=') || !isVariableName(nameOf(word))).map(nameOf);
  return [
    ...ignoredUnitLines(text).map(({ line, text: content }) => ignored(path, line, content.split(/[=\s]/, 1)[0] ?? '')),
    ...invalidNames.map((name) => note(`${path}: systemd ignores ${name} in Environment=, which is not an assignment NAME=VALUE`)),
  ];
}

/** The value may be a secret. */
function nameOf(word: string): string {
  return word.replace(/=.*$/s, '');
}

function ignored(file: string, line: number, what: string): Problem {
  return { ...note(`systemd ignores this line (${what}): its setting has no effect`), position: { file, line, column: 1 } };
}

function note(message: string, hint?: string): Problem {
  return { code: 'FLAGS_NOT_IN_FORCE', severity: 'warning', message, ...(hint === undefined ? {} : { hint }) };
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
