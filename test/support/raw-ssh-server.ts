import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto';
import type { Socket } from 'node:net';
import { startTcpServer } from './loopback.ts';

/**
 * Packets that the server sends right after its half of the key exchange, in the same TCP segment and before
 * the client can have requested them.
 */
export type EarlyPacket = 'service-accept' | 'userauth-success' | 'userauth-failure' | 'password-change' | 'channel-open' | 'disconnect';

export interface RawSshServerOptions {
  readonly early?: readonly EarlyPacket[];
  /** Sends the first early packet in clear text before the key exchange. */
  readonly beforeKeyExchange?: boolean;
  /** Signs with another key than the presented one, which it does not own. */
  readonly signsWithAnotherKey?: boolean;
  /**
   * Accepts every login and runs each command as one that closed its output long before it exits with this
   * code. The exit code is sent only on a channel that the client has not closed, like with many servers.
   */
  readonly lateExitCode?: number;
  /**
   * Does not announce accepted signatures (EXT_INFO), accepts every offered key, and rejects every signature.
   */
  readonly acceptsKeys?: boolean;
  /**
   * Accepts every login and starts another key exchange, with another host key, when a session is requested.
   */
  readonly changesKey?: boolean;
}

export interface RawSshServer {
  readonly port: number;
  /** Type and key, in the format of known_hosts. */
  readonly hostKey: string;
  /** Connections so far. */
  connections(): number;
  /** All bytes from clients as received. */
  wire(): Buffer;
  /** Payloads of client packets, decrypted if they use the keys of this connection. */
  payloads(): readonly Buffer[];
  stop(): Promise<void>;
}

const MESSAGE = { serviceAccept: 6, extInfo: 7, kexInit: 20, newKeys: 21, ecdhInit: 30, ecdhReply: 31 } as const;
const CIPHER = 'aes128-gcm@openssh.com';

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const string = (value: string | Buffer): Buffer => Buffer.concat([uint32(Buffer.byteLength(value)), Buffer.from(value as string)]);
/** A positive number: without leading zeros except the one that keeps it positive. */
const mpint = (bytes: Buffer): Buffer => {
  const from = bytes.findIndex((byte) => byte !== 0);
  const digits = bytes.subarray(from < 0 ? bytes.length : from);
  return string((digits[0] ?? 0) < 0x80 ? digits : Buffer.concat([Buffer.of(0), digits]));
};

const EARLY: Readonly<Record<EarlyPacket, Buffer>> = {
  'service-accept': Buffer.concat([Buffer.of(MESSAGE.serviceAccept), string('ssh-userauth')]),
  'userauth-failure': Buffer.concat([Buffer.of(51), string('password,keyboard-interactive'), Buffer.of(0)]),
  'userauth-success': Buffer.of(52),
  'password-change': Buffer.concat([Buffer.of(60), string('New password:'), string('')]),
  disconnect: Buffer.concat([Buffer.of(1), uint32(2), string('so long'), string('')]),
  'channel-open': Buffer.concat([Buffer.of(90), string('session'), uint32(0), uint32(1 << 20), uint32(1 << 15)]),
};
const EXT_INFO = Buffer.concat([Buffer.of(MESSAGE.extInfo), uint32(1), string('server-sig-algs'), string('ssh-ed25519')]);

/**
 * Starts an SSH server on raw sockets that sends packets no library would send: packets of the login in one
 * segment with KEX_ECDH_REPLY and NEWKEYS, as a man in the middle could, so that a client proceeds before
 * it has verified the host key. Curve25519, Ed25519 and AES-GCM only.
 */
export async function startRawSshServer(options: RawSshServerOptions): Promise<RawSshServer> {
  const hostKey = generateKeyPairSync('ed25519');
  const otherKey = generateKeyPairSync('ed25519');
  const signer = options.signsWithAnotherKey === true ? otherKey : hostKey;
  const blob = blobOf(hostKey.publicKey);
  const identities: Serving['identities'] = [
    { blob, signerKey: signer.privateKey },
    { blob: blobOf(otherKey.publicKey), signerKey: otherKey.privateKey },
  ];
  const received: Buffer[] = [];
  const payloads: Buffer[] = [];
  let connections = 0;
  const server = await startTcpServer((socket) => {
    connections++;
    socket.on('data', (chunk) => received.push(chunk));
    serve(socket, { options, identities, payloads });
  });
  return {
    port: server.port,
    hostKey: `ssh-ed25519 ${blob.toString('base64')}`,
    connections: () => connections,
    wire: () => Buffer.concat(received),
    payloads: () => payloads,
    stop: server.stop,
  };
}

interface Serving {
  readonly options: RawSshServerOptions;
  /** For the first key exchange, and for a later one. */
  readonly identities: readonly [Identity, Identity];
  readonly payloads: Buffer[];
}

interface Identity {
  readonly blob: Buffer;
  readonly signerKey: Parameters<typeof sign>[2];
}

function blobOf(publicKey: Parameters<typeof rawPublicKey>[0]): Buffer {
  return Buffer.concat([string('ssh-ed25519'), string(rawPublicKey(publicKey))]);
}

