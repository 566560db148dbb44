import { parseEnvironmentFile, splitCommandWords } from './environment.ts';
import { parseUnitFile, type UnitDirective } from './unit-file.ts';

/** A word of a command line and its source: a unit file, or a variable in a file. */
export interface CommandLineWord {
  readonly word: string;
  readonly source: string;
}

/** A file by path; `text` is null when it does not exist. */
export interface UnitSourceFile {
  readonly path: string;
  readonly text: string | null;
}

/**
 * How systemd starts a service: its unit and drop-ins in the order they are read, and their environment
 * files.
 */
export interface UnitTexts {
  readonly unitFiles: readonly UnitSourceFile[];
  readonly environmentFiles: readonly UnitSourceFile[];
}

/**
 * The command line with which systemd would start a service now.
 * @param unitFiles the unit and its drop-ins, in the order systemd reads them
 * @param environmentFiles the files that `environmentFilesOf` returns
 * @returns the words, the program first; null without an ExecStart
 * @see systemd.service(5) COMMAND LINES, systemd.exec(5) Environment=, EnvironmentFile=
 */
export function execStartWords(
  unitFiles: readonly UnitSourceFile[],
  environmentFiles: readonly UnitSourceFile[],
): readonly CommandLineWord[] | null {
  const directives = unitFiles.flatMap(({ path, text }) => parseUnitFile(text ?? '').map((directive) => ({ ...directive, path })));
  const command = lastOf(directives, 'ExecStart').at(-1);
  if (command === undefined) return null;
  const variables = readVariables(directives, environmentFiles);
  return splitCommandWords(command.value.replace(/^[-@:+!|]+/, '')).flatMap((word) => expandWord(word, command.path, variables));
}

/** The paths of `EnvironmentFile=`, in order, without a leading `-`. */
export function environmentFilesOf(unitFiles: readonly UnitSourceFile[]): readonly string[] {
  const directives = unitFiles.flatMap(({ path, text }) => parseUnitFile(text ?? '').map((directive) => ({ ...directive, path })));
  return lastOf(directives, 'EnvironmentFile').map(({ value }) => value.replace(/^-/, ''));
}

type PlacedDirective = UnitDirective & { readonly path: string };

/** The effective assignments of a list directive: an empty assignment resets it. */
function lastOf(directives: readonly PlacedDirective[], name: string): readonly PlacedDirective[] {
  const own = directives.filter((directive) => directive.section === 'Service' && directive.name === name);
  return own.slice(own.findLastIndex(({ value }) => value === '') + 1);
}

interface Variable {
  readonly value: string;
  readonly source: string;
}

/** Files override `Environment=`. */
function readVariables(directives: readonly PlacedDirective[], files: readonly UnitSourceFile[]): ReadonlyMap<string, Variable> {
  const variables = new Map<string, Variable>();
  for (const { value, path } of lastOf(directives, 'Environment')) {
    for (const assignment of splitCommandWords(value)) {
      const equals = assignment.indexOf('=');
      if (equals > 0) variables.set(assignment.slice(0, equals), { value: assignment.slice(equals + 1), source: path });
    }
  }
  for (const { path, text } of files) {
    for (const [name, value] of parseEnvironmentFile(text ?? '')) variables.set(name, { value, source: `${name} in ${path}` });
  }
  return variables;
}

/** A bare `$NAME` expands to several words; `${NAME}` stays one word. */
function expandWord(word: string, path: string, variables: ReadonlyMap<string, Variable>): readonly CommandLineWord[] {
  const bare = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(word)?.[1];
  if (bare !== undefined) {
    const { value = '', source = path } = variables.get(bare) ?? {};
    return splitCommandWords(value).map((part) => ({ word: part, source }));
  }
  let source = path;
  const expanded = word.replace(/\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})/g, (whole, name: string | undefined) => {
    if (name === undefined) return whole.slice(1);
    const variable = variables.get(name);
    source = variable?.source ?? source;
    return variable?.value ?? '';
  });
  return [{ word: expanded, source }];
}
