import type { Duplex } from 'node:stream';
import { NodeSSH } from 'node-ssh';
import type ssh2 from 'ssh2';
import { onAbort } from '../../../base/abort.ts';
import type { AppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import type { Secret } from '../../../base/text/secret.ts';
import { hostConnectionLost, hostTimeout, hostUnreachable } from '../../../host/host-problems.ts';
import { type HostKey, hostKeyFromBytes, type KnownHosts, knownHostsNames, orderHostKeyAlgorithms } from '../../known-hosts.ts';
import { SHA1_MACS } from '../../policy.ts';
import { addressOf, type SshTarget } from '../../target.ts';
import { type Deadline, startDeadline } from '../client/deadline.ts';
import type { HostConnection } from '../client/host-connection.ts';
import { type Authentication, authentication } from './authentication.ts';
import { type HostKeyPolicy, hostKeyVerifier, saveHostKey, type VerifyHostKey } from './host-key-check.ts';
import type { AskPassphrase, Identities } from './identities.ts';
import { openForward, openSocket, socketFailure } from './stream.ts';

export interface ConnectOptions extends HostKeyPolicy {
  readonly identities: Identities;
  readonly password?: Secret | undefined;
  readonly askPassphrase?: AskPassphrase | undefined;
  /**
   * Replaces the check against known hosts; an error that it throws ends the attempt before any data is sent
   * to the host.
   */
  readonly verifyHostKey?: VerifyHostKey | undefined;
}

export interface SshConnection extends HostConnection {
  readonly ssh: NodeSSH;
  /** @param listener `why` returns the error */
  onLost(listener: (why: () => AppError) => void): () => void;
  /** Closes the connection; resolves when DISCONNECT was sent, or after a timeout. */
  end(): Promise<void>;
}

const KEEPALIVE_INTERVAL_MS = 15_000;
const KEEPALIVE_COUNT = 3;
const END_TIMEOUT_MS = 1000;
/**
 * With these delays (200 ms, doubled each time) a busy host has about twelve seconds to accept the
 * connection.
 */
const MAX_RETRIES = 6;
const FIRST_DELAY_MS = 200;

/**
 * Connects to one host: TCP or a channel of the jump host, key exchange, host key, authentication; all within
 * the target's timeout.
 * @param via connection to the jump host
 * @param signal cancels the attempt
 * @throws AppError HOST_UNREACHABLE, HOST_TIMEOUT, HOST_KEY_UNKNOWN, HOST_KEY_MISMATCH, HOST_KEY_REVOKED,
 *   HOST_AUTH_FAILED; the signal's reason
 */
export async function openConnection(
  target: SshTarget,
  options: ConnectOptions,
  { via = null, signal }: { readonly via?: SshConnection | null; readonly signal?: AbortSignal | undefined } = {},
): Promise<SshConnection> {
  const address = addressOf(target);
  const { connectTimeoutMs: timeoutMs } = target;
  const hint = 'Check address, port, network and firewall, and that an SSH server listens on this port';
  const deadline = startDeadline(timeoutMs, (stage) => hostTimeout({ host: target.name, what: `${address}: ${stage}`, timeoutMs, hint }));
  const forget = onAbort(signal, deadline.abort);
  const open = async (): Promise<Duplex> => {
    deadline.enter(via === null ? 'no TCP connection' : 'no connection through the jump host');
    const socket = via === null ? await openSocket(target, deadline.signal) : await openForward(target, via, deadline.signal);
    deadline.enter('no SSH handshake');
    return socket;
  };
  try {
    // Loaded before connecting, because the host key must be verified synchronously on arrival.
    const known = await options.hostKeys.knownHosts(target);
    const keys = await options.identities.candidates(target, options.askPassphrase);
    const verify = options.verifyHostKey ?? hostKeyVerifier(target, known);
    const save = (key: HostKey): Promise<void> => saveHostKey(target, key, options);
    const algorithms = algorithmsFor(target, known);
    let turnedAway: unknown = null;
    for (let attempt = 0; ; attempt++) {
      const auth = authentication(target, keys, { password: options.password, address, deadline });
      const progress: Progress = { target, auth, received: '', acceptedKey: null, isEncrypted: false, lastError: null };
      let socket: Duplex | null = null;
      try {
        socket = await open();
        return await handshake(progress, socket, deadline, { verify, save, algorithms });
      } catch (error) {
        // The rejected login explains more than the timeout.
        if (deadline.signal.aborted) throw signal?.aborted === true ? error : (turnedAway ?? error);
        if (socket === null || attempt >= MAX_RETRIES || !isLoginThrottled(progress)) throw error;
        turnedAway = error;
        if (!(await waitForTurn(attempt, deadline.signal))) throw error;
      }
    }
  } finally {
    forget();
    deadline.stop();
  }
}

/**
 * A server with too many pending logins sends such a message, or nothing, instead of its identification; a
 * retry usually succeeds.
 */
function isLoginThrottled({ received }: Pick<Progress, 'received'>): boolean {
  return received === '' || /^(?:Exceeded MaxStartups|Not allowed at this time)/.test(received);
}

/** Exponential backoff with jitter. Resolves to false when no time is left. */
function waitForTurn(attempt: number, signal: AbortSignal): Promise<boolean> {
  const delayMs = FIRST_DELAY_MS * 2 ** attempt * (0.5 + Math.random());
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      forget();
      resolve(true);
    }, delayMs);
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      resolve(false);
    });
  });
}

