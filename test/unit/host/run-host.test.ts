import { describe, expect, it } from 'vitest';
import type { Host } from '../../../src/host/access/host.ts';
import { observe } from '../../../src/host/access/observe.ts';
import { applyHostChanges } from '../../../src/host/apply.ts';
import { combineFacts } from '../../../src/host/facts/fact.ts';
import { fileFacts } from '../../../src/host/facts/file-facts.ts';
import { initSystem } from '../../../src/host/facts/init-system.ts';
import { runHost } from '../../../src/host/run-host.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

function world(expected: readonly string[] = []) {
  const host = fakeHost({ files: { '/a': 'a', '/b': 'b', '/c': 'c' } });
  const clock = fakeClock();
  const cached = runHost(host, { clock }, fileFacts(expected).queries);
  const read = async (...paths: string[]) => [...(await observe(cached, fileFacts(paths))).values()].map((file) => file?.content ?? null);
  return { host, clock, cached, read };
}

const write = (path: string, content: string) => ({ kind: 'write-file', path, mode: 0o644, owner: 'root:root', content }) as const;

describe('a host whose facts are cached', () => {
  it('is queried once for facts that several callers need', async () => {
    const { host, read } = world();
    expect(await read('/a', '/b')).toEqual(['a', 'b']);
    expect(await read('/b', '/a')).toEqual(['b', 'a']);
    expect(await read('/b', '/c', '/nothing')).toEqual(['b', 'c', null]);
    expect(host.roundTrips).toBe(2);
  });

  it('includes the expected facts in its first query', async () => {
    const { host, read } = world(['/b', '/c', '/nothing']);
    expect(await read('/a')).toEqual(['a']);
    expect(await read('/b', '/nothing')).toEqual(['b', null]);
    expect(host.roundTrips).toBe(1);
  });

  it('is queried again by a wait, whose last facts the next phase uses for two seconds', async () => {
    const { host, clock, cached, read } = world();
    await read('/a');
    cached.bypassFactCache();
    await host.perform([write('/a', 'later')]);
    expect(await read('/a')).toEqual(['later']);
    await host.perform([write('/a', 'last')]);
    clock.advance(1_900);
    cached.cacheFacts('p');
    expect(await read('/a')).toEqual(['later']);
    cached.bypassFactCache();
    clock.advance(2_100);
    cached.cacheFacts('p');
    expect(await read('/a')).toEqual(['last']);
  });

  it('is queried once in a run for lasting facts, also by waits and after operations', async () => {
    const { host, cached } = world();
    expect(await observe(cached, initSystem)).toBe('systemd');
    await cached.perform([write('/a', 'other')]);
    cached.bypassFactCache();
    const both = combineFacts({ init: initSystem, files: fileFacts(['/a']) });
    expect(await observe(cached, both)).toMatchObject({ init: 'systemd' });
    cached.cacheFacts('p');
    expect((await observe(cached, both)).files.get('/a')).toMatchObject({ content: 'other' });
    expect(host.queries.filter((query) => query.kind === 'list')).toHaveLength(1);
  });

  it('keeps facts while a run is planned, regardless of the duration', async () => {
    const { host, clock, cached, read } = world();
    cached.cacheFacts('p');
    await read('/a');
    clock.advance(60_000);
    cached.cacheFacts('q');
    await read('/a', '/b');
    expect(host.queries.map((query) => 'path' in query && query.path)).toEqual(['/a', '/b']);
  });

  it('is queried again after an operation for the facts that the phase queried before, in one round trip', async () => {
    const { host, cached, read } = world(['/expected']);
    await read('/c');
    cached.cacheFacts('p');
    await read('/a');
    await read('/b');
    cached.cacheFacts('q');
    await read('/c');
    await cached.perform([write('/a', 'new')]);
    cached.bypassFactCache();
    const [trips, queries] = [host.roundTrips, host.queries.length];
    cached.cacheFacts('p');
    expect(await read('/a')).toEqual(['new']);
    expect(await read('/b')).toEqual(['b']);
    expect([host.roundTrips, host.queries.length]).toEqual([trips + 1, queries + 2]);
  });

  it('is queried in one round trip for a group of phases', async () => {
    const { host, cached, read } = world();
    for (const [phase, path] of [
      ['p', '/a'],
      ['q', '/b'],
      ['r', '/c'],
    ] as const) {
      cached.cacheFacts(phase);
      await read(path);
    }
    await cached.perform([write('/a', 'new'), write('/b', 'newer')]);
    cached.bypassFactCache();
    const [trips, queries] = [host.roundTrips, host.queries.length];
    cached.cacheFacts('p', ['p', 'q']);
    expect(await read('/a')).toEqual(['new']);
    cached.bypassFactCache();
    cached.cacheFacts('q', ['p', 'q']);
    expect(await read('/b')).toEqual(['newer']);
    expect([host.roundTrips, host.queries.length]).toEqual([trips + 1, queries + 2]);
  });

  it('is queried again two seconds later while the run is applied', async () => {
    const { host, clock, cached, read } = world();
    await read('/a');
    cached.bypassFactCache();
    await host.perform([write('/a', 'by hand')]);
    cached.cacheFacts('p');
    expect(await read('/a')).toEqual(['a']);
    cached.bypassFactCache();
    clock.advance(2_001);
    cached.cacheFacts('p');
    expect(await read('/a')).toEqual(['by hand']);
  });

  it('caches nothing of a query that failed', async () => {
    const host = fakeHost({ files: { '/a': 'a' } });
    let fails = true;
    const flaky: Host = { ...host, query: (queries) => (fails ? Promise.reject(new Error('gone')) : host.query(queries)) };
    const cached = runHost(flaky, { clock: fakeClock() });
    await expect(observe(cached, fileFacts(['/a']))).rejects.toThrow('gone');
    fails = false;
    expect((await observe(cached, fileFacts(['/a']))).get('/a')?.content).toBe('a');
  });
});

