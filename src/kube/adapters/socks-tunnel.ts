import { connect, type Socket } from 'node:net';
import { SocksClient } from 'socks';
import { onAbort } from '../../base/abort.ts';
import type { ProxyRefusal } from '../proxy.ts';
import { PROXY_ANSWER_MS, ProxyError } from './network-failure.ts';

export async function openSocksTunnel(proxy: URL, host: string, port: number, signal?: AbortSignal): Promise<Socket> {
  const socket = await dial(proxy, signal);
  const forget = onAbort(signal, () => socket.destroy());
  try {
    await SocksClient.createConnection({
      command: 'connect',
      destination: { host, port },
      existing_socket: socket,
      proxy: { ...placeOf(proxy), type: 5, userId: decodeURIComponent(proxy.username), password: decodeURIComponent(proxy.password) },
      timeout: PROXY_ANSWER_MS,
    });
    return socket;
  } catch (error) {
    socket.destroy();
    throw new ProxyError(proxy, refusalOf(error), error);
  } finally {
    forget();
  }
}

function dial(proxy: URL, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...placeOf(proxy), signal });
    const fail = (error: Error): void => reject(new ProxyError(proxy, null, error));
    socket.once('error', fail);
    socket.setTimeout(PROXY_ANSWER_MS, () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    socket.once('connect', () => {
      socket.setTimeout(0);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

function placeOf({ hostname, port }: URL): { readonly host: string; readonly port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 1080 : Number(port) };
}

/** The library reports the proxy's response only in its error message; null: no response. */
function refusalOf(error: unknown): ProxyRefusal | null {
  const { message } = error as Error;
  const answer = /rejected connection - (\w{1,64})/.exec(message)?.[1];
  if (answer !== undefined) return { why: `(${answer})`, kind: answer === 'NotAllowed' ? 'ban' : 'failure' };
  if (/authentication|auth type/i.test(message)) return { why: '(authentication failed)', kind: 'login' };
  return /timed out|closed/i.test(message) ? null : { why: '(not a SOCKS 5 proxy)', kind: 'ban' };
}
