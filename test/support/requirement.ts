import { appendFileSync } from 'node:fs';

/**
 * Records that tests are skipped because the local host lacks a requirement; `npm test` lists them at its
 * end.
 * @param what the skipped tests, e.g. `lab hosts`
 * @param reason the missing requirement; null when none is missing
 * @returns true when the tests must be skipped
 */
export function requirement(what: string, reason: string | null): boolean {
  if (reason === null) return false;
  const line = `skipped: ${what}: ${reason}`;
  const list = process.env.KUBELETADM_TEST_SKIPS;
  if (list === undefined) console.warn(line);
  else appendFileSync(list, `${line}\n`);
  return true;
}
