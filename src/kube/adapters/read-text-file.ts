import { readFileSync } from 'node:fs';
import type { AppError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/system-error.ts';

/** @param refuse creates the error from the reason, a clause */
export function readTextFile(path: string, refuse: (why: string, cause: unknown) => AppError): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw refuse(systemErrorText(error), error);
  }
}