describe('the lock of a host', () => {
  const owner = { id: 'run-1', name: 'alice@laptop', processId: 1, machine: 'm' };
  const locked = () => {
    const host = fakeHost();
    return { host, run: runHost(host, { clock: fakeClock(), writing: { owner, breakLock: false, isGone: () => false, confirm: null } }) };
  };
  const kinds = ({ performed }: ReturnType<typeof fakeHost>) => performed.map(({ kind }) => kind);

  it('is released by the program of the last operations', async () => {
    const { host, run } = locked();
    const done: number[] = [];
    await run.perform([write('/a', '1')], { onDone: (index) => done.push(index) });
    await run.perform([write('/a', '2'), write('/b', '2')], { isLast: true, onDone: (index) => done.push(index) });
    await run.end();
    expect(kinds(host)).toEqual(['take-lock', 'write-file', 'take-lock', 'write-file', 'write-file', 'release-lock']);
    expect(done).toEqual([0, 0, 1]);
    expect([host.roundTrips, host.commits.lock]).toEqual([2, null]);
  });

  it('is kept while the files of failed last operations are restored, and released at the end', async () => {
    const { host, run } = locked();
    const created = { ...write('/a', '1'), action: 'create', before: null, reason: 'a test' } as const;
    host.failAt(2);
    const failure = applyHostChanges(run, [created, { ...created, path: '/b' }], {
      reporter: recordingReporter(),
      phase: 'p',
      isLast: true,
    });
    await expect(failure).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.commits.lock).toMatchObject({ id: 'run-1' });
    await run.end();
    expect(kinds(host)).toEqual(['take-lock', 'write-file', 'take-lock', 'remove-file', 'release-lock']);
    expect([host.files.has('/a'), host.commits.lock]).toEqual([false, null]);
  });
});
