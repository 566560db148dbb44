import { open } from 'node:fs/promises';

/** Writes a file, or the entries of a directory, to the disk, so that they survive a power failure. */
export async function syncPath(path: string, flags: 'r' | 'r+' = 'r'): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
