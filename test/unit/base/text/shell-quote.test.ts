import { execFileSync, spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoteShell } from '../../../../src/base/text/shell-quote.ts';

const word = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc
      .array(fc.constantFrom("'", '"', '\\', '\n', '$', '`', '$(id)', '*', '~', ' ', '\t', '#', '=', '-', 'é', '😀', ';', '&', '!'), {
        maxLength: 12,
      })
      .map((parts) => parts.join('')),
  )
  .map((text) => text.replaceAll('\0', ''));

describe('quoteShell', () => {
  it('reads back as the same text in /bin/sh', () => {
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 30 }), (words) => {
        const output = execFileSync('/bin/sh', ['-c', `printf '%s\\0' ${words.map(quoteShell).join(' ')}`]);
        expect(output.equals(Buffer.from(words.map((each) => `${each}\0`).join('')))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it.each(['if', '!', '{', 'A=b', 'a b', '', '-x', '~', '*', 'x=1;y'])('makes %j a command name, not syntax', (name) => {
    const { status, stderr } = spawnSync('/bin/sh', ['-c', `PATH=/nonexistent; ${quoteShell(name)}`], { encoding: 'utf8' });
    expect([126, 127], stderr).toContain(status);
  });

  it.each([
    ['/usr/bin/kubelet', '/usr/bin/kubelet'],
    ['--node-ip', '--node-ip'],
    ['--serve=127.0.0.1:80', '--serve=127.0.0.1:80'],
    ['a=b', "'a=b'"],
    ["it's", "'it'\\''s'"],
    ['', "''"],
  ])('quotes %j as %s', (text, quoted) => expect(quoteShell(text)).toBe(quoted));

  it('rejects a NUL', () => expect(() => quoteShell('a\0b')).toThrow(RangeError));
});