function handshake(
  progress: Progress,
  socket: Duplex,
  deadline: Deadline,
  key: { readonly verify: VerifyHostKey; readonly save: (key: HostKey) => Promise<void>; readonly algorithms: ssh2.Algorithms },
): Promise<SshConnection> {
  const { target, auth } = progress;
  const ssh = new NodeSSH();
  let isSettled = false;
  let forget = (): void => undefined;
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      if (isSettled) return;
      isSettled = true;
      forget();
      socket.destroy();
      reject(error);
    };
    forget = onAbort(deadline.signal, fail);
    if (isSettled) return;
    if (socket.destroyed) return fail(handshakeFailure(progress, null));

    // The promise of connect() rejects at any error, including those that keep the connection open. The
    // client's own events distinguish them.
    const connecting = ssh.connect({
      sock: socket,
      username: target.user,
      readyTimeout: 0,
      keepaliveInterval: KEEPALIVE_INTERVAL_MS,
      keepaliveCountMax: KEEPALIVE_COUNT,
      algorithms: key.algorithms,
      hostVerifier: (bytes: Buffer) => {
        const isAccepted = acceptsKey(bytes, progress, key.verify, fail);
        if (isAccepted) deadline.enter('authentication did not complete');
        return isAccepted;
      },
      // The types do not declare the nulls of the first call.
      authHandler: gated(auth.handler, progress) as unknown as ssh2.AuthHandlerMiddleware,
    });
    const client = ssh.connection;
    // A configuration that ssh2 rejects is reported by the promise only.
    connecting.catch((error: ClientError) => (client === null || isConfigurationError(error)) && fail(handshakeFailure(progress, error)));
    if (client === null) return;

    socket.on('data', function listen(chunk: Buffer) {
      progress.received += chunk.toString('latin1', 0, 300);
      if (progress.received.length > 300 || /^SSH-/m.test(progress.received)) socket.off('data', listen);
    });
    let saved: Promise<void> = Promise.resolve();
    client.once('handshake', () => {
      progress.isEncrypted = true;
      // Saved only now, because the handshake proves that the host holds the private key.
      if (progress.acceptedKey?.isNew) saved = key.save(progress.acceptedKey.key);
    });
    client.on('change password', () => fail(auth.failure('the password has expired and has to be changed on the host', undefined)));
    client.on('error', (error: ClientError) => {
      if (isPassedOver(error)) return;
      progress.lastError = error;
      fail(handshakeFailure(progress, error));
    });
    client.on('close', () => fail(handshakeFailure(progress, null)));
    client.once('ready', () => {
      if (isSettled) return;
      // Rejects a host that accepts the login before its key was verified.
      if (progress.acceptedKey === null || !progress.isEncrypted) return fail(handshakeFailure(progress, null));
      isSettled = true;
      forget();
      const connection = establish(ssh, client, socket, progress);
      void saved.then(() => resolve(connection));
    });
  });
}

/** The offered algorithms: ssh2's defaults without SHA-1, unless ssh_config sets others. */
function algorithmsFor(target: SshTarget, known: KnownHosts): ssh2.Algorithms {
  const { kex, ciphers, macs, hostKeys } = target.policy ?? {};
  const names = hostKeys?.isOrdered === true ? hostKeys.names : orderHostKeyAlgorithms(known, knownHostsNames(target), hostKeys?.names);
  return {
    ...(kex === undefined ? {} : { kex: [...kex] as ssh2.KexAlgorithm[] }),
    ...(ciphers === undefined ? {} : { cipher: [...ciphers] as ssh2.CipherAlgorithm[] }),
    hmac:
      macs === undefined ? { append: [], prepend: [], remove: [...SHA1_MACS] as ssh2.MacAlgorithm[] } : ([...macs] as ssh2.MacAlgorithm[]),
    serverHostKey: [...names] as ssh2.ServerHostKeyAlgorithm[],
    compress: ['none'],
  };
}

/** The local OpenSSL may lack an algorithm that ssh_config requires. */
function isConfigurationError({ message }: Error): boolean {
  return message.startsWith('Unsupported algorithm');
}

/** A key or an agent that cannot sign: ssh2 continues with the next method. */
function isPassedOver({ level, message }: ClientError): boolean {
  return level === 'agent' || (level === 'client-authentication' && /signing/.test(message));
}

type ClientError = Error & { readonly level?: string; readonly code?: string | number };

interface Progress {
  readonly target: SshTarget;
  readonly auth: Authentication;
  /** The first bytes that the server sent, up to its identification. */
  received: string;
  acceptedKey: { readonly key: HostKey; readonly isNew: boolean } | null;
  isEncrypted: boolean;
  lastError: ClientError | null;
}

