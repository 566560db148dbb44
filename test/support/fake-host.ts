import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { AppError } from '../../src/base/errors.ts';
import { revealText } from '../../src/base/text/secret.ts';
import type { Host, PerformOptions } from '../../src/host/access/host.ts';
import {
  type CommandFact,
  type FactQueries,
  type FactQuery,
  type FactQueryResult,
  type FactQueryResults,
  type FileFact,
  type HttpFact,
  MAX_FILE_BYTES,
} from '../../src/host/facts/query.ts';
import { hostAnswerTooLarge } from '../../src/host/host-problems.ts';
import type { CommandOperation, Operation, RunCommand } from '../../src/host/operation/operation.ts';
import { commandOf, isCommand } from '../../src/host/operation-kinds.ts';
import { type FakeCommits, fakeCommits } from './fake-commits.ts';
import { type FakeSystemd, type FakeUnit, fakeSystemd } from './fake-units.ts';

/** A command's answer: fixed, or computed from its arguments and its standard input. */
export type FakeCommand = Partial<CommandFact> | ((argv: readonly string[], stdin: string) => Partial<CommandFact>);

export interface FakeHostOptions {
  readonly name?: string;
  /** By path: a string for a file of root with mode 0644, or any other entry. */
  readonly files?: Readonly<Record<string, string | FileFact>>;
  /**
   * By the space-separated words of the command, or by its program alone. A command that is neither here nor
   * systemd's fails loudly.
   */
  readonly commands?: Readonly<Record<string, FakeCommand>>;
  /** Units of systemd by name without `.service`; null for a host without systemd. */
  readonly units?: Readonly<Record<string, FakeUnit>> | null;
  /** The answer to a GET from the host. Default: connection refused. */
  readonly http?: (url: string) => HttpFact;
  /** Mounts, by path. */
  readonly mounts?: readonly string[];
  /** Called for each program of queries, before it is answered. */
  readonly onAsk?: () => void;
  /** Called after each program of operations. */
  readonly onPerformed?: () => void;
}

/** A host in memory: it performs operations and answers queries from its state. */
export interface FakeHost extends Host {
  /** All entries by path, including implicitly created directories. */
  readonly files: Map<string, FileFact>;
  readonly units: Map<string, FakeUnit>;
  readonly mounts: Set<string>;
  readonly commits: FakeCommits;
  /** Every performed operation, in order, over all programs. */
  readonly performed: readonly Operation[];
  /** Every answered fact query, in order, over all round trips. */
  readonly queries: readonly FactQuery[];
  /** Number of round trips: queries and programs. */
  readonly roundTrips: number;
  readonly isClosed: boolean;
  /** Sets the answer to a GET on the host. */
  http: (url: string) => HttpFact;
  /** The text of a file; throws when the file does not exist. */
  text(path: string): string;
  /** All regular files by path, as text: the files that a run leaves behind. */
  texts(): Readonly<Record<string, string>>;
  /**
   * The free space of the file system below a path, in bytes; null: enough. A file needs whole blocks, and
   * space for old and new content.
   */
  disk: { readonly under: string; free: number } | null;
  /**
   * Makes the n-th operation from now (0 is the next; failed ones count) fail before it has an effect.
   * Default: HOST_OPERATION_FAILED.
   */
  failAt(n: number, error?: AppError): void;
  /**
   * Breaks the connection right after the n-th operation from now: the operation had its effect, but its
   * result is lost.
   */
  loseConnectionAfter(n: number): void;
}

