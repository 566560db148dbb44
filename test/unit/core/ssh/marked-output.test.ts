import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { markedOutput } from '../../../../src/core/ssh/marked-output.ts';

describe('markedOutput', () => {
  it('finds the mark however the bytes are cut', () => {
    const whole = Buffer.from('Welcome!\nmar mark 12\nout\nmark 13\n\u00ff');
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 8 }), (cuts) => {
        const output = markedOutput('mark');
        const bounds = [0, ...cuts.sort((a, b) => a - b), whole.length];
        const given = bounds.slice(1).map((end, i) => output.push(whole.subarray(bounds[i], end)));
        expect(Buffer.concat(given).toString()).toBe('out\nmark 13\n\u00ff');
        expect(output.content().toString()).toBe('out\nmark 13\n\u00ff');
        expect(output.note).toBe('12');
        expect(output.noise()).toBe('Welcome!\nmar ');
        expect(output.size).toBe(whole.length);
      }),
    );
  });

  it('has no note before the line of the mark is complete', () => {
    const output = markedOutput('mark');
    output.push(Buffer.from('noise mark'));
    expect([output.note, output.content().length, output.noise()]).toEqual([null, 0, 'noise mark']);
  });
});
