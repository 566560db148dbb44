import { diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import ssh2 from 'ssh2';
import { describe, expect, it } from 'vitest';
import { makeLean } from '../../../../src/adapters/ssh/lean-client.ts';
import { makeKeyExchangeLean } from '../../../../src/adapters/ssh/lean-key-exchange.ts';

interface Exchange {
  readonly type: string;
  _keys: { publicKey: KeyObject; privateKey: KeyObject } | null;
  generateKeys(): void;
  getPublicKey(): Buffer;
  computeSecret(theirs: Buffer): Buffer | Error;
}

const asDer = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' }).subarray(-32);

function leanExchange(): Exchange {
  const exchange: Exchange = {
    type: '25519',
    _keys: null,
    generateKeys: () => {
      exchange._keys ??= generateKeyPairSync('x25519');
    },
    getPublicKey: () => Buffer.alloc(0),
    computeSecret: () => Buffer.alloc(0),
  };
  const protocol: { _kex?: unknown } = {};
  makeKeyExchangeLean(protocol);
  protocol._kex = exchange;
  expect(protocol._kex).toBe(exchange);
  return exchange;
}

describe('makeKeyExchangeLean', () => {
  it('gives the public key and the secret as the protocol has them', () => {
    const firstBytes = new Set<boolean>();
    for (let i = 0; i < 600; i++) {
      const exchange = leanExchange();
      const ours = exchange.getPublicKey();
      const theirs = generateKeyPairSync('x25519');
      const keys = exchange._keys as NonNullable<Exchange['_keys']>;
      expect(ours.equals(asDer(keys.publicKey))).toBe(true);
      const secret = diffieHellman({ privateKey: theirs.privateKey, publicKey: keys.publicKey });
      const digits = BigInt(`0x${secret.toString('hex')}`).toString(16);
      const even = digits.length % 2 === 0 ? digits : `0${digits}`;
      expect(exchange.computeSecret(asDer(theirs.publicKey))).toEqual(Buffer.from(/^[89a-f]/.test(even) ? `00${even}` : even, 'hex'));
      firstBytes.add(secret[0] === 0);
    }
    expect(firstBytes.has(false)).toBe(true);
  });

  it.each([
    ['too short', Buffer.alloc(31, 9)],
    ['empty', Buffer.alloc(0)],
    ['of small order', Buffer.alloc(32)],
  ])('refuses a key that is %s', (_, theirs) => {
    expect(leanExchange().computeSecret(theirs)).toBeInstanceOf(Error);
  });

  it('is what the client does', async () => {
    const server = new ssh2.Server({ hostKeys: [ssh2.utils.generateKeyPairSync('ed25519').private] }, (peer) =>
      peer.on('error', () => undefined),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = new ssh2.Client();
    const names: string[] = [];
    const met = new Promise<void>((resolve, reject) => {
      client.on('handshake', ({ kex }) => {
        const { _kex: exchange } = (client as unknown as { _protocol: { _kex: Exchange } })._protocol;
        names.push(kex, ...['getPublicKey', 'computeSecret'].filter((name) => Object.hasOwn(exchange, name)));
        resolve();
      });
      client.on('error', reject);
    });
    client.connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, username: 'dev' });
    makeLean(client);
    await met;
    expect(names).toEqual([expect.stringContaining('curve25519'), 'getPublicKey', 'computeSecret']);
    client.on('error', () => undefined).destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});
