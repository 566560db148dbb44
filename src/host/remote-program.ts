import { printable } from '../base/text/printable.ts';
import { revealText } from '../base/text/secret.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import { ARM_FUNCTIONS, COMMIT_FUNCTIONS, LOCK_FUNCTIONS, unitsFunction } from './commit/commit-program.ts';
import { revertUnits } from './commit/revert-script.ts';
import type { FactQuery } from './facts/query.ts';
import type { LockRequest, Operation, OperationOf, RevertRequest, RunCommand } from './operation/operation.ts';
import { commandOf } from './operation-kinds.ts';
import { formatMode } from './plan/diff-file.ts';
import {
  FILE_FUNCTIONS,
  HTTP_FUNCTIONS,
  JOURNAL_FUNCTIONS,
  LARGE_FILE_FUNCTIONS,
  LIST_FUNCTIONS,
  OPERATION_FUNCTIONS,
  QUERY_FUNCTIONS,
  SHARED_FUNCTIONS,
  TREE_FUNCTIONS,
  UPLOAD_FUNCTIONS,
  WRITE_FUNCTIONS,
} from './shell-program.ts';

export const INCOMPLETE_EXIT = 97;

/**
 * A program that a lost connection truncated, or that a login shell's profile consumed in part, is never half
 * executed. `unset p`: an exported variable of this name would put the program into the environment of all
 * child processes.
 */
export function shellLoader(nonce: string): readonly string[] {
  return [
    '/bin/sh',
    '-c',
    `unset p; p=$(cat); case $p in "B=${nonce}"*"#end ${nonce}") eval "$p";; *) echo "the program arrived incomplete" >&2; exit ${INCOMPLETE_EXIT};; esac`,
  ];
}

export interface ProgramOptions {
  /** Unpredictable separator between answers. */
  readonly nonce: string;
  /** A directory used as `/`, or null: the host's own root. */
  readonly rootDir: string | null;
}

/** An operation, or a part of one that needs several programs. */
export type ProgramOperation =
  | Operation
  /** A piece of a file that `put-file` installs later. */
  | { readonly kind: 'piece'; readonly path: string; readonly isFirst: boolean; readonly base64: string }
  /** The start of an upload: its output is the number of bytes that exist on the host. */
  | { readonly kind: 'begin-upload'; readonly path: string; readonly sha256: string; readonly size: number }
  /** The bytes of an upload from an offset on. */
  | { readonly kind: 'upload-piece'; readonly path: string; readonly sha256: string; readonly offset: number; readonly base64: string };

/**
 * Answers are framed: `
 * <nonce> <index> <exit code>
 * ` ends each one on stdout, `
 * <nonce> <index>
 * ` on stderr.
 */
export function renderQueries(queries: readonly FactQuery[], options: ProgramOptions): string {
  const isParallel = (question: FactQuery): boolean => question.kind === 'command' && question.isParallel === true;
  const linesOf = (belongs: (question: FactQuery) => boolean): readonly string[] =>
    queries.flatMap((question, index) => {
      if (!belongs(question)) return [];
      return question.kind === 'file' ? `out\n${fileLine(question, index)}` : `out\n${queryLines(question)}\nmark ${index} $?`;
    });
  const parallel = linesOf(isParallel);
  const others = linesOf((question) => !isParallel(question));
  const needs = (kind: FactQuery['kind']): boolean => queries.some((question) => question.kind === kind);
  const functions = [
    QUERY_FUNCTIONS,
    needs('file') ? FILE_FUNCTIONS : '',
    needs('list') ? LIST_FUNCTIONS : '',
    needs('http') ? HTTP_FUNCTIONS : '',
  ];
  const main = [...others, ...(needs('file') ? ['q_files'] : []), 'out'];
  // The answers of the parallel commands wait in a pipe until those of the others are complete.
  const lines =
    parallel.length === 0 ? main : ['out', '{', ...parallel, 'out', '} 2>/dev/null | {', 'exec 8<&0 </dev/null', ...main, 'cat <&8', '}'];
  return renderProgram([BEGIN_BOTH, ...lines, 'exit 0'], functions, options);
}

