import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { onAbort, untilAborted } from '../../../src/base/abort.ts';

describe('untilAborted', () => {
  it.each([
    ['resolves with the value', () => Promise.resolve(1), 1],
    ['rejects with the error', () => Promise.reject(new Error('mine')), 'mine'],
  ])('%s and leaves no listener on the signal', async (_, make, expected) => {
    const { signal } = new AbortController();
    const outcome = await untilAborted<number>(make(), signal).catch((error: Error) => error.message);
    expect(outcome).toBe(expected);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('rejects with the reason, immediately or later', async () => {
    const controller = new AbortController();
    const waiting = untilAborted(new Promise(() => undefined), controller.signal);
    controller.abort('enough');
    await expect(waiting).rejects.toBe('enough');
    await expect(untilAborted(new Promise(() => undefined), controller.signal)).rejects.toBe('enough');
  });
});

describe('onAbort', () => {
  it('does not call a removed listener', () => {
    const controller = new AbortController();
    const received: unknown[] = [];
    onAbort(controller.signal, (reason) => received.push(reason));
    onAbort(controller.signal, (reason) => received.push(`${reason} again`))();
    controller.abort('stop');
    expect(received).toEqual(['stop']);
  });
});
