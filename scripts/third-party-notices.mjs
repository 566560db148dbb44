// The licences of what the built program contains: most of them ask that they go along with it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param root folder of the repository
 * @param inputs paths of the files that were built in, below `root`
 * @returns one text: of each package its name, version, licence and the text of it
 */
export function thirdPartyNotices(root, inputs) {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  return [...folders]
    .sort()
    .map((folder) => notice(join(root, folder)))
    .join(`${'-'.repeat(80)}\n`);
}

function notice(folder) {
  const { name, version, license, licenses = [] } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return `${[`${name} ${version} (${license ?? licenses.map(({ type }) => type).join(', ')})`, ...texts].join('\n\n')}\n`;
}
