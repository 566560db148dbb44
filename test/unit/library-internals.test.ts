import { describe, expect, it } from 'vitest';
import { scanSource } from '../support/scan-source.ts';
import { repositoryTexts } from '../support/source-files.ts';

/** Ways to reach into a library object behind its public interface. */
const PATTERNS: readonly (readonly [string, RegExp])[] = [
  ['a private member', /\._[a-zA-Z]\w*/g],
  // A parameter with such a name is only unused.
  ['a private member, destructured or declared', /(?<=[{,;][ \n]*(?:readonly )?)\b_(?!args:)[a-zA-Z]\w*\??(?::|\()/g],
  ['a redefined property', /\b(?:Object|Reflect)\s*\.\s*(?:defineProperty|defineProperties|setPrototypeOf)\b/g],
  ['a changed prototype', /\.prototype\s*\.\s*\w+\s*=[^=]/g],
];

function findingsIn(path: string, text: string): readonly string[] {
  // Most files need no closer look; this one leaves comments and strings out.
  if (!PATTERNS.some(([, pattern]) => text.search(pattern) >= 0)) return [];
  const { code, lineOf } = scanSource(text);
  return PATTERNS.flatMap(([what, pattern]) =>
    [...code.matchAll(pattern)].map((match) => `${path}:${lineOf(match.index)} ${what}: ${match[0]}`),
  );
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
  ])('%s would be found', (line) => {
    expect(findingsIn('x.ts', `${line}\n`)).not.toEqual([]);
  });
});
