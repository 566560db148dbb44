import { EventEmitter } from 'node:events';
import ssh2 from 'ssh2';
import { describe, expect, it } from 'vitest';
import { sessionChannels, startCommand } from '../../../../src/adapters/ssh/session-channels.ts';

interface Opened {
  readonly outgoing: { readonly id: number; state: string };
  readonly _callbacks: ((failed: boolean) => void)[];
  end(stdin: string): void;
}

/** A client whose host opens `max` sessions and keeps account of what it was asked. */
function fakeClient(max = 100): { client: ssh2.Client; asked: string[]; channels: Opened[] } {
  const asked: string[] = [];
  const channels: Opened[] = [];
  const waiting: ((error: Error | undefined, channel?: Opened) => void)[] = [];
  const client = {
    _sock: { writable: true },
    _chanMgr: { add: (onOpen: (error: Error | undefined, channel?: Opened) => void) => waiting.push(onOpen) - 1 },
    _protocol: {
      session: (id: number) => {
        asked.push('open');
        queueMicrotask(() => {
          if (channels.length >= max) return waiting[id]?.(new Error('open failed'));
          const channel = {
            outgoing: { id, state: 'open' },
            _callbacks: [],
            once: () => undefined,
            end: (stdin: string) => asked.push(`stdin ${stdin}`),
          };
          channels.push(channel);
          waiting[id]?.(undefined, channel);
        });
      },
      exec: (id: number, command: string) => asked.push(`exec ${id} ${command}`),
    },
  };
  return { client: client as unknown as ssh2.Client, asked, channels };
}

describe('sessionChannels', () => {
  it('opens nothing before the first command, then one ahead', async () => {
    const { client, asked } = fakeClient();
    const channels = sessionChannels(client);
    expect(asked).toEqual([]);
    await channels.open(true);
    expect(asked).toEqual(['open', 'open']);
    await channels.open(true);
    expect(asked).toEqual(['open', 'open', 'open']);
  });

  it('opens none ahead once one was refused', async () => {
    const { client, asked } = fakeClient(1);
    const channels = sessionChannels(client);
    await channels.open(true);
    await expect(channels.open(true)).rejects.toThrow('open failed');
    const before = asked.length;
    await expect(channels.open(true)).rejects.toThrow('open failed');
    expect(asked.length).toBe(before + 1);
  });

  it('opens none ahead before its own: where the host allows one session, it would be the wrong one', async () => {
    const { client, asked } = fakeClient();
    const first = sessionChannels(client).open(true);
    expect(asked).toEqual(['open']);
    await first;
    expect(asked).toEqual(['open', 'open']);
  });

  it('passes over one that the host has closed in the meantime', async () => {
    const { client, channels: opened } = fakeClient();
    const channels = sessionChannels(client);
    await channels.open(true);
    await new Promise((resolve) => setImmediate(resolve));
    const ahead = opened[1];
    if (ahead) ahead.outgoing.state = 'closed';
    const channel = await channels.open(true);
    expect(channel).not.toBe(ahead);
    expect(opened).toContain(channel);
  });

  it('fails on a connection that is gone', async () => {
    await expect(sessionChannels(new ssh2.Client()).open(true)).rejects.toThrow('Not connected');
  });
});

describe('startCommand', () => {
  it.each([
    [false, null],
    [true, new Error('Unable to exec')],
  ])('sends request and stdin together, and hears the answer: failed %s', async (failed, outcome) => {
    const { client, asked, channels } = fakeClient();
    const channel = await sessionChannels(client).open(true);
    const started = startCommand(client, channel, { command: 'true', stdin: 'in', ends: true });
    expect(asked.slice(-2)).toEqual(['exec 0 true', 'stdin in']);
    channels[0]?._callbacks[0]?.(failed);
    expect(await started).toEqual(outcome);
  });
});

describe('the end of a command', () => {
  it('is not closed before the host has said how it ended', async () => {
    const asked: string[] = [];
    const channel = Object.assign(new EventEmitter(), {
      outgoing: { id: 0, state: 'open' },
      _callbacks: [],
      writableEnded: true,
      end: () => asked.push('end'),
      close: () => asked.push('close'),
      destroy: () => undefined,
    }) as unknown as ssh2.ClientChannel;
    void startCommand(fakeClient().client, channel, { command: 'true', stdin: '', ends: true });
    channel.destroy();
    expect(asked).toEqual(['end']);
    channel.emit('exit', 0);
    expect(asked).toEqual(['end', 'close']);
    channel.destroy();
    expect(asked).toEqual(['end', 'close', 'close']);
  });
});

describe('ssh2', () => {
  it('has what sessions need beyond its public interface', () => {
    const names = Object.keys(new ssh2.Client());
    expect(names).toEqual(expect.arrayContaining(['_chanMgr', '_protocol', '_sock']));
  });
});
