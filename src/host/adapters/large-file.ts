import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { AppError } from '../../base/errors.ts';
import type { LargeFile } from '../plan/large-file.ts';

const PIECE_BYTES = 1_500_000;
const HEAD_BYTES = 64;
/** The second line of the built program that loads other files beside it (scripts/build.mjs). */
const SEVERAL_FILES = '\n// kubeletadm, in several files\n';
/** What it sends to hosts, in the same directory: the agent in one file. */
const AGENT_FILE = 'kubeletadm-agent.mjs';

/** What runs: a script and the program that runs it, which is the same for an executable with Node.js in it. */
export interface RunningProgram {
  readonly script: string;
  readonly executable: string;
}

/**
 * Reads a program of this machine and compresses it, once for all hosts it is sent to.
 * @param path undefined: the program that runs. Where this is the built program in several files, the agent's file beside it is read.
 * @returns null where the program runs from its sources
 * @throws AppError INPUT_UNREADABLE (exit code 2)
 */
export async function readProgram(path: string | undefined, running: RunningProgram | undefined): Promise<LargeFile | null> {
  const file = path ?? (await ownFile(running));
  if (file === null) return null;
  try {
    const found = await largeFile(file);
    return found.head.includes(SEVERAL_FILES) ? await largeFile(join(dirname(await realpath(file)), AGENT_FILE)) : found;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new AppError({ code: 'INPUT_UNREADABLE', message: `${file}: ${why}`, hint: 'Check the path' }, { exitCode: 2, cause });
  }
}

/** Links are followed: npm makes them. */
async function ownFile(running: RunningProgram | undefined): Promise<string | null> {
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
      // Where the hosts have it already nothing is sent. Quick rather than small: a line is quicker than that.
      packed ??= gzipSync(bytes, { level: 1 });
      for (let at = 0; at < packed.length; at += PIECE_BYTES)
        yield packed
          .subarray(at, at + PIECE_BYTES)
          .toString('base64')
          .replace(/.{76}/g, '$&\n');
    },
  };
}
