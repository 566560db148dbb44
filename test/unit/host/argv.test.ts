import { describe, expect, it } from 'vitest';
import { checkArgv, MAX_ARGUMENT_BYTES } from '../../../src/host/argv.ts';

describe('checkArgv', () => {
  it('returns the program and its arguments', () => expect(checkArgv(['sh', '-c', ''], 'n1')).toEqual(['sh', '-c', '']));

  it.each([[[]], [['']], [['sh', 'a\0b']]])('throws a RangeError for the invalid argv %j', (argv) =>
    expect(() => checkArgv(argv, 'n1')).toThrow(RangeError),
  );

  it('accepts an argument of the maximum length, counted in bytes', () => {
    expect(checkArgv(['sh', 'x'.repeat(MAX_ARGUMENT_BYTES)], 'n1')).toHaveLength(2);
    expect(() => checkArgv(['sh', 'é'.repeat(MAX_ARGUMENT_BYTES / 2 + 1)], 'n1')).toThrow(
      'n1: cannot start sh: an argument has 131072 bytes; the Linux limit is 131071. Pass the value on stdin or in a file. [HOST_COMMAND_TOO_LONG]',
    );
  });
});
