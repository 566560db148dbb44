import { describe, expect, it } from 'vitest';
import { cacheFacts } from '../../../src/host/cached-host.ts';
import { fileFacts } from '../../../src/host/facts/file-facts.ts';
import type { Host } from '../../../src/host/host.ts';
import { observe } from '../../../src/host/observe.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { fakeHost } from '../../support/fake-host.ts';

function world(expected: readonly string[] = []) {
  const host = fakeHost({ files: { '/a': 'a', '/b': 'b', '/c': 'c' } });
  const clock = fakeClock();
  const held = cacheFacts(host, clock, Object.values(fileFacts(expected).queries));
  const read = async (...paths: string[]) => [...(await observe(held, fileFacts(paths))).values()].map((file) => file?.content ?? null);
  return { host, clock, held, read };
}

const write = (path: string, content: string) => ({ kind: 'write-file', path, mode: 0o644, owner: 'root:root', content }) as const;

describe('a host whose answers are held', () => {
  it('is asked once for what several want to know', async () => {
    const { host, read } = world();
    expect(await read('/a', '/b')).toEqual(['a', 'b']);
    expect(await read('/b', '/a')).toEqual(['b', 'a']);
    expect(await read('/b', '/c', '/nothing')).toEqual(['b', 'c', null]);
    expect(host.roundTrips).toBe(2);
  });

  it('is asked with the first question for what is known to come', async () => {
    const { host, read } = world(['/b', '/c', '/nothing']);
    expect(await read('/a')).toEqual(['a']);
    expect(await read('/b', '/nothing')).toEqual(['b', null]);
    expect(host.roundTrips).toBe(1);
  });

  it('is queried again by a wait, and by the phase inspected after it', async () => {
    const { host, held, read } = world();
    await read('/a');
    held.release();
    await host.perform([write('/a', 'later')]);
    expect(await read('/a')).toEqual(['later']);
    await host.perform([write('/a', 'last')]);
    held.hold('p');
    expect(await read('/a')).toEqual(['last']);
  });

  it('keeps facts while a run is planned, however long that takes', async () => {
    const { host, clock, held, read } = world();
    held.hold('p');
    await read('/a');
    clock.advance(60_000);
    held.hold('q');
    await read('/a', '/b');
    expect(host.queries.map((question) => 'path' in question && question.path)).toEqual(['/a', '/b']);
  });

  it('is queried again after an operation for what the phase queried before, in one round trip', async () => {
    const { host, held, read } = world(['/expected']);
    await read('/c');
    held.hold('p');
    await read('/a');
    await read('/b');
    held.hold('q');
    await read('/c');
    await held.perform([write('/a', 'new')]);
    held.release();
    const [trips, queries] = [host.roundTrips, host.queries.length];
    held.hold('p');
    expect(await read('/a')).toEqual(['new']);
    expect(await read('/b')).toEqual(['b']);
    expect([host.roundTrips, host.queries.length]).toEqual([trips + 1, queries + 2]);
  });

  it('is queried in one round trip for a group of phases', async () => {
    const { host, held, read } = world();
    for (const [phase, path] of [
      ['p', '/a'],
      ['q', '/b'],
      ['r', '/c'],
    ] as const) {
      held.hold(phase);
      await read(path);
    }
    await held.perform([write('/a', 'new'), write('/b', 'newer')]);
    held.release();
    const [trips, queries] = [host.roundTrips, host.queries.length];
    held.hold('p', ['p', 'q']);
    expect(await read('/a')).toEqual(['new']);
    held.release();
    held.hold('q', ['p', 'q']);
    expect(await read('/b')).toEqual(['newer']);
    expect([host.roundTrips, host.queries.length]).toEqual([trips + 1, queries + 2]);
  });

  it('is queried again two seconds later, once the run is applied', async () => {
    const { host, clock, held, read } = world();
    await read('/a');
    held.release();
    await host.perform([write('/a', 'by hand')]);
    held.hold('p');
    expect(await read('/a')).toEqual(['a']);
    held.release();
    clock.advance(2_001);
    held.hold('p');
    expect(await read('/a')).toEqual(['by hand']);
  });

  it('holds nothing of a question that could not be answered', async () => {
    const host = fakeHost({ files: { '/a': 'a' } });
    let fails = true;
    const flaky: Host = { ...host, query: (queries) => (fails ? Promise.reject(new Error('gone')) : host.query(queries)) };
    const held = cacheFacts(flaky, fakeClock());
    await expect(observe(held, fileFacts(['/a']))).rejects.toThrow('gone');
    fails = false;
    expect((await observe(held, fileFacts(['/a']))).get('/a')?.content).toBe('a');
  });
});
