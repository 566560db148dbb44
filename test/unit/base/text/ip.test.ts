import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressAt,
  type Cidr,
  cidrContains,
  cidrsOverlap,
  formatCidr,
  formatIp,
  hostBits,
  type IpAddress,
  isGlobalUnicast,
  isLoopback,
  isUnspecified,
  parseCidr,
  parseIp,
} from '../../../../src/base/text/ip.ts';

const ip = (text: string) => parseIp(text) as IpAddress;
const cidr = (text: string) => parseCidr(text) as Cidr;

describe('parseIp and formatIp', () => {
  it.each([
    ['1.2.3.4', '1.2.3.4'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['FD00::A', 'fd00::a'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8::0001', '2001:db8::1'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
    ['::1.2.3.4', '::102:304'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:0102:0304', '1.2.3.4'],
  ])('%s', (text, expected) => {
    expect(formatIp(ip(text))).toBe(expected);
  });

  it.each([
    '',
    '1',
    '1.2',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.',
    '.1.2.3',
    '01.2.3.4',
    '1.2.3.04',
    '256.1.1.1',
    '1.2.3.4/8',
    ' 1.2.3.4',
    '1.2.3.4 ',
    '1.2.3.-4',
    '+1.2.3.4',
    '0x1.2.3.4',
    ':',
    ':::',
    ':1',
    '1:',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '::12345',
    '::g',
    'fe80::1%eth0',
    '::1.2.3',
    '::01.2.3.4',
    '1.2.3.4::',
    '::1.2.3.4:5',
    '1:2:3:4:5:6:7:1.2.3.4',
    '[::1]',
    '١.2.3.4',
  ])('refuses %j', (text) => {
    expect(parseIp(text)).toBeNull();
  });

  it('parses its own output', () => {
    const address = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }).map((value): IpAddress => ({ family: 4, value })),
      fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }).map((value): IpAddress => ({ family: 6, value })),
      fc
        .array(fc.constantFrom(0n, 0n, 1n, 0xffffn), { minLength: 8, maxLength: 8 })
        .map((groups): IpAddress => ({ family: 6, value: groups.reduce<bigint>((a, b) => (a << 16n) | b, 0n) })),
    );
    fc.assert(
      fc.property(address, (each) => {
        if (each.family === 6 && each.value >> 32n === 0xffffn) return;
        expect(parseIp(formatIp(each))).toEqual(each);
      }),
    );
  });
});

describe('parseCidr', () => {
  it.each([
    ['10.96.0.12/24', '10.96.0.0/24'],
    ['10.0.0.0/08', '10.0.0.0/8'],
    ['1.2.3.4/32', '1.2.3.4/32'],
    ['1.2.3.4/0', '0.0.0.0/0'],
    ['fd03::ff/112', 'fd03::/112'],
    ['::/0', '::/0'],
  ])('%s', (text, expected) => {
    expect(formatCidr(cidr(text))).toBe(expected);
  });

  it.each([
    '',
    '10.0.0.0',
    '10.0.0.0/',
    '/8',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/ 8',
    '10.0.0.0/+8',
    '::/129',
    'fd03:x::/112',
    '::ffff:10.0.0.0/104',
    '010.0.0.0/8',
    '10.0.0.0/0008',
  ])('refuses %j', (text) => {
    expect(parseCidr(text)).toBeNull();
  });
});

describe('networks', () => {
  it.each([
    ['10.96.0.0/12', 0, '10.96.0.0'],
    ['10.96.0.0/12', 10, '10.96.0.10'],
    ['10.0.0.0/24', 255, '10.0.0.255'],
    ['10.0.0.0/24', 256, null],
    ['10.0.0.0/32', 1, null],
    ['fd03::/112', 10, 'fd03::a'],
    ['fd03::/112', 65536, null],
  ])('%s has at index %i: %s', (network, index, expected) => {
    const address = addressAt(cidr(network), index);
    expect(address && formatIp(address)).toBe(expected);
  });

  it('counts host bits', () => {
    expect([hostBits(cidr('10.0.0.0/12')), hostBits(cidr('fd00::/112'))]).toEqual([20, 16]);
  });

  it.each([
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['0.0.0.0/0', '1.2.3.4', true],
    ['0.0.0.0/0', '::1', false],
    ['fd00::/8', 'fdff::1', true],
  ])('%s contains %s: %s', (network, address, expected) => {
    expect(cidrContains(cidr(network), ip(address))).toBe(expected);
  });

  it.each([
    ['10.0.0.0/8', '10.1.0.0/16', true],
    ['10.1.0.0/16', '10.0.0.0/8', true],
    ['10.0.0.0/16', '10.1.0.0/16', false],
    ['10.0.0.0/8', 'fd00::/8', false],
  ])('%s and %s overlap: %s', (a, b, expected) => {
    expect(cidrsOverlap(cidr(a), cidr(b))).toBe(expected);
  });

  it.each([
    ['192.168.0.1', true],
    ['10.0.0.1', true],
    ['2001:db8:85a3::8a2e:370:7334', true],
    ['fd00::1', true],
    ['0.0.0.0', false],
    ['::', false],
    ['127.0.0.1', false],
    ['::1', false],
    ['255.255.255.255', false],
    ['224.0.0.1', false],
    ['ff02::1', false],
    ['169.254.3.4', false],
    ['fe80::1', false],
  ])('%s can be reached: %s', (text, expected) => {
    expect(isGlobalUnicast(ip(text))).toBe(expected);
  });

  it('recognises loopback and unspecified addresses', () => {
    expect(['127.1.2.3', '::1', '128.0.0.1', '::2'].map((text) => isLoopback(ip(text)))).toEqual([true, true, false, false]);
    expect(['0.0.0.0', '::', '0.0.0.1'].map((text) => isUnspecified(ip(text)))).toEqual([true, true, false]);
  });
});
