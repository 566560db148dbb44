import { AppError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Host, PerformOptions } from './access/host.ts';
import {
  type CommandFact,
  type FactQuery,
  type FactQueryResult,
  type FactQueryResults,
  type FileFact,
  type HttpFact,
  MAX_FILE_BYTES,
} from './facts/query.ts';
import { hostAnswerTooLarge } from './host-problems.ts';
import type { Operation } from './operation/operation.ts';
import { brokenOff, cannotRead, operationFailed } from './program-failures.ts';
import {
  endOfMark,
  type Frame,
  type ProgramOperation,
  type ProgramOptions,
  renderOperations,
  renderQueries,
  shellLoader,
  splitFrames,
} from './remote-program.ts';
import { requestLog } from './request-log.ts';
import { DENIED_EXIT } from './shell-program.ts';
import type { RunOptions, Transport } from './transport.ts';

/** Each request becomes one shell program, sent on stdin: one round trip, and no secrets in an argv. */
export function hostOverTransport(
  transport: Transport,
  options: {
    /** A directory used as `/` (`--rootfs`); commands are then not run, since they would query the wrong system. */
    readonly rootDir?: string | undefined;
    /** Unique per program and unpredictable for the host: at least 16 hex digits. */
    readonly nonce: () => string;
    /** Timeout of one command. Default: the transport's; for changes two minutes, or more for slow operations. */
    readonly commandTimeoutMs?: number | undefined;
    /** Logs queries and operations with `-v 2`. */
    readonly reporter?: Reporter | undefined;
  },
): Host {
  const rootDir = options.rootDir ?? null;
  const { commandTimeoutMs, nonce } = options;
  const log = requestLog(transport.name, options.reporter);
  return {
    name: transport.name,
    query: async (queries, queryOptions = {}) => {
      log.queries(queries);
      const names = Object.keys(queries);
      const asked = names.filter((name) => !(rootDir !== null && isAboutRunningSystem(queries[name] as FactQuery)));
      const answers = await answersTo(
        asked.map((name) => queries[name] as FactQuery),
        transport,
        { rootDir, nonce: nonce(), timeoutMs: commandTimeoutMs, ...queryOptions },
      );
      const byName = new Map(asked.map((name, i) => [name, answers[i] as FactQueryResult<FactQuery>]));
      const answerOf = (name: string): FactQueryResult<FactQuery> | null =>
        byName.has(name) ? (byName.get(name) ?? null) : queries[name]?.kind === 'file' ? null : STAGED_ANSWER;
      return Object.fromEntries(names.map((name) => [name, answerOf(name)])) as FactQueryResults<typeof queries>;
    },
    perform: async (operations, given = {}) => {
      log.operations(operations);
      const performOptions = { ...given, timeoutMs: Math.max(given.timeoutMs ?? CHANGE_TIMEOUT_MS, commandTimeoutMs ?? 0) };
      const { onDone } = given;
      let done = 0;
      const check = checkBetweenParts(operations);
      for (const part of partsOf(operations)) {
        const [first] = part;
        const temporaryId = nonce();
        const performSteps = (steps: readonly ProgramOperation[], onStepDone?: PerformOptions['onDone']): Promise<string> =>
          perform(transport, steps, { nonce: nonce(), rootDir, temporaryId }, { ...performOptions, onDone: onStepDone });
        if (first?.kind === 'put-file') for (const piece of piecesOf(first)) await performSteps([piece]);
        if (first?.kind === 'upload-file') await upload(first, transport.name, (step) => performSteps([...renewals(operations), step]));
        const before = done > 0 ? check : [];
        const from = done - before.length;
        await performSteps([...before, ...part], onDone && ((index) => (index < before.length ? undefined : onDone(from + index))));
        done += part.length;
      }
    },
    dial: transport.dial,
    close: () => transport.close(),
  };
}

async function answersTo(
  queries: readonly FactQuery[],
  transport: Transport,
  { signal, timeoutMs, ...program }: ProgramOptions & Pick<RunOptions, 'signal' | 'timeoutMs'>,
): Promise<readonly FactQueryResult<FactQuery>[]> {
  const { nonce } = program;
  const stdin = `${renderQueries(queries, program)}\n`;
  const result = await transport.run(shellLoader(nonce), { maxOutputBytes: MAX_ANSWER_BYTES, signal, timeoutMs, stdin });
  const frames = splitFrames(result.stdout, nonce);
  const errors = splitFrames(result.stderr, nonce);
  return queries.map((question, index) => {
    const frame = frames.find((each) => each.index === index);
    if (frame === undefined) throw brokenOff(transport.name, result.exitCode, unmarked(result.stderr, nonce));
    return readAnswer(
      question,
      frame,
      errors.find((each) => each.index === index),
      transport.name,
    );
  });
}

