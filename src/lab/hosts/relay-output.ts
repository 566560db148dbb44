import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';

/**
 * Sends what a command prints through its channel, one piece after the other. ssh2 keeps what waits for the client's window by stream, but goes on with one
 * of them only, and does not forget it: two that wait at a time, or in turn, would lose or repeat output.
 * @returns what waits until all that was read so far has been sent; for ever where the channel was closed meanwhile
 */
export function relayOutput(child: ChildProcess, channel: ServerChannel): () => Promise<void> {
  let sent = Promise.resolve();
  const relay = (source: Readable, sink: Writable): void => {
    source.on('data', (chunk: Buffer) => {
      source.pause();
      sent = sent.then(() => new Promise<void>((resolve) => sink.write(chunk, () => resolve())));
      sent = sent.then(() => {
        Object.assign(channel, NOTHING_WAITS);
        source.resume();
      });
    });
  };
  relay(child.stdout as Readable, channel);
  relay(child.stderr as Readable, channel.stderr);
  return () => sent;
}

const NOTHING_WAITS = { _chunk: undefined, _chunkcb: undefined, _chunkErr: undefined, _chunkcbErr: undefined };
