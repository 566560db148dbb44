import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { LargeFile } from '../core/plan/large-file.ts';

const PIECE_BYTES = 1_500_000;
const HEAD_BYTES = 64;

/** Reads a file of this machine and compresses it, once for all hosts it is sent to. Throws what reading it throws. */
export async function largeFile(path: string): Promise<LargeFile> {
  const bytes = await readFile(path);
  const packed = await promisify(gzip)(bytes);
  return {
    sha256: createHash('sha256').update(bytes).digest('hex'),
    size: bytes.length,
    head: bytes.subarray(0, HEAD_BYTES).toString('latin1'),
    *pieces() {
      for (let at = 0; at < packed.length; at += PIECE_BYTES)
        yield packed
          .subarray(at, at + PIECE_BYTES)
          .toString('base64')
          .replace(/.{76}/g, '$&\n');
    },
  };
}