const CHANGE_TIMEOUT_MS = 120_000;

/** Output limit per stream; more output is an error. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

const STAGED_ANSWER = { exitCode: 127, stdout: '', stderr: 'not run: files are staged into a directory', error: 'not run' };

function isAboutRunningSystem(question: FactQuery): boolean {
  return question.kind === 'command' || question.kind === 'http' || (question.kind === 'file' && question.path.startsWith('/proc/'));
}

/** Splits operations so that a large file is sent in pieces before the part that begins with it. */
function partsOf(operations: readonly Operation[]): readonly (readonly Operation[])[] {
  const heads = operations.flatMap(({ kind }, at) => (at > 0 && (kind === 'put-file' || kind === 'upload-file') ? [at] : []));
  return [0, ...heads].map((from, i) => operations.slice(from, heads[i]));
}

/** A large file takes time to send, and the host may roll back its change meanwhile: later parts check first. */
function checkBetweenParts(operations: readonly Operation[]): readonly Operation[] {
  for (const operation of operations) {
    if (operation.kind === 'arm-revert') return [{ kind: 'check-commit', id: operation.revert.id }];
    if (operation.kind === 'check-commit') return [operation];
  }
  return [];
}

/** An upload may take longer than the lock lasts: each of its programs takes the lock again. */
function renewals(operations: readonly Operation[]): readonly Operation[] {
  const taken = operations.find((operation) => operation.kind === 'take-lock');
  return taken === undefined ? [] : [{ ...taken, lock: { ...taken.lock, breaks: { kind: 'none' } } }];
}

const UPLOAD_BYTES = 1_500_000;

/** Sends the bytes that the host lacks. `run` performs one operation and returns its output. */
async function upload(
  { path, content }: Extract<Operation, { kind: 'upload-file' }>,
  host: string,
  run: (step: ProgramOperation) => Promise<string>,
): Promise<void> {
  const { sha256, size } = content;
  const existing = Number((await run({ kind: 'begin-upload', path, sha256, size })).trim());
  if (!Number.isSafeInteger(existing) || existing < 0 || existing > size) {
    const message = `cannot upload ${path}: the host did not report how many bytes of the file it has received`;
    throw new AppError({ host, code: 'HOST_OPERATION_FAILED', message, hint: 'Rerun the command with -v 5' });
  }
  for (let offset = existing; offset < size; ) {
    const bytes = await content.read(offset, UPLOAD_BYTES);
    if (bytes.length === 0) throw new Error(`${path}: the local file is shorter than ${size} bytes`);
    const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64').replace(/.{76}/g, '$&\n');
    await run({ kind: 'upload-piece', path, sha256, offset, base64 });
    offset += bytes.length;
  }
}

function* piecesOf({ path, content }: Extract<Operation, { kind: 'put-file' }>): Iterable<ProgramOperation> {
  let isFirst = true;
  for (const base64 of content.pieces()) {
    yield { kind: 'piece', path, isFirst, base64 };
    isFirst = false;
  }
}

async function perform(
  transport: Transport,
  operations: readonly ProgramOperation[],
  program: Parameters<typeof renderOperations>[1],
  { signal, timeoutMs = CHANGE_TIMEOUT_MS, onDone }: PerformOptions,
): Promise<string> {
  if (operations.length === 0) return '';
  const counter = onDone === undefined ? undefined : countFrames(program.nonce, operations.length, onDone);
  const result = await transport.run(shellLoader(program.nonce), {
    stdin: renderOperations(operations, program),
    maxOutputBytes: MAX_ANSWER_BYTES,
    timeoutMs,
    signal,
    onStdout: counter,
  });
  const frames = splitFrames(result.stdout, program.nonce);
  const errors = splitFrames(result.stderr, program.nonce);
  const failed = frames.find((frame) => frame.exitCode !== 0);
  if (failed !== undefined && operations[failed.index] !== undefined) {
    const output = errors.find(({ index }) => index === failed.index);
    throw operationFailed(transport.name, operations[failed.index] as ProgramOperation, {
      exitCode: failed.exitCode,
      stdout: decode(failed.body),
      stderr: decode(output?.body),
    });
  }
  if (frames.length < operations.length) throw brokenOff(transport.name, result.exitCode, unmarked(result.stderr, program.nonce));
  return decode(frames.find(({ index }) => index === operations.length - 1)?.body);
}

