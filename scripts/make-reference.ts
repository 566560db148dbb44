// npm run reference: writes docs/reference from the commands, and the table of signals in docs/health.md.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { referencePages } from './reference/pages.ts';
import { withSignalTable } from './reference/signal-table.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = await referencePages();
const folder = join(root, 'docs/reference');
mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (!pages.has(`docs/reference/${name}`)) rmSync(join(folder, name));
for (const [path, text] of pages) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
const health = join(root, 'docs/health.md');
writeFileSync(health, withSignalTable(readFileSync(health, 'utf8')));
console.log(`docs/reference: ${pages.size} pages`);
