// The licences of the packages in the built program: most licences require that they are distributed with it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param root folder of the repository
 * @param inputs paths of the bundled files, below `root`
 * @returns one text: name, version and licence of each package, and each licence text once below the
 *   packages that share it
 */
export function thirdPartyNotices(root, inputs) {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const titlesByText = new Map();
  for (const { title, text } of [...folders].sort().map((folder) => notice(join(root, folder)))) {
    const key = text || title;
    titlesByText.set(key, { text, titles: [...(titlesByText.get(key)?.titles ?? []), title] });
  }
  return [...titlesByText.values()].map(({ titles, text }) => section(titles.join('\n'), text)).join(RULE);
}

/** Separates the licences of two packages. */
export const RULE = `${'-'.repeat(80)}\n`;

/** One licence text with its packages. */
export function section(title, text) {
  return `${[title, text].filter(Boolean).join('\n\n')}\n`;
}

/**
 * The notices as a comment of a program, so that a copy of the file contains them.
 * Typographic characters are replaced and others escaped as in JavaScript strings: with one character outside ASCII,
 * Node.js would keep the whole program in two bytes per character.
 */
export function noticesComment(notices) {
  const typographic = { '\u2018': "'", '\u2019': "'", '\u201c': '"', '\u201d': '"', '\u2013': '-', '\u2014': '-', '\u00a9': '(c)' };
  const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const text = notices.replace(/[^\0-\x7f]/g, (character) => typographic[character] ?? escaped(character)).replaceAll('*/', '* /');
  return `/*\nThe licences of this program and of the software it contains.\n\n${text}*/\n`;
}

function notice(folder) {
  const { name, version, license, licenses = [] } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file));
  const text = files.map((file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim()).join('\n\n');
  return { title: `${name} ${version} (${license ?? licenses.map(({ type }) => type).join(', ')})`, text };
}