/**
 * Stops at the first failure; framed like answers. If one of consecutive files cannot be written, none is.
 * @param options.temporaryId in the names of temporary files: unpredictable, in no command line, equal for
 *   all pieces of a file
 */
export function renderOperations(
  operations: readonly ProgramOperation[],
  options: ProgramOptions & { readonly temporaryId: string },
): string {
  const lines = operations.map((operation, index) => {
    if (operation.kind !== 'write-file') return `out\n${operationLines(operation)}\nr=$?; mark ${index} $r; [ $r = 0 ] || { out; exit 1; }`;
    const isFirst = operations[index - 1]?.kind !== 'write-file';
    const isLast = operations[index + 1]?.kind !== 'write-file';
    return `${isFirst ? `w_begin ${index}\n` : ''}${stageLines(operation)}${isLast ? '\nw_commit' : ''}`;
  });
  const needs = (...kinds: readonly ProgramOperation['kind'][]): boolean => operations.some(({ kind }) => kinds.includes(kind));
  const functions = [
    OPERATION_FUNCTIONS,
    needs('write-file') ? WRITE_FUNCTIONS : '',
    needs(...TREE_KINDS) ? TREE_FUNCTIONS : '',
    needs('piece', 'put-file') ? LARGE_FILE_FUNCTIONS : '',
    needs('begin-upload', 'upload-piece', 'upload-file') ? UPLOAD_FUNCTIONS : '',
    needs('append-journal') ? JOURNAL_FUNCTIONS : '',
    needs('take-lock', 'release-lock') ? LOCK_FUNCTIONS : '',
    needs('arm-revert', 'check-commit', 'confirm-commit', 'revert-commit') ? COMMIT_FUNCTIONS : '',
    needs('arm-revert') ? ARM_FUNCTIONS : '',
  ];
  // Stderr of successful operations is dropped.
  const begin = [`T=${temporaryPart(options.temporaryId)}`, operations[0]?.kind === 'write-file' ? BEGIN : BEGIN_BOTH];
  return renderProgram([...begin, ...lines, 'ERR=; out; exit 0'], functions, options);
}

/** File names are limited to 255 bytes, most of which are needed for the name of the target. */
function temporaryPart(id: string): string {
  return id.replaceAll('-', '').slice(0, 16);
}

const TREE_KINDS = [
  'make-directory',
  'remove-file',
  'move-file',
  'empty-directory',
  'remove-directory',
  'remove-empty-directory',
  'unmount-below',
] as const;

/** Start marks: output before them belongs to the login shell. The stderr mark is written lazily. */
const BEGIN = 'tell start 0';
const BEGIN_BOTH = 'mark start 0';

function renderProgram(lines: readonly string[], functions: readonly string[], { nonce, rootDir }: ProgramOptions): string {
  // The environment variable lets a host that is only a directory (an image being built, the lab) set its
  // root.
  const root = rootDir === null ? `R=\${KUBELETADM_ROOT-}; R=\${R%/}` : `R=${quoteShell(trimTrailing(rootDir, '/'))}`;
  return [`B=${nonce}`, root, SHARED_FUNCTIONS + functions.join(''), ...lines, `#end ${nonce}`].join('\n');
}

/** Files are collected first, and shown together at the end. */
function fileLine({ path, content }: Extract<FactQuery, { kind: 'file' }>, index: number): string {
  return `q_file ${index} ${content === false ? 0 : 1} ${quoteShell(path)}`;
}

