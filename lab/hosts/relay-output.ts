import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServerChannel } from 'ssh2';

const POLL_MS = 2;

/**
 * Sends the output of a command through its channel in sequence, each piece only when the client's window has
 * room for all of it: ssh2 1.17 loses or repeats output when stdout and stderr of one channel both wait for
 * the window.
 * @returns a function that waits until all output read so far has been sent; it does not resolve when the
 *   channel was closed meanwhile
 */
export function relayOutput(child: ChildProcess, channel: ServerChannel): () => Promise<void> {
  let isOpen = true;
  channel.once('close', () => {
    isOpen = false;
  });
  let sent = Promise.resolve();
  const send = async (sink: Writable, chunk: Buffer): Promise<void> => {
    // ssh2 has no event for a window that grows.
    while (isOpen && windowOf(channel) < chunk.length) await delay(POLL_MS);
    await new Promise<void>((resolve) => sink.write(chunk, () => resolve()));
  };
  const relay = (source: Readable, sink: Writable): void => {
    source.on('data', (chunk: Buffer) => {
      source.pause();
      sent = sent.then(() => send(sink, chunk)).then(() => void source.resume());
    });
  };
  relay(child.stdout as Readable, channel);
  relay(child.stderr as Readable, channel.stderr);
  return () => sent;
}

/** Number of bytes that the client accepts before the next window adjustment. */
function windowOf({ outgoing }: ServerChannel): number {
  return (outgoing as { readonly window: number }).window;
}
