import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NodeSSH } from 'node-ssh';
import { onAbort, untilAborted } from '../../../base/abort.ts';
import type { AppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { hostForwardRefused, hostUnreachable, NO_SUCH_NAME, throughJumpHost } from '../../../host/host-problems.ts';
import { addressOf, type SshTarget, unknownNameHint } from '../../target.ts';

/**
 * Connects by TCP, with TCP_NODELAY.
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
      // Node tries each address of a name for 250 ms before the next one, too short for a distant host.
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
      resolve(socket);
    });
    socket.once('error', (error) => {
      forget();
      const why = socketFailure(error);
      const hint = why === NO_SUCH_NAME ? unknownNameHint(target) : undefined;
      reject(hostUnreachable({ host: target.name, address: addressOf(target), why, hint, cause: error }));
    });
  });
}

const SOCKET_FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ENOTFOUND: NO_SUCH_NAME,
  EAI_AGAIN: 'the DNS server does not respond',
  ETIMEDOUT: 'connection timed out',
  EADDRNOTAVAIL: 'the local address (BindAddress) is not available',
};

/** Why a socket failed, as a clause. */
export function socketFailure(error: Error): string {
  // With several addresses Node returns an AggregateError; each of its errors is more specific.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && 'code' in first ? String(first.code) : '';
  return SOCKET_FAILURES[code] ?? (code || error.message);
}

/** The parts of an authenticated connection that forwarding needs. */
interface Via {
  readonly ssh: NodeSSH;
  readonly lost: AppError | null;
}

/**
 * Connects through a jump host.
 * @throws AppError HOST_UNREACHABLE when the jump host refuses or cannot connect, HOST_CONNECTION_LOST when
 *   its connection is lost; the signal's reason
 */
export async function openForward(target: SshTarget, via: Via, signal: AbortSignal): Promise<Duplex> {
  signal.throwIfAborted();
  if (via.lost !== null) throw throughJumpHost(via.lost, target.name);
  try {
    return await forwardOut(via, { host: target.hostName, port: target.port }, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw via.lost === null ? forwardRefused(target, error) : throughJumpHost(via.lost, target.name);
  }
}

/**
 * Opens a TCP connection from a connected host.
 * @throws Error with code ECONNREFUSED when the host cannot connect; AppError HOST_FORWARD_REFUSED,
 *   HOST_CONNECTION_LOST; the signal's reason
 */
export async function openChannel(
  host: string,
  via: Via,
  address: { readonly host: string; readonly port: number },
  signal?: AbortSignal,
): Promise<Duplex> {
  signal?.throwIfAborted();
  if (via.lost !== null) throw via.lost;
  try {
    return await forwardOut(via, address, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw via.lost ?? channelRefused(host, error);
  }
}

/** A channel that opens after an abort is closed. */
async function forwardOut(
  { ssh }: Via,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal | undefined,
): Promise<Duplex> {
  const opening = ssh.forwardOut('127.0.0.1', 0, host, port);
  try {
    return await untilAborted(opening, signal);
  } catch (error) {
    opening.then(
      (channel) => channel.destroy(),
      () => undefined,
    );
    throw error;
  }
}

function channelRefused(host: string, cause: unknown): Error {
  const error = cause instanceof Error ? cause : new Error(String(cause));
  const reason = 'reason' in error ? error.reason : undefined;
  if (reason === CONNECT_FAILED) return Object.assign(error, { code: 'ECONNREFUSED' });
  return hostForwardRefused({ host, reported: printable(error.message.replace(/^.*open failure: /, '')), cause: error });
}

/** Reason codes of RFC 4254, 5.1. */
const PROHIBITED = 1;
const CONNECT_FAILED = 2;

function forwardRefused(target: SshTarget, cause: unknown): AppError {
  const error = cause instanceof Error ? cause : new Error(String(cause));
  const reason = 'reason' in error ? error.reason : undefined;
  const reported = printable(error.message.replace(/^.*open failure: /, ''));
  const why =
    reason === PROHIBITED
      ? 'the jump host forbids TCP forwarding'
      : reason === CONNECT_FAILED
        ? `the jump host cannot connect to the address: ${reported}`
        : `the jump host refused forwarding: ${reported}`;
  const hint =
    reason === PROHIBITED ? 'Set AllowTcpForwarding (local or yes) and PermitOpen in the sshd_config of the jump host' : undefined;
  return hostUnreachable({ host: target.name, address: addressOf(target), why, hint, cause: error });
}