function queryLines(question: Exclude<FactQuery, { kind: 'file' }>): string {
  switch (question.kind) {
    case 'list':
      return `q_list ${quoteShell(question.path)}`;
    case 'http':
      return `q_wait ${question.attempts ?? 1} ${quoteShell(question.url)} ${question.timeoutSeconds}`;
    case 'command': {
      const words = `( ${question.argv.map(quoteShell).join(' ')} )${question.isParallel === true ? ' 2>&1' : ''}`;
      if (question.stdin === undefined) return `${words} </dev/null`;
      const { encoding, lines } = heredoc(question.stdin);
      return `${encoding === 'plain' ? `${words} ${HERE}` : `base64 -d ${HERE} | ${words}`}\n${lines}${HERE_END}`;
    }
  }
}

type WriteFile = Extract<Operation, { kind: 'write-file' }>;

/** Content is passed as a shell word, or in base64 if a word cannot contain it. */
function stageLines({ path, content, mode, owner }: WriteFile): string {
  const text = revealText(content);
  const head = `w_stage ${quoteShell(path)} ${formatMode(mode)} ${quoteShell(owner)}`;
  const size = Buffer.byteLength(text);
  if ((text === '' || text.endsWith('\n')) && !text.includes('\0')) return `${head} plain ${size} ${quoteShell(text)}`;
  return `${head} base64 ${size} ${HERE}\n${base64Lines(text)}${HERE_END}`;
}

function operationLines(operation: Exclude<ProgramOperation, WriteFile>): string {
  switch (operation.kind) {
    case 'piece':
      return `w_piece ${quoteShell(operation.path)} ${operation.isFirst ? 1 : 0} ${HERE}\n${operation.base64}\n${HERE_END}`;
    case 'begin-upload':
      return `u_begin ${operation.sha256} ${operation.size} ${quoteShell(operation.path)}`;
    case 'upload-piece':
      return `u_piece ${operation.sha256} ${operation.offset} ${HERE}\n${operation.base64}\n${HERE_END}`;
    case 'upload-file':
      return `u_end ${quoteShell(operation.path)} ${operation.content.sha256} ${formatMode(operation.mode)} ${quoteShell(operation.owner)}`;
    case 'put-file':
      return `w_put ${quoteShell(operation.path)} ${formatMode(operation.mode)} ${quoteShell(operation.owner)} ${operation.content.sha256}`;
    case 'make-directory':
      return `w_directory ${quoteShell(operation.path)} ${formatMode(operation.mode)} ${quoteShell(operation.owner)}`;
    case 'remove-file':
      return `w_remove ${quoteShell(operation.path)}`;
    case 'move-file':
      return `w_move ${quoteShell(operation.path)} ${quoteShell(operation.to)}`;
    case 'empty-directory':
      return `w_empty ${quoteShell(operation.path)}`;
    case 'remove-directory':
      return `w_rmdir ${quoteShell(operation.path)}`;
    case 'remove-empty-directory':
      return `w_prune ${quoteShell(operation.path)}`;
    case 'unmount-below':
      return `w_unmount ${quoteShell(operation.path)} ${quoteShell(operation.flags.join(' '))}`;
    case 'append-journal':
      return journalLine(operation);
    case 'take-lock':
      return takeLock(operation.lock);
    case 'release-lock':
      return `lock_release ${quoteShell(operation.id)}`;
    case 'arm-revert':
      return armRevert(operation.revert);
    case 'check-commit':
      return `hold && commit_check ${quoteShell(operation.id)}`;
    case 'confirm-commit':
      return `commit_confirm ${quoteShell(operation.id)}`;
    case 'revert-commit':
      return `commit_revert ${quoteShell(operation.id)} ${quoteShell(printable(operation.why, MAX_REASON))}`;
    default:
      return runLine(commandOf(operation));
  }
}

function journalLine({ path, id, entry, maxEntries, maxBytes, isOptional, attachment }: OperationOf<'append-journal'>): string {
  const oldBytes = Math.max(0, maxBytes - Buffer.byteLength(entry) - LOGIN_BYTES);
  const words = ['w_journal', path, String(maxEntries - 1), String(oldBytes), `"id":${JSON.stringify(id)}`, entry];
  const attach = attachment && ['w_attach', attachment.path, String(attachment.maxFiles), attachment.content];
  const lines = [words, ...(attach === undefined ? [] : [attach])].map((line) => line.map(quoteShell).join(' ')).join(' && ');
  return isOptional ? `{ ${lines}; } 2>/dev/null || :` : lines;
}

