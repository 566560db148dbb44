import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { onAbort } from '../../../base/abort.ts';
import { printable } from '../../../base/text/printable.ts';
import type { DialAddress } from '../../../kube/dial.ts';
import { controlSocketArguments } from '../../openssh-arguments.ts';
import type { Master } from './master.ts';

/**
 * Opens a TCP connection from the host through a control socket: `ssh -W`, whose stdin and stdout are the
 * connection. A failure of the host to connect arrives with the first use, as the stream's error.
 */
export function dialThrough(master: Master, address: DialAddress, signal?: AbortSignal): Duplex {
  signal?.throwIfAborted();
  const to = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
  const child = spawn('ssh', [...controlSocketArguments(master.socket), '-W', to, 'host'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  let reported = '';
  let isReceived = false;
  child.stderr.on('data', (chunk: Buffer) => {
    reported = `${reported}${chunk.toString()}`.slice(-MAX_MESSAGE);
  });
  const stream = new Duplex({
    read: () => void child.stdout.resume(),
    write: (chunk: Buffer, _, done) => child.stdin.write(chunk, () => done()),
    final: (done) => child.stdin.end(() => done()),
    destroy: (error, done) => {
      child.kill('SIGTERM');
      done(error);
    },
  });
  child.stdout.on('data', (chunk: Buffer) => {
    isReceived = true;
    if (!stream.push(chunk)) child.stdout.pause();
  });
  // The destroyed stream reports the failure.
  child.stdin.on('error', () => undefined);
  const forget = onAbort(signal, (reason) => stream.destroy(reason instanceof Error ? reason : new Error('aborted')));
  child.once('error', (error) => stream.destroy(error));
  // The end of stdout alone does not show whether the connection was opened.
  child.once('close', (code) => {
    forget();
    if (!isReceived && code !== 0) stream.destroy(failure(reported));
    else stream.push(null);
  });
  return stream;
}

const MAX_MESSAGE = 2_000;

/** The control socket does not distinguish a refusal of the destination from one of the host. */
function failure(reported: string): Error {
  return Object.assign(new Error(printable(reported.trim().split('\n')[0] ?? '', 300) || 'ssh exited'), { code: 'ECONNREFUSED' });
}
