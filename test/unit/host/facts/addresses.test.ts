import { describe, expect, it } from 'vitest';
import { localAddresses, parseFibTrie, parseIfInet6 } from '../../../../src/host/facts/addresses.ts';
import { parseFact, textFile } from '../../../support/answers.ts';
import { fixture } from '../../../support/fixture.ts';

const proc = (name: string): string => fixture(import.meta.url, `fixtures/proc/${name}`);

describe('parseFibTrie', () => {
  it.each([
    ['one private address', proc('net-fib_trie-6.18-private.txt'), ['10.77.0.11']],
    ['one public address', proc('net-fib_trie-6.18-public.txt'), ['192.0.2.2']],
    ['a network address that is not an address of the host', '  |-- 10.0.0.0\n     /24 link UNICAST\n', []],
    ['the same address in Main and Local', '  |-- 10.0.0.1\n     /32 host LOCAL\n  |-- 10.0.0.1\n     /32 host LOCAL\n', ['10.0.0.1']],
    ['an inner node that is an address', '  +-- 10.0.0.2/31 2 0 2\n     /32 host LOCAL\n', ['10.0.0.2']],
    ['a loopback alias', '  |-- 127.0.0.53\n     /32 host LOCAL\n', []],
    ['nothing', '', []],
    ['truncated', '  |-- 10.0.', []],
  ])('%s', (_, text, expected) => {
    expect(parseFibTrie(text)).toEqual(expected);
  });
});

describe('parseIfInet6', () => {
  it.each([
    ['one unique local address', proc('net-if_inet6-6.18.txt'), ['fd00::2']],
    [
      'RFC 5952: shortens the longest run of zeros, the first of two, never a single zero',
      proc('net-if_inet6-dual-stack.txt'),
      ['2001:db8::10', '2001:db8:1:0:1::1', 'fd00:56::', '2001:db8:1:2:3:4:5:ffff', '2001:db8:0:1::1'],
    ],
    ['loopback only', '00000000000000000000000000000001 01 80 10 80       lo\n', []],
    ['no IPv6', '', []],
    ['broken lines', 'fd00 01 40 00 80 eth0\nzz000000000000000000000000000002 04 40 00 82 eth0\n', []],
  ])('%s', (_, text, expected) => {
    expect(parseIfInet6(text)).toEqual(expected);
  });
});

describe('localAddresses', () => {
  it('combines both families', () => {
    const fib = textFile(proc('net-fib_trie-6.18-private.txt'));
    expect(parseFact(localAddresses, { fib, v6: textFile(proc('net-if_inet6-6.18.txt')) })).toEqual(['10.77.0.11', 'fd00::2']);
  });

  it('works with one family when the kernel supports only that one', () => {
    expect(parseFact(localAddresses, { v6: textFile(proc('net-if_inet6-6.18.txt')) })).toEqual(['fd00::2']);
  });

  it('is null without /proc', () => {
    expect(parseFact(localAddresses, {})).toBeNull();
  });
});
