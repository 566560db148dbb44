import { quoteShell } from '../text/shell-quote.ts';

/** From here on a command goes by stdin: the login shell gets the whole of it as one argument. */
const MAX_COMMAND_BYTES = 100_000;

export interface RemoteCommand {
  /** What the SSH server hands to the login shell. */
  readonly command: string;
  /** Comes before the caller's stdin; empty unless the command was too long for one argument. */
  readonly stdinPrefix: string;
}

/**
 * Wraps an argv so that any login shell (sh, bash, zsh, csh, fish) starts it with nothing lost on the way.
 *
 * The program inside runs in /bin/sh. It first says `<mark>` on stdout and `<mark> <its process id>` on stderr, each on a line: what came
 * before is noise of the login shell. Where the program to run is missing or not executable, it says `<mark> missing` on stderr and exits 127.
 * @param mark letters, digits and hyphens, unpredictable for the host
 */
export function renderRemoteCommand(argv: readonly string[], mark: string): RemoteCommand {
  const program = renderProgram(argv, mark);
  const command = `exec /bin/sh -c ${quoteForAnyShell(program)}`;
  if (Buffer.byteLength(command) <= MAX_COMMAND_BYTES) return { command, stdinPrefix: '' };
  const reader = 'IFS= read -r kubeletadm_program;eval "$kubeletadm_program"';
  return { command: `exec /bin/sh -c ${quoteForAnyShell(reader)}`, stdinPrefix: `${program}\n` };
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
function renderProgram(argv: readonly string[], mark: string): string {
  const [program = '', ...args] = argv.map((word) => quoteShell(word).replaceAll('\n', `'"$1"'`));
  const newline = argv.some((word) => word.includes('\n')) ? `set -- "$(printf '\\012x')";set -- "\${1%x}";` : '';
  const there = argv[0]?.includes('/') ? `[ -f ${program} ]&&[ -x ${program} ]` : `command -v ${program} >/dev/null 2>&1`;
  const missing = `{ echo "${mark} missing" >&2;exit 127;}`;
  return `${newline}echo ${mark};${there}||${missing};echo "${mark} $$" >&2;exec ${[program, ...args].join(' ')}`;
}

/**
 * Single quotes mean the same in all shells but for three characters: fish reads `\\` and `\'` inside them, csh reads `!`. Those stand outside,
 * behind a backslash, which means the same everywhere.
 */
function quoteForAnyShell(line: string): string {
  return `'${line.replace(/['\\!]/g, (character) => `'\\${character}'`)}'`;
}
