// npm run reference: writes docs/reference from the commands.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { referencePages } from './reference/pages.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = await referencePages();
const folder = join(root, 'docs/reference');
mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (!pages.has(`docs/reference/${name}`)) rmSync(join(folder, name));
for (const [path, text] of pages) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
console.log(`docs/reference: ${pages.size} pages`);
