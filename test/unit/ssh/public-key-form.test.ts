import { describe, expect, it } from 'vitest';
import { isPublicKeyForm } from '../../../src/ssh/public-key-form.ts';

const REAL = {
  ed25519: 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl',
  ecdsa:
    'AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEe2MqeohwidxXC8+4yphq99TtH+0EkAWYgjb5Kbv4N4sLto/uLalz3glntiGREJqsnw5H1gbSH9pg9lBiq0bKk=',
};
const bytesOf = (blob: string): Buffer => Buffer.from(blob, 'base64');
const strings = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, Buffer.from(part)];
    }),
  );

describe('isPublicKeyForm', () => {
  it.each(Object.entries(REAL))('takes a key made by ssh-keygen: %s', (_, blob) => expect(isPublicKeyForm(bytesOf(blob))).toBe(true));

  it.each(Object.entries(REAL))('takes no part of it, and nothing after it: %s', (_, blob) => {
    const whole = bytesOf(blob);
    for (let length = 0; length < whole.length; length++)
      expect([length, isPublicKeyForm(whole.subarray(0, length))]).toEqual([length, false]);
    expect(isPublicKeyForm(Buffer.concat([whole, Buffer.of(0)]))).toBe(false);
    expect(isPublicKeyForm(Buffer.concat([whole, strings('more')]))).toBe(false);
  });

  it.each([
    ['a type nobody knows', strings('ssh-new', Buffer.alloc(32))],
    ['the name of a property of every object', strings('constructor', Buffer.alloc(32))],
    ['another curve', strings('ecdsa-sha2-nistp256', 'nistp384', Buffer.concat([Buffer.of(4), Buffer.alloc(64)]))],
    ['a compressed point', strings('ecdsa-sha2-nistp256', 'nistp256', Buffer.concat([Buffer.of(2), Buffer.alloc(32)]))],
    ['an RSA key of 512 bits', strings('ssh-rsa', Buffer.of(1, 0, 1), Buffer.concat([Buffer.of(0, 0x80), Buffer.alloc(63)]))],
    ['a negative exponent', strings('ssh-rsa', Buffer.of(0x81), Buffer.concat([Buffer.of(0, 0x80), Buffer.alloc(255)]))],
  ])('takes no %s', (_, bytes) => expect(isPublicKeyForm(bytes)).toBe(false));

  it('takes an RSA key of 2048 bits', () => {
    expect(isPublicKeyForm(strings('ssh-rsa', Buffer.of(1, 0, 1), Buffer.concat([Buffer.of(0, 0x80), Buffer.alloc(255)])))).toBe(true);
  });
});
