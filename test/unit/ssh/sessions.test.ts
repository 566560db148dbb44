import { describe, expect, it } from 'vitest';
import { sessions } from '../../../src/ssh/sessions.ts';

/** Lets pending promises settle. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('sessions', () => {
  it('grants sessions in order, up to the limit', async () => {
    const places = sessions(2);
    const got: number[] = [];
    for (const i of [1, 2, 3, 4]) void places.acquire(undefined).then(() => got.push(i));
    await settle();
    expect(got).toEqual([1, 2]);
    places.release();
    await settle();
    expect(got).toEqual([1, 2, 3]);
  });

  it('lowers the limit after the host rejected one, to one session fewer than the host allows', async () => {
    const places = sessions(4);
    for (let i = 0; i < 4; i++) await places.acquire(undefined);
    // The host allows three. One of them remains free for stopping a command.
    expect(places.shrink()).toBe(true);
    places.release();
    places.release();
    let isGiven = false;
    void places.acquire(undefined).then(() => {
      isGiven = true;
    });
    await settle();
    expect(isGiven).toBe(false);
    places.release();
    await settle();
    expect(isGiven).toBe(true);
  });

  it('does not wait when no session would be released', async () => {
    const places = sessions(3);
    await places.acquire(undefined);
    expect(places.shrink()).toBe(false);
  });

  it('skips aborted requests', async () => {
    const places = sessions(1);
    const controller = new AbortController();
    await places.acquire(undefined);
    const waiting = places.acquire(controller.signal);
    const next = places.acquire(undefined);
    controller.abort('gone');
    await expect(waiting).rejects.toBe('gone');
    places.release();
    await expect(next).resolves.toBeUndefined();
    await expect(places.acquire(controller.signal)).rejects.toBe('gone');
  });
});