/** A host for tests, without processes and disks. */
export function fakeHost(options: FakeHostOptions = {}): FakeHost {
  const { name = 'node1', commands = {} } = options;
  // Each operation takes a second.
  const state = { roundTrips: 0, isClosed: false, seconds: 0 };
  const files = new Map<string, FileFact>();
  const units = new Map(Object.entries(options.units ?? {}));
  const systemd =
    options.units === null
      ? null
      : fakeSystemd(
          units,
          (path) => files.has(path),
          () => ++state.seconds,
        );
  const mounts = new Set(options.mounts);
  for (const [path, file] of Object.entries(options.files ?? {})) put(files, path, typeof file === 'string' ? regular(file) : file);
  if (systemd !== null) put(files, '/run/systemd/system', directory());

  const commits = fakeCommits({
    name,
    files,
    put: (path, file) => put(files, path, file),
    restart: (unit) => void systemd?.run(['systemctl', 'restart', unit]),
    now: () => ++state.seconds,
  });
  const performed: Operation[] = [];
  const queries: FactQuery[] = [];
  let faults: { at: number; readonly error: AppError; readonly after: boolean }[] = [];
  const run = (argv: readonly string[], stdin = ''): CommandFact => runCommand(name, { argv, stdin }, commands, systemd);

  const host: FakeHost = {
    name,
    files,
    units,
    mounts,
    commits,
    disk: null,
    performed,
    queries,
    get roundTrips() {
      return state.roundTrips;
    },
    get isClosed() {
      return state.isClosed;
    },
    http: options.http ?? (() => ({ error: 'connection refused' })),
    text: (path) => {
      const content = files.get(path)?.content;
      if (content === undefined) throw new Error(`the fake host ${name} has no file ${path}`);
      return content;
    },
    texts: () => Object.fromEntries([...files].flatMap(([path, { content }]) => (content === undefined ? [] : [[path, content]]))),
    failAt: (n, error = operationFailed(name)) => {
      faults.push({ at: n, error, after: false });
    },
    loseConnectionAfter: (n) => {
      faults.push({ at: n, error: connectionLost(name), after: true });
    },
    query: async <Q extends FactQueries>(asked: Q, queryOptions: { readonly signal?: AbortSignal } = {}) => {
      state.roundTrips++;
      queryOptions.signal?.throwIfAborted();
      options.onAsk?.();
      queries.push(...Object.values(asked));
      const answers = Object.entries(asked).map(([key, query]) => [key, answer(query)]);
      return Object.fromEntries(answers) as FactQueryResults<Q>;
    },
    perform: async (operations, performOptions: PerformOptions = {}) => {
      if (operations.length > 0) state.roundTrips++;
      for (const [index, given] of operations.entries()) {
        const operation = isCommand(given) ? commandOf(given) : given;
        performOptions.signal?.throwIfAborted();
        const fault = faults.find(({ at }) => at === 0);
        faults = faults.filter((one) => one !== fault).map((one) => ({ ...one, at: one.at - 1 }));
        if (fault !== undefined && !fault.after) throw fault.error;
        execute(operation);
        performed.push(operation);
        if (fault !== undefined) throw fault.error;
        performOptions.onDone?.(index);
      }
      options.onPerformed?.();
    },
    close: async () => {
      state.isClosed = true;
    },
  };

  function answer(question: FactQuery): FactQueryResult<FactQuery> {
    switch (question.kind) {
      case 'file':
        return checkedSize(readFile(files, question.path, question.content !== false), question.path);
      case 'list':
        return files.get(question.path)?.type === 'directory' ? namesIn(files, question.path) : null;
      case 'command':
        return run(question.argv, question.stdin);
      case 'http':
        return host.http(question.url);
    }
  }

  function checkedSize(file: FileFact | null, path: string): FileFact | null {
    const bytes = Buffer.byteLength(file?.content ?? '');
    if (bytes > MAX_FILE_BYTES && !path.startsWith('/proc/')) throw hostAnswerTooLarge({ host: name, path, bytes });
    return file;
  }

  const blocksOf = (content: string): number => Math.ceil(Buffer.byteLength(content) / 4096) * 4096;
  function takeSpace(path: string, content: string): void {
    if (host.disk === null || !path.startsWith(`${host.disk.under}/`)) return;
    if (blocksOf(content) > host.disk.free) throw operationFailed(name, `cannot write ${path}: No space left on device`);
    host.disk.free -= blocksOf(content);
  }
  function giveSpace(path: string): void {
    if (host.disk?.under !== undefined && path.startsWith(`${host.disk.under}/`))
      host.disk.free += blocksOf(files.get(path)?.content ?? '');
  }

  function execute(operation: Exclude<Operation, CommandOperation> | RunCommand): void {
    if (commits.execute(operation)) return;
    switch (operation.kind) {
      case 'write-file': {
        const { path, mode, owner, content } = operation;
        const found = files.get(path);
        if (found !== undefined && found.type !== 'file') throw operationFailed(name, `cannot write ${path}: ${path}: not a regular file`);
        takeSpace(path, revealText(content));
        giveSpace(path);
        put(files, path, { type: 'file', mode, owner, content: revealText(content), modifiedAt: ++state.seconds });
        systemd?.fileChanged(path);
        return;
      }
      case 'put-file': {
        const { path, mode, owner, content } = operation;
        const bytes = gunzipSync(Buffer.concat([...content.pieces()].map((piece) => Buffer.from(piece, 'base64'))));
        if (createHash('sha256').update(bytes).digest('hex') !== content.sha256)
          throw operationFailed(name, `cannot write ${path}: the file was damaged during the transfer`);
        put(files, path, { type: 'file', mode, owner, content: bytes.toString('utf8'), modifiedAt: ++state.seconds });
        return;
      }
      case 'upload-file': {
        const { path, mode, owner } = operation;
        put(files, path, { type: 'file', mode, owner, content: `uploaded ${operation.content.sha256}`, modifiedAt: ++state.seconds });
        return;
      }
      case 'make-directory':
        if ((files.get(operation.path)?.type ?? 'directory') !== 'directory')
          throw operationFailed(name, `cannot make directory ${operation.path}: File exists`);
        if (!files.has(operation.path)) takeSpace(operation.path, '.');
        put(files, operation.path, { type: 'directory', mode: operation.mode, owner: operation.owner });
        return;
      case 'remove-file':
        giveSpace(operation.path);
        files.delete(operation.path);
        systemd?.fileChanged(operation.path);
        return;
      case 'move-file': {
        const found = files.get(operation.path);
        if (found === undefined) return;
        giveSpace(operation.to);
        files.delete(operation.path);
        put(files, operation.to, found);
        return;
      }
      case 'empty-directory':
        for (const path of [...files.keys()])
          if (path.startsWith(`${operation.path}/`)) {
            giveSpace(path);
            files.delete(path);
          }
        return;
      case 'remove-directory':
        for (const path of [...files.keys()]) if (path === operation.path || path.startsWith(`${operation.path}/`)) files.delete(path);
        return;
      case 'remove-empty-directory':
        if (![...files.keys()].some((path) => path.startsWith(`${operation.path}/`))) files.delete(operation.path);
        return;
      case 'unmount-below':
        for (const path of [...mounts]) if (path.startsWith(`${operation.path}/`)) mounts.delete(path);
        return;
      case 'append-journal':
        // Only the real shell program keeps the journal.
        return;
      case 'run': {
        const { exitCode, stderr } = run(operation.argv);
        if ((operation.okExit ?? [0]).includes(exitCode ?? -1)) return;
        throw operationFailed(name, `${operation.what ?? operation.argv.join(' ')} failed: ${stderr.trim()}`, stderr);
      }
    }
  }
  return host;
}

