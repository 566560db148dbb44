import { createReadStream, readFileSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, lstat, mkdtemp, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, sep } from 'node:path';
import { syncPath } from '../../base/adapters/sync-path.ts';
import { AppError, usageError } from '../../base/errors.ts';
import type { InputFiles, TreeFile } from '../../base/local-files.ts';
import { systemErrorText } from '../../base/system-error.ts';
import type { Services } from '../output/services.ts';
import type { TerminalInput, TerminalOutput } from './prompt-terminal.ts';

/** Files of the local host; `-` is standard input. Secrets are typed on the terminal of `stdin` and `stderr`. */
export function localInput(stdin: TerminalInput, stderr: TerminalOutput): InputFiles {
  let stdinIsRead = false;
  const readStdin = async (): Promise<string> => {
    if (stdinIsRead)
      throw usageError(
        'two options read standard input',
        "Pass one of the inputs as a file: the file '-' and the options for passwords on standard input cannot be combined",
      );
    stdinIsRead = true;
    return readStream(stdin);
  };
  return {
    readText: (path) => (path === '-' ? readStdin() : readFileText(path)),
    readTree: async (directory, isDesired) => {
      const info = await lstat(directory).catch((cause: unknown) => refuse(directory, cause));
      if (!info.isDirectory())
        throw new AppError(
          {
            code: 'INPUT_NOT_A_DIRECTORY',
            message: `${directory} is not a directory`,
            hint: 'Pass the directory itself, not a link to it',
          },
          { exitCode: 2 },
        );
      const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch((cause: unknown) =>
        refuse(directory, cause),
      );
      const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
      const named = paths
        .map((path) => ({ path, name: relative(directory, path).split(sep).join('/') }))
        .sort((a, b) => compareBytes(a.name, b.name));
      const files: TreeFile[] = [];
      // One at a time: a directory given by mistake may hold more files than a process may open.
      for (const { path, name } of named) files.push({ path: name, text: isDesired(name) ? await readFileText(path) : '' });
      return files;
    },
    exists: async (path) => (await stat(path).catch(() => null)) !== null,
    isDirectory: async (path) => (await stat(path).catch(() => null))?.isDirectory() === true,
    askSecret: async (prompt) => (await import('./prompt-terminal.ts')).askSecretOnTerminal(prompt, stdin, stderr),
  };
}

/**
 * Larger than any input file. An endless input (a device, a pipe that never closes) must not fill the memory.
 */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads synchronously: for a small file, the round trips of the thread pool take several times as long as the
 * read.
 */
async function readFileText(path: string): Promise<string> {
  try {
    const info = statSync(path);
    const bytes = info.isFile() && info.size <= MAX_BYTES ? readFileSync(path) : await readChunks(path, createReadStream(path));
    return new TextDecoder('utf-8', { ignoreBOM: false }).decode(bytes);
  } catch (cause) {
    return refuse(path, cause);
  }
}

async function readStream(stream: NodeJS.ReadableStream): Promise<string> {
  return new TextDecoder().decode(await readChunks('standard input', stream));
}

async function readChunks(name: string, stream: NodeJS.ReadableStream): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(Buffer.from(chunk));
    size += chunk.length;
    if (size > MAX_BYTES) throw tooLarge(name);
  }
  return Buffer.concat(chunks);
}

function tooLarge(name: string): AppError {
  const message = `${name} has more than ${MAX_BYTES} bytes`;
  return new AppError({ code: 'INPUT_TOO_LARGE', message, hint: 'Check that this is the right file' }, { exitCode: 2 });
}

function refuse(path: string, cause: unknown): never {
  if (cause instanceof AppError) throw cause;
  const message = `cannot read ${path}: ${systemErrorText(cause)}`;
  throw new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Check the path' }, { exitCode: 2, cause });
}

function compareBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Writes a file that the user named: a random name in the same directory, created exclusively with its final
 * mode, fsync, rename, fsync of the directory. A regular file of the user keeps its mode unless `isPrivate`. Otherwise only
 * the user may read the new file, because another user may have prepared a link or a file.
 * @param options.isEdited replaces the target of a link, and keeps mode, group and, if permitted, owner of any user's file
 * @throws AppError INPUT_UNWRITABLE, exit code 2; also for a path that is not a regular file, because the
 * rename would remove it
 */
