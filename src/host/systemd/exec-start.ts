import { parseEnvironmentFile, splitCommandWords } from './environment.ts';
import { parseUnitFile, type UnitDirective } from './unit-file.ts';
import { splitUnitWords } from './unit-words.ts';

/** A place of a command line: a unit file, or a variable in a file. */
export interface CommandLinePlace {
  readonly source: string;
  /** The path of the unit or environment file; absent: unknown, e.g. for a word of a process alone. */
  readonly file?: string | undefined;
}

export interface CommandLineWord extends CommandLinePlace {
  readonly word: string;
}

/** A file by path; `text` is null when it does not exist. */
export interface UnitSourceFile {
  readonly path: string;
  readonly text: string | null;
  /** Unix seconds; absent: unknown, or a planned text. */
  readonly modifiedAt?: number | undefined;
}

/** How systemd starts a service: its unit and drop-ins in the order they are read, and their environment files. */
export interface UnitTexts {
  readonly unitFiles: readonly UnitSourceFile[];
  readonly environmentFiles: readonly UnitSourceFile[];
}

/**
 * The command line with which systemd would start a service now, the program first; null without an
 * ExecStart.
 * @param unitFiles the unit and its drop-ins, in the order systemd reads them
 * @param hostname for the specifier `%H`; null: unknown
 * @see systemd.service(5) COMMAND LINES, systemd.exec(5) Environment=, EnvironmentFile=, systemd.unit(5)
 *   SPECIFIERS
 */
export function execStartWords(
  unitFiles: readonly UnitSourceFile[],
  environmentFiles: readonly UnitSourceFile[],
  hostname: string | null = null,
): readonly CommandLineWord[] | null {
  const directives = placedDirectives(unitFiles);
  const command = lastOf(directives, 'ExecStart').at(-1);
  if (command === undefined) return null;
  const [, prefix = '', line = ''] = /^([-@:+!|]*)(.*)$/s.exec(command.value) ?? [];
  const words = firstCommand(splitUnitWords(line)).map((word) => expandSpecifiers(word, hostname));
  // With @, the second word is only the name that the process shows.
  const [program, ...args] = prefix.includes('@') ? words.filter((_, at) => at !== 1) : words;
  if (program === undefined) return null;
  const variables = readVariables(directives, environmentFiles, hostname);
  const expanded = args.flatMap((word) =>
    prefix.includes(':') ? [{ word, ...placeOf(command.path) }] : expandWord(word, command.path, variables),
  );
  return [{ word: program, ...placeOf(command.path) }, ...expanded];
}

export function execStartOf(unitFiles: readonly UnitSourceFile[]): PlacedDirective | undefined {
  return lastOf(placedDirectives(unitFiles), 'ExecStart').at(-1);
}

/** The variables of `Environment=` and of environment files in force, with the source of each. */
export function unitVariables(
  unitFiles: readonly UnitSourceFile[],
  environmentFiles: readonly UnitSourceFile[],
): ReadonlyMap<string, UnitVariable> {
  return readVariables(placedDirectives(unitFiles), environmentFiles, null);
}

/** A word `;` separates commands. */
function firstCommand(words: readonly string[]): readonly string[] {
  const end = words.indexOf(';');
  return (end < 0 ? words : words.slice(0, end)).map((word) => (word === '\\;' ? ';' : word));
}

/** The specifiers that do not depend on the service manager; others stay as they are. */
function expandSpecifiers(word: string, hostname: string | null): string {
  const values: Readonly<Record<string, string | null>> = {
    '%': '%',
    n: 'kubelet.service',
    N: 'kubelet',
    p: 'kubelet',
    i: '',
    H: hostname,
    l: hostname?.replace(/\..*$/s, '') ?? null,
  };
  return word.replace(/%(.)/gs, (whole, name: string) => values[name] ?? whole);
}

function placedDirectives(unitFiles: readonly UnitSourceFile[]): readonly PlacedDirective[] {
  return unitFiles.flatMap(({ path, text }) => parseUnitFile(text ?? '').map((directive) => ({ ...directive, path })));
}

/** The paths of `EnvironmentFile=`, in order, without a leading `-`. */
export function environmentFilesOf(unitFiles: readonly UnitSourceFile[]): readonly string[] {
  return lastOf(placedDirectives(unitFiles), 'EnvironmentFile').map(({ value }) => value.replace(/^-/, ''));
}

type PlacedDirective = UnitDirective & { readonly path: string };

/** The effective assignments of a list directive: an empty assignment resets it. */
function lastOf(directives: readonly PlacedDirective[], name: string): readonly PlacedDirective[] {
  const own = directives.filter((directive) => directive.section === 'Service' && directive.name === name);
  return own.slice(own.findLastIndex(({ value }) => value === '') + 1);
}

interface UnitVariable extends CommandLinePlace {
  readonly value: string;
}

/** Files override `Environment=`. */
function readVariables(
  directives: readonly PlacedDirective[],
  files: readonly UnitSourceFile[],
  hostname: string | null,
): ReadonlyMap<string, UnitVariable> {
  const variables = new Map<string, UnitVariable>();
  for (const { value, path } of lastOf(directives, 'Environment')) {
    for (const word of splitUnitWords(value)) {
      const assignment = expandSpecifiers(word, hostname);
      const equals = assignment.indexOf('=');
      if (equals > 0) variables.set(assignment.slice(0, equals), { value: assignment.slice(equals + 1), ...placeOf(path) });
    }
  }
  for (const { path, text } of files) {
    for (const [name, value] of parseEnvironmentFile(text ?? '')) variables.set(name, { value, source: `${name} in ${path}`, file: path });
  }
  return variables;
}

/** A word that begins with `$NAME` is that variable alone, also `$NAME-x`, and expands to several words; `${NAME}` stays one word. */
function expandWord(word: string, path: string, variables: ReadonlyMap<string, UnitVariable>): readonly CommandLineWord[] {
  const bare = /^\$([^{$].*)$/s.exec(word)?.[1];
  if (bare !== undefined) {
    const { value, ...place } = variables.get(bare) ?? { value: '', ...placeOf(path) };
    return splitCommandWords(value).map((part) => ({ word: part, ...place }));
  }
  let place = placeOf(path);
  const expanded = word.replace(/\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})/g, (whole, name: string | undefined) => {
    if (name === undefined) return whole.slice(1);
    const variable = variables.get(name);
    if (variable === undefined) return '';
    place = { source: variable.source, file: variable.file };
    return variable.value;
  });
  return [{ word: expanded, ...place }];
}

function placeOf(file: string): CommandLinePlace {
  return { source: file, file };
}
