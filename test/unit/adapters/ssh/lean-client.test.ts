import { EventEmitter } from 'node:events';
import ssh2 from 'ssh2';
import { describe, expect, it } from 'vitest';
import { makeLean, stopKeepalive } from '../../../../src/adapters/ssh/lean-client.ts';

type Sign = (data: Buffer, done: (signature: Buffer) => void) => void;

/** A client that keeps account of what would be sent. */
function fakeClient(): { client: ssh2.Client; protocol: Protocol; sent: unknown[] } {
  const sent: unknown[] = [];
  const protocol: Protocol = {
    authPK: (user, key, algorithm, sign) => {
      if (sign === undefined) sent.push(['ask', user, algorithm]);
      else sign(Buffer.from('data'), (signature) => sent.push(['signed', user, algorithm, key.verify(Buffer.from('data'), signature)]));
    },
    requestSuccess: () => sent.push('success'),
    _packetRW: { write: { allocStart: 3, alloc: (bytes) => Buffer.alloc(3 + bytes, 0xee), finalize: (packet) => packet.subarray(3) } },
    _cipher: { encrypt: (packet) => sent.push([...packet]) },
    _handlers: {
      GLOBAL_REQUEST: (_, name) => sent.push(`handled ${name}`),
      EXT_INFO: (_, extensions) => sent.push(['extensions', extensions]),
      SERVICE_ACCEPT: (_, name) => sent.push(`log in by ${name}`),
    },
  };
  const client = Object.assign(new EventEmitter(), { _protocol: protocol }) as unknown as ssh2.Client;
  return { client, protocol, sent };
}

interface Protocol {
  _kexinit?: unknown;
  authPK(user: string, key: ssh2.ParsedKey, algorithm?: string, sign?: Sign): void;
  requestSuccess(): void;
  readonly _packetRW: { readonly write: { readonly allocStart: number; alloc(bytes: number): Buffer; finalize(packet: Buffer): Buffer } };
  readonly _cipher: { encrypt(packet: Buffer): void };
  readonly _handlers: {
    GLOBAL_REQUEST: (protocol: Protocol, name: string, wantReply: boolean, data: unknown) => void;
    EXT_INFO: (protocol: Protocol, extensions: unknown) => void;
    SERVICE_ACCEPT: (protocol: Protocol, name: string) => void;
  };
}

const KEYS = ssh2.utils.generateKeyPairSync('ed25519');
const parsed = (text: string): ssh2.ParsedKey => {
  const key = ssh2.utils.parseKey(text);
  if (key instanceof Error) throw key;
  return key;
};

describe('makeLean', () => {
  it('signs with a private key at once', () => {
    const { client, protocol, sent } = fakeClient();
    makeLean(client);
    protocol.authPK('dev', parsed(KEYS.private));
    expect(sent).toEqual([['signed', 'dev', undefined, true]]);
  });

  it('asks about a key it cannot sign with', () => {
    const { client, protocol, sent } = fakeClient();
    makeLean(client);
    protocol.authPK('dev', parsed(KEYS.public));
    const broken = Object.assign(Object.create(parsed(KEYS.private)), { isPrivateKey: () => true, sign: () => new Error('no') });
    protocol.authPK('dev', broken, 'rsa-sha2-256');
    expect(sent).toEqual([
      ['ask', 'dev', undefined],
      ['ask', 'dev', 'rsa-sha2-256'],
    ]);
  });

  it('lets a host offer keys for later as often as it likes', () => {
    const { client, protocol, sent } = fakeClient();
    makeLean(client);
    const { GLOBAL_REQUEST: handle } = protocol._handlers;
    handle(protocol, 'hostkeys-00@openssh.com', true, []);
    handle(protocol, 'keepalive@openssh.com', true, undefined);
    expect(sent).toEqual(['success', 'handled keepalive@openssh.com']);
  });

  it('has what the host says of its keys acknowledged at once, with a message that says nothing', () => {
    const { client, protocol, sent } = fakeClient();
    makeLean(client);
    const { GLOBAL_REQUEST: handle } = protocol._handlers;
    handle(protocol, 'hostkeys-00@openssh.com', false, ['not a key']);
    expect(sent).toEqual([[2, 0, 0, 0, 0]]);
    // Nothing but the key exchange itself may be sent while there is one.
    protocol._kexinit = {};
    handle(protocol, 'hostkeys-00@openssh.com', false, []);
    expect(sent).toHaveLength(1);
  });

  it('logs in without waiting to be told that it may, once the host has said which signatures it takes', async () => {
    const { client, protocol, sent } = fakeClient();
    makeLean(client);
    protocol._handlers.EXT_INFO(protocol, ['some']);
    client.emit('handshake', {} as ssh2.NegotiatedAlgorithms);
    sent.push('service request');
    await new Promise(process.nextTick);
    // That it may comes late, and a second key exchange is no second login.
    protocol._handlers.SERVICE_ACCEPT(protocol, 'ssh-userauth');
    client.emit('handshake', {} as ssh2.NegotiatedAlgorithms);
    await new Promise(process.nextTick);
    expect(sent).toEqual([['extensions', ['some']], 'service request', 'log in by ssh-userauth']);
  });

  it('waits where the host has said nothing of signatures', async () => {
    const { client, protocol, sent } = fakeClient();
    makeLean(client);
    client.emit('handshake', {} as ssh2.NegotiatedAlgorithms);
    await new Promise(process.nextTick);
    expect(sent).toEqual([]);
    protocol._handlers.EXT_INFO(protocol, []);
    protocol._handlers.SERVICE_ACCEPT(protocol, 'ssh-userauth');
    expect(sent).toEqual([['extensions', []], 'log in by ssh-userauth']);
  });

  it('finds in the client what it changes', () => {
    const client = new ssh2.Client();
    const { Duplex } = process.getBuiltinModule('node:stream');
    const sock = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    client.on('error', () => undefined).connect({ sock, username: 'dev' });
    const { _protocol: protocol } = client as unknown as { _protocol: Protocol };
    const { GLOBAL_REQUEST, EXT_INFO, SERVICE_ACCEPT } = protocol._handlers;
    const functions = [
      protocol.authPK,
      GLOBAL_REQUEST,
      EXT_INFO,
      SERVICE_ACCEPT,
      protocol._packetRW.write.finalize,
      protocol._cipher.encrypt,
    ];
    expect(functions.map((each) => typeof each)).toEqual(functions.map(() => 'function'));
    expect(() => stopKeepalive(client)).not.toThrow();
    const packet = protocol._packetRW.write.alloc(5);
    expect(packet.length).toBeGreaterThanOrEqual(protocol._packetRW.write.allocStart + 5);
    client.destroy();
  });
});