function serve(socket: Socket, { options, identities, payloads }: Serving): void {
  const identification = 'SSH-2.0-OpenSSH_9.2';
  const kexInit = ownKexInit();
  const { early = [], beforeKeyExchange = false } = options;
  const [first] = early;
  const before = beforeKeyExchange && first !== undefined ? plainPacket(EARLY[first]) : Buffer.alloc(0);
  socket.write(Buffer.concat([Buffer.from(`${identification}\r\n`), before, plainPacket(kexInit)]));
  let rest: Buffer = Buffer.alloc(0);
  let clientIdentification: string | null = null;
  let clientKexInit: Buffer = Buffer.alloc(0);
  let next: Opener | null = null;
  let open: Opener | null = null;
  let answer: ((payload: Buffer) => void) | null = null;
  const ready = (exchange: Exchange): void => {
    const seal = sealer(exchange);
    const send = (...packets: readonly Buffer[]): void => void socket.write(Buffer.concat(packets.map(seal)));
    next = opener(exchange);
    const behind = beforeKeyExchange || options.acceptsKeys === true ? [] : [EXT_INFO, ...early.map((name) => EARLY[name])];
    socket.write(Buffer.concat([plainPacket(exchange.reply), plainPacket(Buffer.of(MESSAGE.newKeys)), ...behind.map(seal)]));
    if (options.lateExitCode !== undefined) answer = lateExit(options.lateExitCode, send);
    if (options.acceptsKeys === true) answer = acceptKeys(send);
    if (options.changesKey === true)
      answer = changeKey(send, kexInit, (init) => {
        const [, identity] = identities;
        return answerExchange({
          clientIdentification: clientIdentification ?? '',
          identification,
          clientKexInit,
          kexInit,
          init,
          ...identity,
        }).reply;
      });
  };
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    if (clientIdentification === null) {
      const end = rest.indexOf('\r\n');
      if (end < 0) return;
      clientIdentification = rest.toString('latin1', 0, end);
      rest = rest.subarray(end + 2);
    }
    for (let taken = takePacket(rest, open); taken !== null; taken = takePacket(rest, open)) {
      rest = rest.subarray(taken.bytes);
      const { payload } = taken;
      payloads.push(payload);
      if (payload[0] === MESSAGE.kexInit) clientKexInit = payload;
      else if (payload[0] === MESSAGE.newKeys) open = next;
      else if (payload[0] === MESSAGE.ecdhInit && open === null)
        ready(answerExchange({ clientIdentification, identification, clientKexInit, kexInit, init: payload, ...identities[0] }));
      else answer?.(payload);
    }
  });
}

/** See {@link RawSshServerOptions.acceptsKeys}. */
function acceptKeys(send: (...packets: readonly Buffer[]) => void): (payload: Buffer) => void {
  const refusal = Buffer.concat([Buffer.of(51), string('publickey'), Buffer.of(0)]);
  const answers: Readonly<Record<number, (payload: Buffer) => void>> = {
    5: () => send(EARLY['service-accept']),
    50: (payload) => {
      const query = payload.indexOf('publickey\u0000', 0, 'latin1');
      // An accepted key is sent back unchanged: algorithm and key.
      send(query < 0 ? refusal : Buffer.concat([Buffer.of(60), payload.subarray(query + 'publickey'.length + 1)]));
    },
  };
  return (payload) => answers[payload[0] ?? 0]?.(payload);
}

/** See {@link RawSshServerOptions.changesKey}. */
function changeKey(
  send: (...packets: readonly Buffer[]) => void,
  kexInit: Buffer,
  reply: (init: Buffer) => Buffer,
): (payload: Buffer) => void {
  const answers: Readonly<Record<number, (payload: Buffer) => void>> = {
    5: () => send(EARLY['service-accept']),
    50: () => send(EARLY['userauth-success']),
    90: () => send(kexInit),
    [MESSAGE.ecdhInit]: (init) => send(reply(init), Buffer.of(MESSAGE.newKeys)),
  };
  return (payload) => answers[payload[0] ?? 0]?.(payload);
}

/** One session of a client that is logged in immediately; see {@link RawSshServerOptions.lateExitCode}. */
function lateExit(exitCode: number, send: (...packets: readonly Buffer[]) => void): (payload: Buffer) => void {
  let channel: Buffer = Buffer.alloc(0);
  let isClosed = false;
  let alive = 0;
  const packet = (type: number, ...parts: readonly Buffer[]): Buffer => Buffer.concat([Buffer.of(type), channel, ...parts]);
  const askAlive = (): void => send(packet(98, string('keepalive@openssh.com'), Buffer.of(1)));
  const answers: Readonly<Record<number, (payload: Buffer) => void>> = {
    5: () => send(EARLY['service-accept']),
    50: () => send(EARLY['userauth-success']),
    90: (payload) => {
      const at = 5 + payload.readUInt32BE(1);
      channel = Buffer.from(payload.subarray(at, at + 4));
      send(packet(91, uint32(0), uint32(1 << 20), uint32(1 << 15)));
    },
    98: (payload) => {
      const [mark = ''] = /kubeletadm-[0-9a-f-]+/.exec(payload.toString('latin1')) ?? [];
      send(packet(99), packet(94, string(`${mark}\n`)), packet(95, uint32(1), string(`${mark} 1\n`)), packet(96));
    },
    96: askAlive,
    // By its second answer the client has handled the end of the output.
    100: () => {
      if (++alive === 1) return askAlive();
      if (!isClosed) send(packet(98, string('exit-status'), Buffer.of(0), uint32(exitCode)));
      send(packet(97));
    },
    97: () => {
      isClosed = true;
    },
  };
  return (payload) => answers[payload[0] ?? 0]?.(payload);
}