/**
 * Verifies a host key synchronously, because ssh2 meanwhile processes the packets after the key. The key is
 * verified at each key exchange; an accepted host may not change its key during the connection.
 * @param fail is called before a rejection is returned, and closes the socket, so that ssh2 cannot answer
 *   packets that it already received
 */
function acceptsKey(bytes: Buffer, progress: Progress, verify: VerifyHostKey, fail: (error: unknown) => void): boolean {
  try {
    const key = hostKeyFromBytes(bytes);
    if (progress.acceptedKey !== null) return progress.acceptedKey.key.blob === key.blob;
    progress.acceptedKey = { key, isNew: verify(key) === 'new' };
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

/** Withholds all login methods until the host key is accepted and the connection is encrypted. */
function gated(handler: Authentication['handler'], progress: Progress): Authentication['handler'] {
  return (left, partial, next) => {
    if (progress.acceptedKey === null || !progress.isEncrypted) next(false);
    else handler(left, partial, next);
  };
}

function handshakeFailure({ target, auth, received, isEncrypted }: Progress, error: ClientError | null): AppError {
  const address = addressOf(target);
  const unreachable = (why: string, hint?: string): AppError =>
    hostUnreachable({ host: target.name, address, why, hint, cause: error ?? undefined });
  if (error !== null && isConfigurationError(error)) return unreachable(printable(error.message));
  if (error?.level === 'client-authentication') return auth.failure(undefined, error);
  // A server that closes a connection without reading pending data resets it, and its message may be lost.
  if (error?.level === 'client-socket' && received === '')
    return unreachable(`${socketFailure(error)} before the SSH server sent its identification`, REFUSES_AT_ONCE);
  if (error?.level === 'client-socket') return unreachable(`${socketFailure(error)} before the login completed`);
  if (isEncrypted) return auth.failure(describeFailure(error), error ?? undefined);
  const isSsh = /^SSH-/m.test(received);
  const reported = printable(received.split(/^SSH-/m, 1)[0] ?? '', 80);
  if (isSsh) return unreachable(`the key exchange failed: ${describeFailure(error)}`);
  if (reported === '') return unreachable('the host accepts connections and closes them immediately', REFUSES_AT_ONCE);
  return unreachable(
    `the server sent "${reported}", not an SSH identification`,
    isLoginThrottled({ received }) ? BUSY : 'Check the address and the port',
  );
}

const BUSY = 'Too many logins to the host are in progress. Rerun the command, or raise MaxStartups in the sshd_config of the host';
const REFUSES_AT_ONCE =
  'Check that an SSH server listens on this port. On the host, check MaxStartups in sshd_config, /etc/hosts.deny and the journal of sshd';

/** ssh2 fails with a TypeError on unexpected authentication messages. */
function describeFailure(error: ClientError | null): string {
  if (error === null) return 'the host closed the connection';
  return error instanceof TypeError ? 'the host violates the SSH protocol' : printable(error.message);
}

function establish(ssh: NodeSSH, client: ssh2.Client, socket: Duplex, progress: Progress): SshConnection {
  const { target } = progress;
  const listeners = new Set<(why: () => AppError) => void>();
  let isClosing = false;
  let isLost = false;
  let error: AppError | null = null;
  /** Created on demand: most connections close without a reader of the error. */
  const lost = (): AppError => {
    const { lastError } = progress;
    const why = isClosing ? 'connection closed' : lastError === null ? 'the host closed the connection' : lossReason(lastError);
    error ??= hostConnectionLost({ host: target.name, why, cause: lastError ?? undefined });
    return error;
  };
  // node-ssh listens for errors while it opens sessions or forwardings, possibly many at a time.
  client.setMaxListeners(0);
  // After an error or EOF the client is unusable, although its socket may still be open.
  client.on('error', () => socket.destroy());
  client.on('end', () => socket.destroy());
  client.on('close', () => {
    isLost = true;
    for (const listener of listeners) listener(lost);
    listeners.clear();
  });
  return {
    ssh,
    get lost() {
      return isLost || socket.destroyed || !ssh.isConnected() ? lost() : null;
    },
    onLost: (listener) => {
      if (isLost) listener(lost);
      else listeners.add(listener);
      return () => listeners.delete(listener);
    },
    end: () =>
      new Promise((resolve) => {
        if (isLost) return resolve();
        isClosing = true;
        const timer = setTimeout(() => socket.destroy(), END_TIMEOUT_MS);
        client.once('close', () => {
          clearTimeout(timer);
          resolve();
        });
        // Nothing more to wait for once DISCONNECT was sent.
        socket.once('finish', () => socket.destroy());
        ssh.dispose();
      }),
  };
}

function lossReason(error: ClientError): string {
  if (error.level === 'client-timeout') return `no response for ${(KEEPALIVE_INTERVAL_MS * (KEEPALIVE_COUNT + 1)) / 1000}s`;
  return error.level === 'client-socket' ? socketFailure(error) : printable(error.message);
}
