import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type ssh2 from 'ssh2';
import { onAbort } from '../../core/abort.ts';
import type { AppError } from '../../core/errors.ts';
import { hostForwardRefused, hostUnreachable, throughJumpHost } from '../../core/problems/host.ts';
import type { SshTarget } from '../../core/ssh/target.ts';
import { printable } from '../../core/text/printable.ts';

/** `host:port` for people, with brackets around an IPv6 address. */
export function addressOf({ hostName, port }: SshTarget): string {
  return hostName.includes(':') ? `[${hostName}]:${port}` : `${hostName}:${port}`;
}

/**
 * Connects by TCP, without Nagle's delay.
 * @throws AppError HOST_UNREACHABLE; the signal's reason
 */
export function openSocket(target: SshTarget, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const { hostName, port, addressFamily, bindAddress, connectTimeoutMs } = target;
    const socket = connect({
      host: hostName,
      port,
      family: { any: 0, inet: 4, inet6: 6 }[addressFamily],
      // Node gives each address of a name a quarter of a second before it turns to the next, too little for a distant host.
      autoSelectFamilyAttemptTimeout: Math.max(250, Math.floor(connectTimeoutMs / 4)),
      noDelay: true,
      ...(bindAddress === null ? {} : { localAddress: bindAddress }),
    });
    const forget = onAbort(signal, (reason) => {
      socket.destroy();
      reject(reason);
    });
    socket.once('connect', () => {
      forget();
      gatherWrites(socket);
      resolve(socket);
    });
    socket.once('error', (error) => {
      forget();
      reject(hostUnreachable({ host: target.name, address: addressOf(target), why: socketFailure(error), cause: error }));
    });
  });
}

/** The SSH client writes each packet in pieces. What it writes in one go leaves in one go: fewer system calls here, and the host wakes up once. */
function gatherWrites(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let isGathering = false;
  socket.write = (...args: unknown[]): boolean => {
    if (!isGathering) {
      isGathering = true;
      socket.cork();
      process.nextTick(() => {
        isGathering = false;
        socket.uncork();
      });
    }
    return write(...args);
  };
}

const SOCKET_FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to its network',
  ENOTFOUND: 'the name does not resolve',
  EAI_AGAIN: 'the name server does not answer',
  ETIMEDOUT: 'no answer',
  EADDRNOTAVAIL: 'the local address to connect from is not available',
};

/** Why a socket failed, as a clause. */
export function socketFailure(error: Error): string {
  // With several addresses Node gives a bundle of errors; any of them tells more than the bundle.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && 'code' in first ? String(first.code) : '';
  return SOCKET_FAILURES[code] ?? (code || error.message);
}

/** A connection to a jump host, as far as it is needed here. */
interface Via {
  readonly client: ssh2.Client;
  readonly lost: AppError | null;
}

/**
 * Connects through a jump host.
 * @throws AppError HOST_UNREACHABLE when it refuses or cannot, HOST_CONNECTION_LOST when it is gone; the signal's reason
 */
export function openForward(target: SshTarget, via: Via, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    if (via.lost !== null) throw throughJumpHost(via.lost, target.name);
    const forget = onAbort(signal, reject);
    const onOpen: ssh2.ClientCallback = (error, channel) => {
      forget();
      if (error) reject(forwardRefused(target, error));
      else if (signal.aborted) channel.destroy();
      else resolve(channel);
    };
    try {
      via.client.forwardOut('127.0.0.1', 0, target.hostName, target.port, onOpen);
    } catch (error) {
      forget();
      reject(forwardRefused(target, error instanceof Error ? error : new Error(String(error))));
    }
  });
}

/**
 * Opens a TCP connection from a host we are logged in to.
 * @throws Error with code ECONNREFUSED when the host cannot connect; AppError HOST_FORWARD_REFUSED, HOST_CONNECTION_LOST; the signal's reason
 */
export function openChannel(
  host: string,
  via: Via,
  address: { readonly host: string; readonly port: number },
  signal?: AbortSignal,
): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    if (via.lost !== null) throw via.lost;
    const forget = onAbort(signal, reject);
    via.client.forwardOut('127.0.0.1', 0, address.host, address.port, (error, channel) => {
      forget();
      if (error) reject(channelRefused(host, error));
      else if (signal?.aborted) channel.destroy();
      else resolve(channel);
    });
  });
}

function channelRefused(host: string, error: Error): Error {
  const reason = 'reason' in error ? error.reason : undefined;
  if (reason === CONNECT_FAILED) return Object.assign(error, { code: 'ECONNREFUSED' });
  return hostForwardRefused({ host, said: printable(error.message.replace(/^.*open failure: /, '')), cause: error });
}

/** Reasons as RFC 4254, 5.1 numbers them. */
const PROHIBITED = 1;
const CONNECT_FAILED = 2;

function forwardRefused(target: SshTarget, error: Error): AppError {
  const reason = 'reason' in error ? error.reason : undefined;
  const said = printable(error.message.replace(/^.*open failure: /, ''));
  const why =
    reason === PROHIBITED
      ? 'the jump host forbids forwarding (see AllowTcpForwarding and PermitOpen of its sshd_config)'
      : reason === CONNECT_FAILED
        ? `the jump host cannot connect to it: ${said}`
        : `the jump host did not forward: ${said}`;
  return hostUnreachable({ host: target.name, address: addressOf(target), why, cause: error });
}
