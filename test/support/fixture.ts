import { readFileSync } from 'node:fs';

/** Text of a file beside a test: `fixture(import.meta.url, 'fixtures/os-release/debian-12')`. */
export function fixture(testUrl: string, path: string): string {
  return readFileSync(new URL(path, testUrl), 'utf8');
}
