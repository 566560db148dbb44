import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { systemErrorText } from '../../../src/base/system-error.ts';

describe('systemErrorText', () => {
  it('replaces the code and the path of Node.js by words', async () => {
    const missing = await readFile('/nowhere/at/all').catch((error: unknown) => error);
    const directory = await writeFile(tmpdir(), '').catch((error: unknown) => error);
    expect(systemErrorText(missing)).toBe('no such file or directory');
    expect(systemErrorText(directory)).toBe('the path is a directory');
  });

  it('removes only the code of an unusual error', () => {
    const error = Object.assign(new Error("EBUSY: resource busy or locked, open '/a'"), { code: 'EBUSY' });
    expect(systemErrorText(error)).toBe("resource busy or locked, open '/a'");
  });

  it('returns the message of any other error', () => {
    expect(systemErrorText(new Error('no key'))).toBe('no key');
    expect(systemErrorText('text')).toBe('text');
  });
});