function runCommand(
  host: string,
  { argv, stdin }: { readonly argv: readonly string[]; readonly stdin: string },
  commands: NonNullable<FakeHostOptions['commands']>,
  systemd: FakeSystemd | null,
): CommandFact {
  const given = commands[argv.join(' ')] ?? commands[argv[0] ?? ''];
  if (given !== undefined) return { exitCode: 0, stdout: '', stderr: '', ...(typeof given === 'function' ? given(argv, stdin) : given) };
  const builtIn = lookUp(argv, systemd) ?? systemd?.run(argv) ?? null;
  if (builtIn !== null) return builtIn;
  if (systemd === null && (argv[0] === 'systemctl' || argv[0] === 'journalctl'))
    return { exitCode: 127, stdout: '', stderr: `${argv[0]}: not found\n` };
  throw new Error(`the fake host ${host} knows no command ${JSON.stringify(argv)}`);
}

/** The fact by which systemd, OpenRC and neither are distinguished. */
function lookUp(argv: readonly string[], systemd: FakeSystemd | null): CommandFact | null {
  if (argv[0] !== 'sh' || argv[1] !== '-c' || argv.length !== 3) return null;
  // The process of the kubelet's unit.
  if (systemd === null && argv[2]?.includes('--property=MainPID')) return { ...missing(), exitCode: 3 };
  if (argv[2] === 'command -v systemctl') return systemd === null ? missing() : { exitCode: 0, stdout: '/usr/bin/systemctl\n', stderr: '' };
  return argv[2] === 'command -v rc-service && command -v rc-update' ? missing() : null;
}

function missing(): CommandFact {
  return { exitCode: 127, stdout: '', stderr: '' };
}

function regular(content: string): FileFact {
  return { type: 'file', mode: 0o644, owner: 'root:root', content };
}

function directory(): FileFact {
  return { type: 'directory', mode: 0o755, owner: 'root:root' };
}

function put(files: Map<string, FileFact>, path: string, file: FileFact): void {
  const steps = path.split('/').slice(1, -1);
  for (const [i] of steps.entries()) {
    const parent = `/${steps.slice(0, i + 1).join('/')}`;
    if (!files.has(parent)) files.set(parent, directory());
  }
  files.set(path, file);
}

function readFile(files: ReadonlyMap<string, FileFact>, path: string, wantContent: boolean): FileFact | null {
  const found = files.get(path);
  if (found === undefined) return null;
  const { content, ...rest } = found;
  return wantContent && content !== undefined ? { ...rest, content } : rest;
}

function namesIn(files: ReadonlyMap<string, FileFact>, path: string): readonly string[] {
  const start = `${path}/`;
  return [...files.keys()]
    .filter((other) => other.startsWith(start) && !other.slice(start.length).includes('/'))
    .map((other) => other.slice(start.length));
}

function operationFailed(host: string, message = 'an operation failed', detail = ''): AppError {
  return new AppError({ host, code: 'HOST_OPERATION_FAILED', message, hint: 'Fix the cause, then run the same command again' }, { detail });
}

function connectionLost(host: string): AppError {
  return new AppError({ host, code: 'HOST_CONNECTION_LOST', message: 'the connection was lost', hint: 'Run the same command again' });
}
