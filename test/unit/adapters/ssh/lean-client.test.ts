import ssh2 from 'ssh2';
import { describe, expect, it } from 'vitest';
import { makeLean } from '../../../../src/adapters/ssh/lean-client.ts';

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
    _handlers: { GLOBAL_REQUEST: (_, name) => sent.push(`handled ${name}`) },
  };
  return { client: { _protocol: protocol } as unknown as ssh2.Client, protocol, sent };
}

interface Protocol {
  authPK(user: string, key: ssh2.ParsedKey, algorithm?: string, sign?: Sign): void;
  requestSuccess(): void;
  readonly _handlers: { GLOBAL_REQUEST: (protocol: Protocol, name: string, wantReply: boolean, data: unknown) => void };
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
    handle(protocol, 'hostkeys-00@openssh.com', false, ['not a key']);
    handle(protocol, 'hostkeys-00@openssh.com', true, []);
    handle(protocol, 'keepalive@openssh.com', true, undefined);
    expect(sent).toEqual(['success', 'handled keepalive@openssh.com']);
  });

  it('finds in the client what it changes', () => {
    const client = new ssh2.Client();
    const { Duplex } = process.getBuiltinModule('node:stream');
    const sock = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    client.on('error', () => undefined).connect({ sock, username: 'dev' });
    const { _protocol: protocol } = client as unknown as { _protocol: Protocol };
    expect([typeof protocol.authPK, typeof protocol._handlers.GLOBAL_REQUEST]).toEqual(['function', 'function']);
    client.destroy();
  });
});
