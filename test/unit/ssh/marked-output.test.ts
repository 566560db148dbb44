import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { markedOutput } from '../../../src/ssh/marked-output.ts';

describe('markedOutput', () => {
  it('finds the marker for any chunks', () => {
    const whole = Buffer.from('Welcome!\nmar mark 12\nout\nmark 13\n\u00ff');
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 8 }), (cuts) => {
        const output = markedOutput('mark');
        const bounds = [0, ...cuts.sort((a, b) => a - b), whole.length];
        const given = bounds.slice(1).map((end, i) => output.push(whole.subarray(bounds[i], end)));
        expect(Buffer.concat(given).toString()).toBe('out\nmark 13\n\u00ff');
        expect(output.content().toString()).toBe('out\nmark 13\n\u00ff');
        expect(output.note).toBe('12');
        expect(output.outputBeforeMarker()).toBe('Welcome!\nmar ');
        expect(output.size).toBe(whole.length);
      }),
    );
  });

  it('has no note before the line of the marker is complete', () => {
    const output = markedOutput('mark');
    output.push(Buffer.from('noise mark'));
    expect([output.note, output.content().length, output.outputBeforeMarker()]).toEqual([null, 0, 'noise mark']);
  });

  it('finds the marker after any amount of noise, and keeps little of the noise', () => {
    const output = markedOutput('mark');
    for (let i = 0; i < 200; i++) output.push(Buffer.from(`line ${i} ${'x'.repeat(10_000)}\n`));
    expect(output.outputBeforeMarker()).toMatch(/^line 0 x+$/);
    expect(output.outputBeforeMarker().length).toBeLessThan(5000);
    output.push(Buffer.from('mark 7\nout'));
    expect([output.note, output.content().toString(), output.size > 2_000_000]).toEqual(['7', 'out', true]);
  });

  it('accepts a megabyte byte by byte, in little memory', () => {
    const output = markedOutput('mark');
    output.push(Buffer.from('mark\n'));
    const before = process.memoryUsage();
    for (let i = 0; i < 1_000_000; i++) output.push(Buffer.of(i & 0xff));
    const after = process.memoryUsage();
    expect(output.content().length).toBe(1_000_000);
    expect(output.content()[513]).toBe(1);
    expect(after.external + after.arrayBuffers - before.external - before.arrayBuffers).toBeLessThan(64_000_000);
  });
});
