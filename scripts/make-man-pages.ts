// npm run man: writes the manual pages of all commands to dist/man.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manPages } from './reference/man-pages.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
const folder = join(root, 'dist/man');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const pages = await manPages(version);
for (const [name, text] of pages) writeFileSync(join(folder, name), text);
console.log(`dist/man: ${pages.size} pages`);
