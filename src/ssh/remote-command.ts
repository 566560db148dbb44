import { quoteShell } from '../base/text/shell-quote.ts';

/** From here on a command goes by stdin: Dropbear takes 9000 bytes, others what fits into one argument of the login shell. */
const MAX_COMMAND_BYTES = 8000;
/** The longest word that all login shells take; it ends at 4096 in csh. */
const MAX_WORD_BYTES = 3900;

export interface RemoteCommandOptions {
  /**
   * Whoever carries the command loses how it ended (the `ssh` program tells neither signals nor its own failures from exit codes): it says `<mark> end
   * <code as the shell has it>` on stderr itself, on a line after all else.
   */
  readonly reportsEnd?: boolean;
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
export function renderRemoteCommand(
  argv: readonly string[],
  mark: string,
  { reportsEnd = false }: RemoteCommandOptions = {},
): RemoteCommand {
  const program = renderProgram(argv, mark, reportsEnd);
  const command = renderCommand(program);
  if (Buffer.byteLength(command) <= MAX_COMMAND_BYTES) return { command, stdinPrefix: '' };
  return { command: renderCommand('IFS= read -r kubeletadm_program;eval "$kubeletadm_program"'), stdinPrefix: `${program}\n` };
}

function renderCommand(program: string): string {
  const word = quoteForAnyShell(program);
  if (Buffer.byteLength(word) <= MAX_WORD_BYTES) return `exec /bin/sh -c ${word}`;
  const join = 'p=;for a;do p=$p$a;done;eval "$p"';
  return `exec /bin/sh -c ${quoteForAnyShell(join)} /bin/sh ${splitIntoWords(program).join(' ')}`;
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
function renderProgram(argv: readonly string[], mark: string, reportsEnd: boolean): string {
  const [program = '', ...args] = argv.map(quoteWord);
  const newline = argv.some((word) => word.includes('\n')) ? NEWLINE : '';
  const existing = argv[0]?.includes('/') ? `[ -f ${program} ]&&[ -x ${program} ]` : `command -v ${program} >/dev/null 2>&1`;
  const missing = `{ echo "${mark} missing" >&2;exit 127;}`;
  const command = [program, ...args].join(' ');
  return `${newline}echo ${mark};${existing}||${missing};echo "${mark} $$" >&2;${reportsEnd ? renderReported(command, mark) : `exec ${command}`}`;
}

/** In the background, because dash says on the program's stderr what signal ended one in the foreground. */
function renderReported(command: string, mark: string): string {
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
