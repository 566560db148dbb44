import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEnvironmentFile, splitCommandWords } from '../../../../src/host/systemd/environment.ts';
import { fixture } from '../../../support/fixture.ts';

interface Recorded {
  /** A file that sets V. */
  readonly file: string;
  /** The value in the environment of a unit with that EnvironmentFile. */
  readonly value: string | null;
  /** The arguments that its `ExecStart=program $V` received. */
  readonly argv: readonly string[];
}
const RECORDED = JSON.parse(fixture(import.meta.url, 'fixtures/environment-file-252.json')) as readonly Recorded[];

describe('matches systemd 252', () => {
  it.each(RECORDED.map((one) => [JSON.stringify(one.file), one] as const))('%s', (_, { file, value, argv }) => {
    const read = parseEnvironmentFile(file).get('V') ?? null;
    expect(read).toBe(value);
    expect(splitCommandWords(read ?? '')).toEqual(argv);
  });
});

describe('parseEnvironmentFile', () => {
  it.each([
    ['a package’s file', '# flags for the kubelet\nKUBELET_EXTRA_ARGS=\n', { KUBELET_EXTRA_ARGS: '' }],
    ['several variables, the last one wins', 'A=1\n\n;c\nB="2 3"\nA=4\n', { A: '4', B: '2 3' }],
    ['a quoted value over two lines', 'A="1\n2"\nB=3\n', { A: '1\n2', B: '3' }],
    ['no equals sign', 'A\nB=1\n', { B: '1' }],
    ['nothing', '', {}],
    ['invalid names', '1A=1\nA-B=1\n=1\nexport C=1\nD=1\n', { D: '1' }],
  ])('%s', (_, text, expected) => {
    expect(Object.fromEntries(parseEnvironmentFile(text))).toEqual(expected);
  });

  it('terminates for any input', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'A=\\"\'# \n\ra'.split('')) }), (text) => parseEnvironmentFile(text).size >= 0),
    );
  });
});

describe('splitCommandWords', () => {
  it.each([
    ['', []],
    ['  ', []],
    ['a  b\tc\n', ['a', 'b', 'c']],
    ['""', ['']],
    ['a "" b', ['a', '', 'b']],
    [`a'b c'"d e"f`, ['ab cd ef']],
    ['a\\ b', ['a b']],
    [`"a\\"b" 'c\\'d'`, ['a"b', "c'd"]],
    ['"open a', ['open a']],
    ['end\\', ['end']],
    ['a\u00a0b\u2003c', ['a\u00a0b\u2003c']],
  ])('%j', (text, expected) => {
    expect(splitCommandWords(text)).toEqual(expected);
  });

  it('returns the words of a space-separated list', () => {
    const word = fc.stringMatching(/^[^\s"'\\]+$/);
    fc.assert(
      fc.property(fc.array(word), (words) => {
        expect(splitCommandWords(words.join(' '))).toEqual(words);
      }),
    );
  });
});
