import { quoteShell } from '../text/shell-quote.ts';
import { STDIN_VARIABLE } from '../text/stdin-variable.ts';

/** From here on a command goes by stdin: Dropbear takes 9000 bytes, others what fits into one argument of the login shell. */
const MAX_COMMAND_BYTES = 8000;
/** The longest word that all login shells take; it ends at 4096 in csh. */
const MAX_WORD_BYTES = 3900;

export interface RemoteCommandOptions {
  /**
   * Whoever carries the command loses how it ended (the `ssh` program tells neither signals nor its own failures from exit codes): it says `<mark> end
   * <code as the shell has it>` on stderr itself, on a line after all else.
   */
  readonly tellsEnd?: boolean;
}

export interface RemoteCommand {
  /** What the SSH server hands to the login shell. */
  readonly command: string;
  /** What is to be sent on stdin before the caller's own; empty unless the command was too long for one argument. */
  readonly stdinPrefix: string;
}

/**
 * Wraps an argv so that any login shell (sh, bash, zsh, csh, fish) starts it with nothing lost on the way.
 *
 * The program inside runs in /bin/sh. It first says `<mark>` on stdout and `<mark> <its process id>` on stderr, each on a line: what came
 * before is noise of the login shell. Where the program to run is missing or not executable, it says `<mark> missing` on stderr and exits 127.
 * @param mark letters, digits and hyphens, unpredictable for the host
 */
export function renderRemoteCommand(argv: readonly string[], mark: string, { tellsEnd = false }: RemoteCommandOptions = {}): RemoteCommand {
  const inPlace = !tellsEnd && isLine(argv);
  const program = inPlace ? renderLineProgram(argv, mark) : renderProgram(argv, mark, tellsEnd);
  const command = renderCommand(program, inPlace ? argv[3] : undefined);
  if (Buffer.byteLength(command) <= MAX_COMMAND_BYTES) return { command, stdinPrefix: '' };
  const reader = 'IFS= read -r kubeletadm_program;eval "$kubeletadm_program"';
  return { command: renderCommand(reader, inPlace ? argv[3] : undefined), stdinPrefix: `${program}\n` };
}

/**
 * Starts a shell that runs lines one after the other, each in a process of its own without another shell: one session of the host for all of them. It reads
 * them from its stdin like a script, which costs a host less than any other way to hand over a program, and ends with it.
 */
export const KEPT_SHELL = 'exec /bin/sh';

/** A line of `/bin/sh -c` and its stdin, which it takes from a variable (core/text/stdin-variable.ts). */
export interface ShellLine {
  readonly argv: readonly string[];
  readonly mark: string;
  readonly stdin: string;
}

/** Many shells read a script byte by byte: what is longer has a session of its own. */
const MAX_KEPT_BYTES = 64 * 1024;

/** Whether a kept shell can run this. */
export function canBeKept(argv: readonly string[], stdin: string): boolean {
  return isLine(argv) && stdin.length <= MAX_KEPT_BYTES && !stdin.includes('\0');
}

/**
 * What a kept shell reads to run one more line, which says its mark as in {@link renderRemoteCommand}, and at its end `<mark> end` on stdout and `<mark> end
 * <exit code>` on stderr, right behind what else was said. It is one line with braces around: where the connection breaks, or a login shell's profile reads from
 * its beginning, none of it is run.
 * @param isFirst what comes of a login shell is before it; else its stdout begins where that of the line before has ended, without a mark
 */
export function renderKeptLine({ argv: [, , line = '', , ...args], mark, stdin }: ShellLine, isFirst: boolean): string {
  const variable = `${STDIN_VARIABLE}=${quoteWord(stdin.replace(/\n+$/, ''))}`;
  const words = `${NEWLINE}l=${quoteWord(line)};${variable};set -- ${args.map(quoteWord).join(' ')}`;
  const marks = `${isFirst ? `echo ${mark};` : ''}echo "${mark} $$" >&2`;
  return `{ ${marks};${words};(eval "$l") </dev/null;r=$?;echo "${mark} end";echo "${mark} end $r" >&2;}\n`;
}