export async function writeLocalFile(
  given: string,
  text: string,
  { isPrivate = false, isEdited = false }: { readonly isPrivate?: boolean; readonly isEdited?: boolean } = {},
): Promise<void> {
  try {
    const path = isEdited ? await realpath(given) : given;
    const temporary = await temporaryBeside(path);
    const mode = await modeOfFile(path);
    const file = await open(temporary, 'wx', isPrivate || isEdited ? 0o600 : mode);
    try {
      await file.writeFile(text);
      if (isEdited) await keepAccess(file, path);
      await file.sync();
      await rename(temporary, path);
    } catch (cause) {
      await rm(temporary, { force: true });
      throw cause;
    } finally {
      await file.close();
    }
    await syncPath(dirname(path));
  } catch (cause) {
    throw unwritable(given, cause);
  }
}

/** Gives a new file the owner, group and mode of the file that it replaces; without its group, no access of a group. */
async function keepAccess(file: FileHandle, path: string): Promise<void> {
  const [{ uid, gid, mode }, own] = await Promise.all([stat(path), file.stat()]);
  const chown = (user: number) =>
    file.chown(user, gid).then(
      () => true,
      () => false,
    );
  const keepsGroup = (await chown(uid)) || (await chown(own.uid));
  await file.chmod(mode & (keepsGroup ? 0o777 : 0o707));
}

/**
 * Creates and removes a temporary file as writeLocalFile does; a full disk is not detected.
 * @throws AppError INPUT_UNWRITABLE, exit code 2, as writeLocalFile
 */
export async function requireWritable(given: string, { isEdited = false }: { readonly isEdited?: boolean } = {}): Promise<void> {
  try {
    if (given === '' || given.endsWith('/')) throw new NotRegular();
    const path = isEdited ? await realpath(given) : given;
    const temporary = await temporaryBeside(path);
    const file = await open(temporary, 'wx', await modeOfFile(path));
    await file.close();
    await rm(temporary);
  } catch (cause) {
    throw unwritable(given, cause);
  }
}

/** A random name in the same directory. */
async function temporaryBeside(path: string): Promise<string> {
  // Loaded on use: it takes a tenth of the startup time of Node.js.
  const { randomBytes } = await import('node:crypto');
  return join(dirname(path), `.${basename(path)}.kubeletadm.${randomBytes(8).toString('hex')}`);
}

function unwritable(path: string, cause: unknown): AppError {
  const why = cause instanceof NotRegular ? 'not a regular file. Pass another file' : systemErrorText(cause);
  return new AppError({ code: 'INPUT_UNWRITABLE', message: `cannot write ${path || 'to an empty path'}: ${why}` }, { exitCode: 2, cause });
}

class NotRegular extends Error {}

async function modeOfFile(path: string): Promise<number> {
  const absent = (error: NodeJS.ErrnoException): null => {
    if (error.code === 'ENOENT') return null;
    throw error;
  };
  const target = await stat(path).catch(absent);
  if (target !== null && !target.isFile()) throw new NotRegular();
  const own = await lstat(path).catch(absent);
  return own?.isFile() === true && own.uid === process.geteuid?.() ? own.mode & 0o777 : 0o600;
}

/**
 * Directories in the system's temporary directory, readable only by this user.
 * @param onForcedExit calls a listener before the process exits without waiting: existing directories are then removed
 */
export function temporaryDirectories(onForcedExit: Services['onForcedExit']): {
  readonly makeTemporaryDirectory: (prefix: string) => Promise<string>;
  /** Removes a directory with its content. */
  readonly removeTemporaryDirectory: (path: string) => Promise<void>;
} {
  const forget = new Map<string, () => void>();
  return {
    makeTemporaryDirectory: async (prefix) => {
      const path = await mkdtemp(join(tmpdir(), prefix));
      if (onForcedExit !== undefined)
        forget.set(
          path,
          onForcedExit(() => rmSync(path, { recursive: true, force: true })),
        );
      return path;
    },
    removeTemporaryDirectory: async (path) => {
      await rm(path, { recursive: true, force: true });
      forget.get(path)?.();
      forget.delete(path);
    },
  };
}
