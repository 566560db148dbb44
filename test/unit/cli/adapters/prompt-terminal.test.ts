import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { askSecretOnTerminal } from '../../../../src/cli/adapters/prompt-terminal.ts';

function terminal({ isTTY = true } = {}) {
  const rawModes: boolean[] = [];
  const stdin = Object.assign(new PassThrough(), { isTTY, setRawMode: (on: boolean) => void rawModes.push(on) });
  const stderr = Object.assign(new PassThrough(), { isTTY });
  // From Node.js 26 on, read() returns one chunk.
  const shown = (): string => {
    const chunks: string[] = [];
    for (let chunk = stderr.read(); chunk !== null; chunk = stderr.read()) chunks.push(String(chunk));
    return chunks.join('');
  };
  return { stdin, stderr, rawModes, shown };
}

describe('a secret typed on a terminal', () => {
  it.each([
    ['a password', 'se cret\r', 'se cret'],
    ['a corrected password', 'sex\x7fcret\n', 'secret'],
    ['a password with characters beyond ASCII', 'pässwörd€\r', 'pässwörd€'],
    ['an empty password', '\r', ''],
    ['the end of input', '\x04', ''],
  ])('is read without showing it: %s', async (_, typed, secret) => {
    const { stdin, stderr, rawModes, shown } = terminal();
    const answer = askSecretOnTerminal('SSH password: ', stdin, stderr);
    stdin.write(typed);
    expect(await answer).toBe(secret);
    expect(shown()).toBe('SSH password: \n');
    expect(rawModes).toEqual([true, false]);
  });

  it('ends with the exit code of Ctrl-C and restores the terminal', async () => {
    const { stdin, stderr, rawModes } = terminal();
    const answer = askSecretOnTerminal('SSH password: ', stdin, stderr);
    stdin.write('sec\x03');
    await expect(answer).rejects.toMatchObject({ exitCode: 130, code: 'INTERRUPTED' });
    expect(rawModes).toEqual([true, false]);
  });

  it('is not requested without a terminal', async () => {
    const { stdin, stderr, shown } = terminal({ isTTY: false });
    expect(await askSecretOnTerminal('SSH password: ', stdin, stderr)).toBeNull();
    expect(shown()).toBe('');
  });
});
