import { describe, expect, it } from 'vitest';
import { joinLines, styled } from '../../../../src/base/text/styled.ts';
import { textOutput, usesColour } from '../../../../src/cli/adapters/text-output.ts';
import { HOSTILE, UNSAFE } from '../../../support/hostile-text.ts';
import { repositoryTexts } from '../../../support/source-files.ts';

function outputOn(terminal: boolean) {
  let written = '';
  const write = (text: string): void => {
    written += text;
  };
  const raw = { stdout: write, stderr: write };
  const output = textOutput(raw, { colours: { stdout: terminal, stderr: terminal }, isTerminal: terminal });
  return { output, written: () => written };
}

/** Escape sequences of the program's own styles. */
const withoutOwnCodes = (text: string): string => text.replace(/\u001b\[(?:0|1|31|32|33|36)m/g, '');

describe('colours', () => {
  const terminal = { isTTY: true };
  it.each([
    [{}, terminal, true],
    [{}, {}, false],
    [{ TERM: 'dumb' }, terminal, false],
    [{ NO_COLOR: '1' }, terminal, false],
    [{ NO_COLOR: '' }, terminal, true],
    [{ FORCE_COLOR: '1' }, {}, true],
    [{ FORCE_COLOR: '0' }, terminal, false],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, {}, true],
  ])('follow the environment %j and the stream %j: %s', (env, stream, expected) => {
    expect(usesColour(env, stream)).toBe(expected);
  });

  it.each(['always', 'never'] as const)('follow --color %s on any stream', (when) => {
    const { output, written } = outputOn(when === 'never');
    output.setColour?.(when);
    output.stderr([styled('red', 'x')]);
    expect(written()).toBe(when === 'always' ? '\u001b[31mx\u001b[0m' : 'x');
  });
});

describe.each([
  ['a terminal', true],
  ['a file', false],
])('output to %s', (_, terminal) => {
  it.each(['stdout', 'stderr'] as const)('escapes every escape sequence of a text: %s', (stream) => {
    const { output, written } = outputOn(terminal);
    output[stream](`a ${HOSTILE}\n\tb\n`);
    expect(written()).toBe(
      'a \\x1b]0;PWNED\\x07\\x1b[2J\\x1b[31m\\x9b1m\\x85\\x7f\\u202e\\u2066\\u200b\\xad\\ufeff\\u061c\\u{e0041}\\u2028\\u2029\n\tb\n',
    );
  });

  it('adds style codes around escaped text, and a host cannot forge a style code', () => {
    const { output, written } = outputOn(terminal);
    output.stdout(joinLines([['+ ', styled('green', `\u001b[0m${HOSTILE}`)], '\u001b[31mred']));
    expect(written().split('\u001b[32m')).toHaveLength(terminal ? 2 : 1);
    expect(withoutOwnCodes(written())).not.toMatch(UNSAFE);
    expect(written()).toMatch(terminal ? /^\+ \u001b\[32m\\x1b\[0m.*\u001b\[0m\n\\x1b\[31mred\n$/ : /^\+ \\x1b\[0m.*\n\\x1b\[31mred\n$/);
  });

  it('keeps the bytes of a document, except on a terminal', () => {
    const { output, written } = outputOn(terminal);
    output.document(`# ${HOSTILE}\n`);
    if (terminal) expect(written()).not.toMatch(UNSAFE);
    else expect(written()).toBe(`# ${HOSTILE}\n`);
  });
});

describe('lines', () => {
  it('are not added by a newline in a value', () => {
    expect(joinLines(['a\nb\tc', 'd'])).toBe('a\\x0ab\tc\nd\n');
    const { output, written } = outputOn(false);
    output.stdout(joinLines([['a\n', styled('red', 'b\n')], 'c']));
    expect(written()).toBe('a\\x0ab\\x0a\nc\n');
  });
});

it('is the only file with terminal escape sequences', () => {
  const texts = [...repositoryTexts()].filter(([path, text]) => path.startsWith('src/') && /\\u001b|\\x1b\[|\\e\[|\\033/i.test(text));
  expect(texts.map(([path]) => path)).toEqual(['src/base/text/styled.ts']);
});