function ownKexInit(): Buffer {
  const lists = ['curve25519-sha256', 'ssh-ed25519', CIPHER, CIPHER, 'hmac-sha2-256', 'hmac-sha2-256', 'none', 'none', '', ''];
  return Buffer.concat([Buffer.of(MESSAGE.kexInit), randomBytes(16), ...lists.map(string), Buffer.of(0), uint32(0)]);
}

function plainPacket(payload: Buffer): Buffer {
  const padding = 8 - ((5 + payload.length) % 8) + 8;
  return Buffer.concat([uint32(1 + payload.length + padding), Buffer.of(padding), payload, randomBytes(padding)]);
}

interface Exchange {
  readonly reply: Buffer;
  /** RFC 4253, 7.2: `A` to `F`. */
  key(letter: string, bytes: number): Buffer;
}

function answerExchange(input: {
  readonly clientIdentification: string;
  readonly identification: string;
  readonly clientKexInit: Buffer;
  readonly kexInit: Buffer;
  readonly blob: Buffer;
  readonly init: Buffer;
  readonly signerKey: Parameters<typeof sign>[2];
}): Exchange {
  const theirs = input.init.subarray(5, 37);
  const ours = generateKeyPairSync('x25519');
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: theirs.toString('base64url') }, format: 'jwk' });
  const secret = mpint(diffieHellman({ privateKey: ours.privateKey, publicKey }));
  const hash = createHash('sha256');
  const { clientIdentification, identification, clientKexInit, kexInit, blob } = input;
  for (const part of [clientIdentification, identification, clientKexInit, kexInit, blob, theirs, rawPublicKey(ours.publicKey)])
    hash.update(string(part));
  const exchangeHash = hash.update(secret).digest();
  const signature = Buffer.concat([string('ssh-ed25519'), string(sign(null, exchangeHash, input.signerKey))]);
  return {
    reply: Buffer.concat([Buffer.of(MESSAGE.ecdhReply), string(blob), string(rawPublicKey(ours.publicKey)), string(signature)]),
    key: (letter, bytes) =>
      createHash('sha256')
        .update(Buffer.concat([secret, exchangeHash, Buffer.from(letter), exchangeHash]))
        .digest()
        .subarray(0, bytes),
  };
}

function rawPublicKey(key: ReturnType<typeof createPublicKey>): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url');
}

/** RFC 5647: the length is authenticated, the last eight bytes of the nonce count packets. */
function nonces(start: Buffer): () => Buffer {
  const next = Buffer.from(start);
  return () => {
    const nonce = Buffer.from(next);
    next.writeBigUInt64BE(next.readBigUInt64BE(4) + 1n, 4);
    return nonce;
  };
}

function sealer(exchange: Exchange): (payload: Buffer) => Buffer {
  const nonce = nonces(exchange.key('B', 12));
  const key = exchange.key('D', 16);
  return (payload) => {
    const padding = 16 - ((1 + payload.length) % 16) + 16;
    const length = uint32(1 + payload.length + padding);
    const cipher = createCipheriv('aes-128-gcm', key, nonce()).setAAD(length);
    const body = Buffer.concat([cipher.update(Buffer.concat([Buffer.of(padding), payload, randomBytes(padding)])), cipher.final()]);
    return Buffer.concat([length, body, cipher.getAuthTag()]);
  };
}

type Opener = (length: Buffer, body: Buffer, tag: Buffer) => Buffer;

function opener(exchange: Exchange): Opener {
  const nonce = nonces(exchange.key('A', 12));
  const key = exchange.key('C', 16);
  return (length, body, tag) => {
    const decipher = createDecipheriv('aes-128-gcm', key, nonce()).setAAD(length).setAuthTag(tag);
    return Buffer.concat([decipher.update(body), decipher.final()]);
  };
}

/** The first packet, encrypted if `open` is given; null while it is incomplete. */
function takePacket(bytes: Buffer, open: Opener | null): { readonly payload: Buffer; readonly bytes: number } | null {
  if (bytes.length < 5) return null;
  const length = bytes.readUInt32BE(0);
  const size = 4 + length + (open === null ? 0 : 16);
  if (bytes.length < size) return null;
  const body =
    open === null ? bytes.subarray(4, size) : open(bytes.subarray(0, 4), bytes.subarray(4, 4 + length), bytes.subarray(4 + length, size));
  return { payload: body.subarray(1, body.length - (body[0] ?? 0)), bytes: size };
}
