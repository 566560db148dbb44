import { appendFileSync } from 'node:fs';

/**
 * Notes that tests are left out because this machine lacks something; `npm test` lists it at its end.
 * @param what needs it, e.g. `lab hosts`
 * @param why what is missing; null when nothing is
 * @returns true when they must be skipped
 */
export function requirement(what: string, why: string | null): boolean {
  if (why === null) return false;
  const line = `skipped: ${what}: ${why}`;
  const list = process.env.KUBELETADM_TEST_SKIPS;
  if (list === undefined) console.warn(line);
  else appendFileSync(list, `${line}\n`);
  return true;
}
