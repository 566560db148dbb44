import { describe, expect, it } from 'vitest';
import { AppError, formatProblem, isAppError, type Problem, usageError, withHostInErrors } from '../../src/base/errors.ts';

const position = { file: 'node.yaml', line: 3, column: 5 };

describe('formatProblem', () => {
  it.each<[Problem, string]>([
    [
      {
        code: 'CONFIG_UNKNOWN_FIELD',
        message: 'unknown field',
        hint: 'Did you mean criSocket?',
        position,
        path: 'nodeRegistration.criSockt',
      },
      'node.yaml:3:5 nodeRegistration.criSockt: unknown field. Did you mean criSocket? [CONFIG_UNKNOWN_FIELD]',
    ],
    [{ code: 'X', message: 'it broke', host: 'worker-2', hint: 'Run it again' }, 'worker-2: it broke. Run it again. [X]'],
    [{ code: 'X', message: 'it broke' }, 'it broke [X]'],
    [{ code: 'X', message: 'what now?', hint: 'Wait' }, 'what now? Wait. [X]'],
    [{ code: 'X', message: 'stop!', hint: 'Go!' }, 'stop! Go! [X]'],
    [{ code: 'X', message: 'm', path: 'a.b' }, 'a.b: m [X]'],
    [{ code: 'X', message: 'm', position }, 'node.yaml:3:5: m [X]'],
    [{ code: 'X', message: 'm', position, host: 'h' }, 'h: node.yaml:3:5: m [X]'],
  ])('%j', (problem, expected) => {
    expect(formatProblem(problem)).toBe(expected);
  });
});

describe('AppError', () => {
  it('has one or more problems, each a line of its message', () => {
    expect(new AppError({ code: 'A', message: 'a' }).message).toBe('a [A]');
    const both = new AppError([
      { code: 'A', message: 'a' },
      { code: 'B', message: 'b' },
    ]);
    expect(both.message).toBe('a [A]\nb [B]');
    expect(both.code).toBe('A');
  });

  it('keeps cause, detail and exit code; the default exit code is 1', () => {
    const cause = new Error('inner');
    expect(new AppError({ code: 'A', message: 'a' }, { cause, detail: 'd', exitCode: 5 })).toMatchObject({
      cause,
      detail: 'd',
      exitCode: 5,
    });
    const bare = new AppError({ code: 'A', message: 'a' });
    expect(bare).toMatchObject({ exitCode: 1, detail: undefined, name: 'AppError' });
    expect('cause' in bare).toBe(false);
  });

  it('has a code even without a problem', () => {
    expect(new AppError([]).code).toBe('UNKNOWN');
  });
});

describe('isAppError', () => {
  const error = new AppError({ code: 'A', message: 'a' });

  it.each([
    [error, undefined, true],
    [error, 'A', true],
    [error, 'B', false],
    [new Error('A'), undefined, false],
    [{ code: 'A', problems: [] }, 'A', false],
    [null, undefined, false],
  ])('%s with code %s: %s', (value, code, expected) => {
    expect(isAppError(value, code)).toBe(expected);
  });
});

describe('usageError', () => {
  it.each([
    [usageError('--x needs a value'), '--x needs a value [USAGE]'],
    [usageError('--x needs a value', 'Give one'), '--x needs a value. Give one. [USAGE]'],
  ])('%s', (error, line) => {
    expect(error.message).toBe(line);
    expect(error.exitCode).toBe(2);
  });
});

describe('withHostInErrors', () => {
  it('sets the host of problems without a host, and keeps the rest', () => {
    const failing = (): never => {
      throw new AppError(
        [
          { code: 'A', message: 'a' },
          { code: 'B', message: 'b', host: 'n2' },
        ],
        { exitCode: 2, detail: 'all of it' },
      );
    };
    expect(() => withHostInErrors('n1', failing)).toThrow(
      expect.objectContaining({ message: 'n1: a [A]\nn2: b [B]', exitCode: 2, detail: 'all of it' }),
    );
  });

  it('does not change a result or another error', () => {
    const bug = new TypeError('x');
    const failing = (): never => {
      throw bug;
    };
    expect(withHostInErrors('n1', () => 7)).toBe(7);
    expect(() => withHostInErrors('n1', failing)).toThrow(bug);
  });
});
