import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { onAbort } from '../../../base/abort.ts';
import { printable } from '../../../base/text/printable.ts';
import type { DialAddress } from '../../../kube/dial.ts';
import { throughSocket } from '../../openssh-arguments.ts';
import type { Master } from './master.ts';

/**
 * Opens a TCP connection from the host through a control socket: `ssh -W`, whose input and output are the connection. What ssh says when the host cannot
 * connect comes with the first use, as the stream's error.
 */
export function dialThrough(master: Master, address: DialAddress, signal?: AbortSignal): Duplex {
  signal?.throwIfAborted();
  const to = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
  const child = spawn('ssh', [...throughSocket(master.socket), '-W', to, 'host'], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
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
  // What it says about a failure is told by the stream that is destroyed for it.
  child.stdin.on('error', () => undefined);
  const forget = onAbort(signal, (reason) => stream.destroy(reason instanceof Error ? reason : new Error('aborted')));
  child.once('error', (error) => stream.destroy(error));
  // The end of its output alone does not tell whether there was a connection.
  child.once('close', (code) => {
    forget();
    if (!isReceived && code !== 0) stream.destroy(failure(reported));
    else stream.push(null);
  });
  return stream;
}

const MAX_MESSAGE = 2_000;

/** The control socket does not tell who refused: what the host would connect to, or the host itself. */
function failure(reported: string): Error {
  return Object.assign(new Error(printable(reported.trim().split('\n')[0] ?? '', 300) || 'ssh ended'), { code: 'ECONNREFUSED' });
}
