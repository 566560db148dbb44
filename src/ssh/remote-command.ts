import { quoteShell } from '../base/text/shell-quote.ts';

/** Longer commands are sent by stdin: Dropbear accepts 9000 bytes, others one argument of the login shell. */
const MAX_COMMAND_BYTES = 8000;
/** The longest word that all login shells accept; the limit of csh is 4096. */
const MAX_WORD_BYTES = 3900;

/**
 * Wraps an argv so that any login shell (sh, bash, zsh, csh, fish) starts it unchanged.
 *
 * The inner program runs in /bin/sh. It first writes `<mark>` to stdout and `<mark> <its process id>` to
 * stderr, each on a line: earlier output is noise of the login shell. If the program to run does not exist or
 * is not executable, it writes `<mark> missing` to stderr and exits with code 127. A `/bin/sh -c` with a script
 * of one line is not started again: each process costs a host as much as the rest of a command.
 * @param mark letters, digits and hyphens, unpredictable for the host
 * @param options.reportsExitCode for transports that lose the exit status (the `ssh` program reports neither signals nor its own
 *   failures distinctly): the program writes `<mark> end <exit code of the shell>` to stderr itself, on a line after all other output
 * @returns `stdinPrefix`: data to send on stdin before the caller's own, unless the command fits in one argument
 */
export function renderRemoteCommand(
  argv: readonly string[],
  mark: string,
  { reportsExitCode = false }: { readonly reportsExitCode?: boolean | undefined } = {},
): { readonly command: string; readonly stdinPrefix: string } {
  const program = renderProgram(argv, mark, reportsExitCode);
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

/** A character may need four bytes, either in UTF-8 or for its quotes. */
const PIECE = new RegExp(`[^]{1,${Math.floor((MAX_WORD_BYTES - 2) / 4)}}`, 'gu');

/** Splits between characters; each piece is quoted and within the limit. */
function splitIntoWords(program: string): readonly string[] {
  return (program.match(PIECE) ?? []).map(quoteForAnyShell);
}

/**
 * Stops a program that {@link renderRemoteCommand} started, with its child processes: SIGTERM, one second
 * later SIGKILL. SSH servers make each command the leader of a process group; otherwise only the process
 * itself is signalled.
 * @param processId as the program printed it to stderr
 */
export function renderKillCommand(processId: string): string {
  const late = `{ sleep 1;kill -s KILL -- -${processId};}`;
  const program = `kill -s TERM -- -${processId} 2>/dev/null||kill -s TERM ${processId};${late} </dev/null >/dev/null 2>&1 &`;
  return `exec /bin/sh -c ${quoteForAnyShell(program)}`;
}

/**
 * One line of POSIX sh. A newline in a word becomes `$1`, because csh ends a quoted word at a newline and
 * `read` ends its line at a newline.
 */
function renderProgram(argv: readonly string[], mark: string, reportsExitCode: boolean): string {
  const script = reportsExitCode ? null : lineOfShell(argv);
  if (script !== null) return `echo ${mark};echo "${mark} $$" >&2;${script}`;
  const [program = '', ...args] = argv.map(quoteWord);
  const newline = argv.some((word) => word.includes('\n')) ? NEWLINE : '';
  const existing = argv[0]?.includes('/') ? `[ -f ${program} ]&&[ -x ${program} ]` : `command -v ${program} >/dev/null 2>&1`;
  const missing = `{ echo "${mark} missing" >&2;exit 127;}`;
  const command = [program, ...args].join(' ');
  return `${newline}echo ${mark};${existing}||${missing};echo "${mark} $$" >&2;${reportsExitCode ? renderReported(command, mark) : `exec ${command}`}`;
}

/** The script of a `/bin/sh -c SCRIPT`, if the shell that writes the marks can run it as well; else null. */
function lineOfShell([program, flag, script = '\n', ...args]: readonly string[]): string | null {
  return program === '/bin/sh' && flag === '-c' && args.length === 0 && !script.includes('\n') ? script : null;
}

/**
 * Runs in the background, because dash reports a signal that ends a foreground command on the program's
 * stderr.
 */
function renderReported(command: string, mark: string): string {
  return `exec 8>&2 9<&0 2>/dev/null;${command} <&9 2>&8 8>&- 9<&- & wait $!;r=$?;printf '\\n%s end %s\\n' ${mark} $r >&8;exit $r`;
}

/**
 * Stores a newline in `$1`. IFS starts with space, tab and newline in every new shell, so no process is
 * needed to create one.
 */
const NEWLINE = 'set -- "${IFS#??}";set -- "${1%"${1#?}"}";';

function quoteWord(word: string): string {
  return quoteShell(word).replaceAll('\n', `'"$1"'`);
}

/**
 * Single quotes mean the same in all shells except for three characters: fish interprets `\\` and `\'` inside
 * them, csh interprets `!`. These are placed outside after a backslash, which means the same in all shells.
 */
function quoteForAnyShell(line: string): string {
  return `'${line.replace(/['\\!]/g, "'\\$&'")}'`;
}
