import { readFileSync } from 'node:fs';

/** Text of a file next to a test: `fixture(import.meta.url, 'fixtures/os-release/debian-12')`. */
export function fixture(testUrl: string, path: string): string {
  return readFileSync(new URL(path, testUrl), 'utf8');
}
