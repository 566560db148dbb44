import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import Handlebars from 'handlebars';
import options from './template-options.json' with { type: 'json' };

const ROOT = fileURLToPath(new URL('../templates', import.meta.url));

/**
 * The compiled templates, by their path without `.hbs`: of a file for hosts, its path on the host without the
 * leading slash. Templates of HTML escape their values. `npm run build` replaces this module with the templates
 * precompiled, which need only the runtime of Handlebars.
 */
export async function loadTemplates(): Promise<ReadonlyMap<string, Handlebars.TemplateDelegate>> {
  const entries = await readdir(ROOT, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.hbs')).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
  return new Map(
    paths.map((path, i) => [
      relative(ROOT, path)
        .split(sep)
        .join('/')
        .replace(/\.hbs$/, ''),
      Handlebars.compile(texts[i] as string, path.endsWith('.html.hbs') ? options.html : options.text),
    ]),
  );
}
