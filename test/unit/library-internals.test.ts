import { describe, expect, it } from 'vitest';
import { scanSource } from '../support/scan-source.ts';
import { repositoryTexts } from '../support/source-files.ts';

/** Patterns that access a library object behind its public interface. */
const PATTERNS: readonly (readonly [string, RegExp])[] = [
  ['a private member', /\._\w+/g],
  // A parameter with such a name is only unused.
  ['a private member, destructured or declared', /(?<=[{,;][ \n]*(?:readonly )?)\b_(?!args:)[a-zA-Z]\w*\??(?::|\()/g],
  ['a redefined property', /\bObject\s*\.\s*(?:defineProperty|defineProperties|setPrototypeOf)\b/g],
  ['reflection', /\bReflect\s*\.\s*\w+/g],
  ['a changed prototype', /\.prototype\s*\.\s*\w+\s*=[^=]/g],
];

/** The same with the name in a string. Each starts with a character of code, which excludes matches inside comments and strings. */
const NAMES_IN_STRINGS: readonly (readonly [string, RegExp])[] = [
  ['a private member in brackets', /\[\s*(['"`])_\w+\1\s*\]/g],
  ['a private member, destructured by a string', /[{,]\s*(['"])_\w+\1\s*:/g],
];

/** A file of a package instead of its exports. */
const PACKAGE_PATH = /^(?:@[\w.-]+\/)?[a-z][\w.-]*\//;
const INSIDE_PACKAGE = ['a module inside a package', /['"`](?:@[\w.-]+\/)?[a-z][\w.-]*\//g] as const;

function findingsIn(path: string, text: string): readonly string[] {
  // Most files need no closer check; this check ignores comments and strings.
  if (![...PATTERNS, ...NAMES_IN_STRINGS, INSIDE_PACKAGE].some(([, pattern]) => text.search(pattern) >= 0)) return [];
  const { code, imports, lineOf } = scanSource(text);
  const inCode = PATTERNS.flatMap(([what, pattern]) => [...code.matchAll(pattern)].map((match) => ({ what, match })));
  const inStrings = NAMES_IN_STRINGS.flatMap(([what, pattern]) =>
    [...text.matchAll(pattern)].filter(({ index }) => code[index] === text[index]).map((match) => ({ what, match })),
  );
  const inside = imports
    .filter(({ specifier }) => PACKAGE_PATH.test(specifier))
    .map(({ specifier, line }) => `${path}:${line} ${INSIDE_PACKAGE[0]}: ${specifier}`);
  return [...[...inCode, ...inStrings].map(({ what, match }) => `${path}:${lineOf(match.index)} ${what}: ${match[0]}`), ...inside];
}

describe('libraries', () => {
  it('are used through their public interface only', () => {
    const sources = [...repositoryTexts()].filter(([path]) => path.startsWith('src/') && path.endsWith('.ts'));
    expect(sources.length).toBeGreaterThan(100);
    expect(sources.flatMap(([path, text]) => findingsIn(path, text))).toEqual([]);
  });

  it.each([
    'client._protocol.exec(1);',
    'const { _chanMgr: channels } = client as unknown as Internals;',
    'interface Internals { readonly _sock?: Socket; _resetKA(): void }',
    "Object.defineProperty(protocol, '_kex', { get: () => current });",
    'Command.prototype.parse = () => undefined;',
    "client['_protocol'].exec(1);",
    'client?.["_chanMgr"];',
    'channel[`_waitWindow`] = false;',
    "const { '_sock': socket } = client;",
    "Reflect.get(client, '_sock');",
    "client.__defineGetter__('ready', () => true);",
    "import { Protocol } from 'ssh2/lib/protocol/Protocol.js';",
    "const protocol = await import('node-ssh/lib/cjs/index.js');",
  ])('%s would be found', (line) => {
    expect(findingsIn('x.ts', `${line}\n`)).not.toEqual([]);
  });
});