/** @param name what the program is called, its `$0` */
function renderCommand(program: string, name = '/bin/sh'): string {
  const word = quoteForAnyShell(program);
  const own = quoteForAnyShell(name);
  if (Buffer.byteLength(word) <= MAX_WORD_BYTES) return `exec /bin/sh -c ${word} ${own}`;
  const join = 'p=;for a;do p=$p$a;done;eval "$p"';
  return `exec /bin/sh -c ${quoteForAnyShell(join)} ${own} ${splitIntoWords(program).join(' ')}`;
}

/** Of at most four bytes, be it for one outside of the ASCII range or for the quotes around one. */
const PIECE = new RegExp(`[^]{1,${Math.floor((MAX_WORD_BYTES - 2) / 4)}}`, 'gu');

/** Cuts between characters, each piece quoted and not too long. */
function splitIntoWords(program: string): readonly string[] {
  return (program.match(PIECE) ?? []).map(quoteForAnyShell);
}

/**
 * Ends a program that {@link renderRemoteCommand} started, with all it started itself: SIGTERM, a second later SIGKILL. An SSH server makes each
 * command the leader of a process group; where it does not, the one process has to do.
 * @param processId as the program said it on stderr
 */
export function renderKillCommand(processId: string): string {
  const late = `{ sleep 1;kill -s KILL -- -${processId};}`;
  const program = `kill -s TERM -- -${processId} 2>/dev/null||kill -s TERM ${processId};${late} </dev/null >/dev/null 2>&1 &`;
  return `exec /bin/sh -c ${quoteForAnyShell(program)}`;
}

/** One line of POSIX sh. A newline in a word becomes `$1`, because csh ends a quoted word at a newline and `read` ends its line there. */
function renderProgram(argv: readonly string[], mark: string, tellsEnd: boolean): string {
  const [program = '', ...args] = argv.map(quoteWord);
  const newline = argv.some((word) => word.includes('\n')) ? NEWLINE : '';
  const there = argv[0]?.includes('/') ? `[ -f ${program} ]&&[ -x ${program} ]` : `command -v ${program} >/dev/null 2>&1`;
  const missing = `{ echo "${mark} missing" >&2;exit 127;}`;
  const command = [program, ...args].join(' ');
  return `${newline}echo ${mark};${there}||${missing};echo "${mark} $$" >&2;${tellsEnd ? renderTold(command, mark) : `exec ${command}`}`;
}

/** `/bin/sh -c LINE`, perhaps with a name that any login shell takes, and arguments. */
function isLine(argv: readonly string[]): boolean {
  return argv[0] === '/bin/sh' && argv[1] === '-c' && argv[2] !== undefined && /^[\w:./ -]*$/.test(argv[3] ?? '');
}

/** A line needs no shell but the one that is there. */
function renderLineProgram([, , line = '', , ...args]: readonly string[], mark: string): string {
  const words = `l=${quoteWord(line)};set -- ${args.map(quoteWord).join(' ')}`;
  return `${words.includes('$1') ? NEWLINE : ''}echo ${mark};echo "${mark} $$" >&2;${words};eval "$l"`;
}

/** In the background, because dash says on the program's stderr what signal ended one in the foreground. */
function renderTold(command: string, mark: string): string {
  return `exec 8>&2 9<&0 2>/dev/null;${command} <&9 2>&8 8>&- 9<&- & wait $!;r=$?;printf '\\n%s end %s\\n' ${mark} $r >&8;exit $r`;
}

/** Puts a newline into `$1`. IFS begins with blank, tab and newline in every shell just started; no process is needed to make one. */
const NEWLINE = 'set -- "${IFS#??}";set -- "${1%"${1#?}"}";';

function quoteWord(word: string): string {
  return quoteShell(word).replaceAll('\n', `'"$1"'`);
}

/**
 * Single quotes mean the same in all shells but for three characters: fish reads `\\` and `\'` inside them, csh reads `!`. Those stand outside,
 * behind a backslash, which means the same everywhere.
 */
function quoteForAnyShell(line: string): string {
  return `'${line.replace(/['\\!]/g, "'\\$&'")}'`;
}
