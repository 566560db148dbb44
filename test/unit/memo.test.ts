import { describe, expect, it } from 'vitest';
import { identityOf, Memo } from '../../src/base/memo.ts';

describe('Memo', () => {
  it('computes a value once per object and key', () => {
    const memo = new Memo<object, number>();
    const [a, b] = [{}, {}];
    let count = 0;
    const get = (object: object, key: string): number => memo.get(object, key, () => ++count);
    expect([get(a, 'x'), get(a, 'x'), get(a, 'y'), get(b, 'x'), get(a, 'x')]).toEqual([1, 1, 2, 3, 1]);
  });

  it('computes again after an error', () => {
    const memo = new Memo<object, number>();
    const object = {};
    const fail = (): number => {
      throw new Error('no');
    };
    expect(() => memo.get(object, '', fail)).toThrow('no');
    expect(memo.get(object, '', () => 7)).toBe(7);
  });

  it('limits its size', () => {
    const memo = new Memo<object, string>();
    const object = {};
    for (let i = 0; i < 5_000; i++) memo.get(object, String(i), () => 'x');
    let again = 0;
    for (let i = 0; i < 5_000; i++) memo.get(object, String(i), () => String(++again));
    expect(again).toBeGreaterThan(3_000);
  });

  it('distinguishes equal objects', () => {
    const a = { x: 1 };
    expect(identityOf(a)).toBe(identityOf(a));
    expect(identityOf(a)).not.toBe(identityOf({ x: 1 }));
  });
});
