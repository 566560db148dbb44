import { readFileSync } from 'node:fs';
import type { AppError } from '../../base/errors.ts';

/**
 * Reads a file whose absence is the user's to fix.
 * @param refuse makes the error from why it can't be read, a clause
 */
export function readTextFile(path: string, refuse: (why: string, cause: unknown) => AppError): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refuse(code === 'ENOENT' ? 'it does not exist' : code === 'EACCES' ? 'permission denied' : (code ?? 'unknown error'), error);
  }
}