const LOGIN_BYTES = 100;

/**
 * `command` prevents a call of one of our functions; a subshell would cost a process. Assignments before it
 * are in the environment, and in no argument list. Only the operator's own hooks get secrets in this way.
 */
function runLine({ argv, okExit, secrets = {} }: RunCommand): string {
  const assignments = Object.entries(secrets).map(([name, value]) => `${name}=${quoteShell(revealText(value))} `);
  return `${assignments.join('')}command ${argv.map(quoteShell).join(' ')} </dev/null${okExits(okExit)}`;
}

const MAX_REASON = 500;

function takeLock({ owner, seconds, breaks }: LockRequest): string {
  const taken = breaks.kind === 'id' ? breaks.id : breaks.kind;
  const words = [owner.id, String(seconds), taken, printable(owner.name), String(owner.processId), printable(owner.machine)];
  return `lock_take ${words.map(quoteShell).join(' ')}`;
}

function armRevert({ id, timeoutSeconds, owner, paths, units, reload }: RevertRequest): string {
  const words = [id, String(timeoutSeconds), printable(owner), reload ? '1' : '0', ...paths, '--', ...units];
  return `${unitsFunction(revertUnits(timeoutSeconds, paths))}hold && commit_arm ${words.map(quoteShell).join(' ')}`;
}

function okExits(okExit: readonly number[] | undefined): string {
  if (okExit === undefined) return '';
  return `; case $? in ${okExit.join('|')}) true;; *) false;; esac`;
}

const HERE_END = 'EOF_KUBELETADM';
const HERE = `<<'${HERE_END}'`;

/** Plain text is passed unchanged, text that a here-document would alter in base64. */
function heredoc(text: string): { encoding: 'plain' | 'base64'; lines: string } {
  const plain = (text === '' || text.endsWith('\n')) && !/[\0\r]|^EOF_KUBELETADM$/m.test(text);
  if (plain) return { encoding: 'plain', lines: text };
  return { encoding: 'base64', lines: base64Lines(text) };
}

function base64Lines(text: string): string {
  return `${Buffer.from(text, 'utf8').toString('base64').replace(/.{76}/g, '$&\n')}\n`;
}

export interface Frame {
  /** Index of the query or operation. */
  readonly index: number;
  readonly body: Uint8Array;
  readonly exitCode: number | null;
}

/**
 * The answers in order of completion, without output before the start mark (banners, motd). The program was
 * aborted after the last one.
 */
export function splitFrames(output: Uint8Array, nonce: string): readonly Frame[] {
  const buffer = Buffer.from(output.buffer, output.byteOffset, output.byteLength);
  const frames: Frame[] = [];
  let from = 0;
  for (;;) {
    const at = buffer.indexOf(`\n${nonce} `, from);
    if (at < 0) return frames;
    const lineEnd = buffer.indexOf(0x0a, at + 1);
    if (lineEnd < 0) return frames;
    const [, index, code] = buffer.toString('latin1', at + 1, lineEnd).split(' ');
    if (index !== 'start')
      frames.push({ index: Number(index), body: buffer.subarray(from, at), exitCode: code === undefined ? null : Number(code) });
    from = lineEnd + 1;
  }
}

/** End of the line of the first mark; null if no complete mark was received. */
export function endOfMark(output: Uint8Array, nonce: string): number | null {
  const buffer = Buffer.from(output.buffer, output.byteOffset, output.byteLength);
  const at = buffer.indexOf(`\n${nonce} `);
  const end = at < 0 ? -1 : buffer.indexOf(0x0a, at + 1);
  return end < 0 ? null : end + 1;
}
