import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { AppError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/system-error.ts';
import type { LargeFile } from '../operation/large-file.ts';

const PIECE_BYTES = 1_500_000;
const HEAD_BYTES = 64;
/** Second line of a program that was built as several files (scripts/build.mjs). */
const SEVERAL_FILES = '\n// kubeletadm, in several files\n';
/** The file in the same directory that is sent to hosts: the agent in one file. */
const AGENT_FILE = 'kubeletadm-agent.mjs';

/**
 * Reads a local program file and compresses it once for all hosts; null: the program runs from its sources.
 * @param path default: the running program, or the agent file beside a program that was built as several
 *   files
 * @param running its script and its interpreter, the same file for a single executable application of Node.js
 * @throws AppError INPUT_UNREADABLE (exit code 2)
 */
export async function readProgram(
  path: string | undefined,
  running: { readonly script: string; readonly executable: string } | undefined,
): Promise<LargeFile | null> {
  const file = path ?? (await ownFile(running));
  if (file === null) return null;
  let opened = file;
  try {
    const found = await largeFile(file);
    if (!found.head.includes(SEVERAL_FILES)) return found;
    opened = join(dirname(await realpath(file)), AGENT_FILE);
    return await largeFile(opened);
  } catch (cause) {
    const message = `cannot read ${opened}: ${systemErrorText(cause)}`;
    throw new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Check the path' }, { exitCode: 2, cause });
  }
}

/** Follows symbolic links, which npm creates. */
async function ownFile(running: Parameters<typeof readProgram>[1]): Promise<string | null> {
  if (running === undefined) return null;
  const own = await realpath(running.script).catch(() => running.executable);
  return own.endsWith('.ts') ? null : own;
}

async function largeFile(path: string): Promise<LargeFile> {
  const bytes = await readFile(path);
  let packed: Buffer | null = null;
  return {
    sha256: createHash('sha256').update(bytes).digest('hex'),
    size: bytes.length,
    head: bytes.subarray(0, HEAD_BYTES).toString('latin1'),
    *pieces() {
      // Lazy: not needed if all hosts have the file. The network is faster than a better compression.
      packed ??= gzipSync(bytes, { level: 1 });
      for (let at = 0; at < packed.length; at += PIECE_BYTES)
        yield packed
          .subarray(at, at + PIECE_BYTES)
          .toString('base64')
          .replace(/.{76}/g, '$&\n');
    },
  };
}