/** Only the incomplete rest after the last mark is scanned again with the next chunk. */
function countFrames(nonce: string, total: number, onDone: (index: number) => void): (chunk: Uint8Array) => void {
  let rest: Buffer = Buffer.alloc(0);
  let done = 0;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let end = endOfMark(rest, nonce); end !== null; end = endOfMark(rest, nonce)) {
      for (const frame of splitFrames(rest.subarray(0, end), nonce)) if (frame.exitCode === 0 && done < total) onDone(done++);
      rest = Buffer.from(rest.subarray(end));
    }
    // Keeps the end, which may contain an incomplete mark.
    if (rest.length > MAX_MARK_BYTES) rest = Buffer.from(rest.subarray(-MAX_MARK_BYTES));
  };
}

const MAX_MARK_BYTES = 1024;

function readAnswer(question: FactQuery, frame: Frame | undefined, errors: Frame | undefined, host: string): FactQueryResult<FactQuery> {
  const stdout = decode(frame?.body);
  const stderr = decode(errors?.body);
  switch (question.kind) {
    case 'command':
      return { exitCode: frame?.exitCode ?? null, stdout, stderr } satisfies CommandFact;
    case 'list':
      if (frame?.exitCode !== 0) throw cannotRead(host, question.path, stderr);
      return stdout.startsWith('directory\n') ? stdout.split('\n').slice(1).filter(Boolean) : null;
    case 'http':
      return readHttp(stdout);
    case 'file':
      if (question.denied === 'absent' && frame?.exitCode === DENIED_EXIT) return null;
      if (frame?.exitCode !== 0) throw cannotRead(host, question.path, stderr);
      return checkedSize(readFileFact(stdout, question.content !== false), question.path, host);
  }
}

/** Kernel tables (/proc) have no size limit. */
function checkedSize(file: FileFact | null, path: string, host: string): FileFact | null {
  const bytes = Buffer.byteLength(file?.content ?? '');
  if (bytes > MAX_FILE_BYTES && !path.startsWith('/proc/')) throw hostAnswerTooLarge({ host, path, bytes });
  return file;
}

function readFileFact(text: string, wantContent: boolean): FileFact | null {
  const [first = '', second = '-', ...rest] = splitLines(text, 2);
  if (first === 'absent') return null;
  const [type, mode = '0', modifiedAt = '0', uid = '', gid = '', ...names] = first.split(' ');
  return {
    type: type as FileFact['type'],
    mode: Number.parseInt(mode, 8),
    owner: ownerText(names.join(' '), uid, gid),
    ...(type === 'file' ? { modifiedAt: Number(modifiedAt) } : {}),
    ...(type === 'file' && wantContent ? { content: rest[0] ?? '' } : {}),
    ...(second === '-' ? {} : { target: second }),
  };
}

/** stat(1) prints UNKNOWN for an id without a name, which chown would not accept. */
function ownerText(names: string, uid: string, gid: string): string {
  const [user, group] = names.split(':');
  return `${user === 'UNKNOWN' ? uid : user}:${group === 'UNKNOWN' ? gid : group}`;
}

function readHttp(text: string): HttpFact {
  const [first = '', body = ''] = splitLines(text, 1);
  const status = /^status (\d{3})$/.exec(first);
  return status ? { status: Number(status[1]), body } : { error: first.replace(/^error /, '') || 'no answer' };
}

/** The first `count` lines, then the remaining text as one. */
function splitLines(text: string, count: number): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < count; i++) {
    const end = text.indexOf('\n', from);
    if (end < 0) return [...parts, text.slice(from)];
    parts.push(text.slice(from, end));
    from = end + 1;
  }
  return [...parts, text.slice(from)];
}

function decode(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : new TextDecoder().decode(bytes);
}

/** The stderr output of a program, without the marks. */
function unmarked(stderr: Uint8Array, nonce: string): string {
  return decode(stderr)
    .split('\n')
    .filter((line) => !line.startsWith(nonce))
    .join('\n');
}
