import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  checkHostKey,
  type HostKey,
  hostKeyFingerprint,
  hostKeyFromBytes,
  hostKeyTypeName,
  indexKnownHosts,
  knownHostsNames,
  orderHostKeyAlgorithms,
  parseKnownHosts,
  renderKnownHostsLine,
} from '../../../src/ssh/known-hosts.ts';

/** A key whose wire format is valid. */
function key(type: 'ssh-ed25519' | 'ecdsa-sha2-nistp256' | 'ssh-rsa', seed: string): HostKey {
  const bytes = createHash('sha512').update(seed).digest();
  const parts = {
    'ssh-ed25519': [bytes.subarray(0, 32)],
    'ecdsa-sha2-nistp256': [Buffer.from('nistp256'), Buffer.concat([Buffer.of(4), bytes])],
    'ssh-rsa': [Buffer.of(1, 0, 1), Buffer.concat([Buffer.of(0, 0x80), bytes, bytes, bytes, bytes])],
  }[type];
  const strings = [Buffer.from(type), ...parts].flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    return [length, part];
  });
  return { type, blob: Buffer.concat(strings).toString('base64') };
}

const ED = key('ssh-ed25519', 'one');
const ED_OTHER = key('ssh-ed25519', 'two');
const ECDSA = key('ecdsa-sha2-nistp256', 'one');
const RSA = key('ssh-rsa', 'one');
const text = ({ type, blob }: HostKey): string => `${type} ${blob}`;
const known = (...lines: string[]) => indexKnownHosts(parseKnownHosts(lines.join('\n'), 'kh'));
const at = (hostName: string, port = 22, hostKeyAlias: string | null = null) => knownHostsNames({ hostName, port, hostKeyAlias });

describe('checkHostKey', () => {
  it.each([
    ['a plain name', [`n1 ${text(ED)}`], at('n1'), 'known'],
    ['one of several names', [`n0,n1,10.0.0.1 ${text(ED)} comment here`], at('10.0.0.1'), 'known'],
    ['a name in capitals', [`Node1 ${text(ED)}`], at('NODE1'), 'known'],
    ['a wildcard', [`*.example.com ${text(ED)}`], at('a.example.com'), 'known'],
    ['a wildcard with an exception', [`*.example.com,!a.example.com ${text(ED)}`], at('a.example.com'), 'unknown'],
    ['blanks and tabs', [`  n1\t${text(ED)}`], at('n1'), 'known'],
    ['carriage returns', [`n1 ${text(ED)}\r`], at('n1'), 'known'],
    ['a hashed name', [renderKnownHostsLine('n1', ED, Buffer.alloc(20, 7)).trim()], at('n1'), 'known'],
    ['another hashed name', [renderKnownHostsLine('n2', ED, Buffer.alloc(20, 7)).trim()], at('n1'), 'unknown'],
    ['a name with port', [`[n1]:2222 ${text(ED)}`], at('n1', 2222), 'known'],
    ['a bare name for another port', [`n1 ${text(ED)}`], at('n1', 2222), 'known'],
    ['another key on the usual port', [`n1 ${text(ED_OTHER)}`], at('n1', 2222), 'unknown'],
    ['a name with port for port 22', [`[n1]:2222 ${text(ED)}`], at('n1'), 'unknown'],
    ['an alias', [`cluster-a ${text(ED)}`], at('10.9.9.9', 2222, 'Cluster-A'), 'known'],
    ['a host behind an alias', [`10.9.9.9 ${text(ED)}`], at('10.9.9.9', 22, 'cluster-a'), 'unknown'],
    ['another key', [`n1 ${text(ED_OTHER)}`], at('n1'), 'mismatch'],
    ['a key of another type', [`n1 ${text(ECDSA)}`], at('n1'), 'mismatch'],
    ['the right key after a wrong one', [`n1 ${text(ED_OTHER)}`, `n1 ${text(ED)}`], at('n1'), 'known'],
    ['a revoked key', [`n1 ${text(ED)}`, `@revoked * ${text(ED)}`], at('n1'), 'revoked'],
    ['a key revoked on the usual port', [`@revoked n1 ${text(ED)}`], at('n1', 2222), 'revoked'],
    ['a key revoked for others', [`n1 ${text(ED)}`, `@revoked n2 ${text(ED)}`], at('n1'), 'known'],
    ['another revoked key', [`@revoked n1 ${text(ED_OTHER)}`], at('n1'), 'unknown'],
    ['a cert-authority line', [`@cert-authority * ${text(ED)}`], at('n1'), 'unknown'],
    ['an unknown marker', [`@new n1 ${text(ED)}`], at('n1'), 'unknown'],
    ['two markers', [`@revoked @revoked n1 ${text(ED)}`], at('n1'), 'unknown'],
    ['a comment', [`# n1 ${text(ED)}`], at('n1'), 'unknown'],
    ['a type that is not that of the key', [`n1 ssh-rsa ${ED.blob}`], at('n1'), 'unknown'],
    ['a broken key', ['n1 ssh-ed25519 AAAA', 'n1 ssh-ed25519'], at('n1'), 'unknown'],
    ['no line', [], at('n1'), 'unknown'],
  ])('%s: %s', (_, lines, names, verdict) => {
    expect(checkHostKey(known(...lines), names, ED).kind).toBe(verdict);
  });

  it('reports the line with the other key, preferably of the same type', () => {
    const lines = ['# first', `n1 ${text(RSA)}`, `n1 ${text(ED_OTHER)}`];
    expect(checkHostKey(known(...lines), at('n1'), ED)).toMatchObject({ kind: 'mismatch', entry: { file: 'kh', line: 3 } });
    expect(checkHostKey(known(...lines), at('n1'), ECDSA)).toMatchObject({ kind: 'mismatch', entry: { line: 2 } });
  });
});

describe('orderHostKeyAlgorithms', () => {
  const DEFAULT = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521', 'rsa-sha2-512', 'rsa-sha2-256'];
  it.each([
    ['nothing known', [], DEFAULT],
    ['ECDSA known', [`n1 ${text(ECDSA)}`], ['ecdsa-sha2-nistp256', ...DEFAULT.filter((name) => name !== 'ecdsa-sha2-nistp256')]],
    ['RSA known', [`n1 ${text(RSA)}`], ['rsa-sha2-512', 'rsa-sha2-256', ...DEFAULT.slice(0, 4)]],
    ['a key known for the bare name, as in ssh', [`n1 ${text(RSA)}`], DEFAULT, 2222],
    ['a key known that is revoked as well', [`n1 ${text(RSA)}`, `@revoked * ${text(RSA)}`], DEFAULT],
    ['only a revoked key', [`@revoked * ${text(RSA)}`], DEFAULT],
    ['only a cert-authority line', [`@cert-authority n1 ${text(RSA)}`], DEFAULT],
  ])('%s', (_, lines, expected, port = 22) => expect(orderHostKeyAlgorithms(known(...lines), at('n1', port))).toEqual(expected));
});

it('prints fingerprints as ssh-keygen -l does', () => {
  const blob = 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
  expect(hostKeyFingerprint({ blob })).toBe('SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU');
  expect(hostKeyFromBytes(Buffer.from(blob, 'base64'))).toEqual({ type: 'ssh-ed25519', blob });
});

it.each([
  ['ssh-ed25519', 'ED25519'],
  ['ecdsa-sha2-nistp384', 'ECDSA'],
  ['ssh-rsa', 'RSA'],
])('names %s %s', (type, name) => expect(hostKeyTypeName(type)).toBe(name));
