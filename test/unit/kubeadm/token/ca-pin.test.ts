import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createCa } from '../../../../lab/api-server/pki.ts';
import { caPinsOf, parseCaPin, publicKeyInfoOf } from '../../../../src/x509/ca-pin.ts';
import { KUBEADM_DRY_RUN } from '../../../support/kubeadm-dry-run.ts';

const { caPem, pin } = KUBEADM_DRY_RUN;
const HEX = pin.slice('sha256:'.length);

describe('caPinsOf', () => {
  it('returns the pin that kubeadm prints', () => {
    expect(caPinsOf(caPem)).toEqual([pin]);
  });

  it('returns each pin of a bundle once, in order, and ignores other PEM blocks', async () => {
    const other = (await createCa()).certPem;
    const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(caPinsOf(`a comment\n${other}${key}${caPem}${other}`)).toEqual([...(caPinsOf(other) ?? []), pin]);
  });

  it.each([
    ['nothing', ''],
    ['a key', String(generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }))],
    ['a block with other content', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    ['a valid and an invalid certificate', `${caPem}-----BEGIN CERTIFICATE-----\n****\n-----END CERTIFICATE-----\n`],
    ['a truncated certificate', caPem.slice(0, 300)],
    ['an oversized bundle', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'.repeat(2_000)],
  ])('rejects %s', (_, pem) => {
    expect(caPinsOf(pem)).toBeNull();
  });
});

describe('publicKeyInfoOf', () => {
  it('returns the bytes that Node encodes', () => {
    const certificate = new X509Certificate(caPem);
    const again = certificate.publicKey.export({ type: 'spki', format: 'der' });
    expect(Buffer.from(publicKeyInfoOf(certificate.raw))).toEqual(again);
  });

  it('supports certificates without a version', () => {
    // In version 1, the optional first field does not exist.
    const part = (tag: number, ...content: number[]) => [tag, content.length, ...content];
    const key = part(0x30, 1, 2, 3);
    const signature = [...part(0x30), ...part(3)];
    const body = part(0x30, ...part(2, 1), ...part(0x30), ...part(0x30), ...part(0x30), ...part(0x30), ...key);
    expect([...publicKeyInfoOf(Uint8Array.from(part(0x30, ...body, ...signature)))]).toEqual(key);
  });

  it('never reads past the end: a truncated certificate is an error', () => {
    const { raw } = new X509Certificate(caPem);
    for (let length = 0; length < raw.length; length++) expect(() => publicKeyInfoOf(raw.subarray(0, length))).toThrow();
  });

  it.each([
    ['an indefinite length', [0x30, 0x80, 0, 0]],
    ['a length of five bytes', [0x30, 0x85, 0, 0, 0, 0, 1, 0]],
    ['a length beyond the end', [0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x30, 0]],
    ['another type', [0x31, 2, 0x30, 0]],
    ['nothing', []],
  ])('rejects %s', (_, bytes) => {
    expect(() => publicKeyInfoOf(Uint8Array.from(bytes))).toThrow();
  });
});

describe('parseCaPin', () => {
  it('accepts prefix and digits in any case', () => {
    expect(parseCaPin(`SHA256:${HEX.toUpperCase()}`)).toBe(pin);
  });

  it.each([
    ['nothing', ''],
    ['no format', HEX],
    ['another format', `sha512:${HEX}`],
    ['another format with 64 bytes', `sha512:${HEX}${HEX}`],
    ['too short', pin.slice(0, -1)],
    ['too long', `${pin}0`],
    ['two more digits', `${pin}00`],
    ['a letter that is not a hexadecimal digit', `sha256:g${HEX.slice(1)}`],
    ['a leading space', ` ${pin}`],
    ['a trailing space', `${pin} `],
    ['a line end', `${pin}\n`],
    ['a pin on the second line', `x\n${pin}`],
    ['colons as printed by openssl', `sha256:${HEX.replace(/(..)(?=.)/g, '$1:')}`],
    ['a second pin after it', `${pin},${pin}`],
    ['digits of another script', `sha256:${'\u0660'.repeat(64)}`],
    ['a null byte', `sha256:${HEX.slice(0, 63)}\0`],
    ['0x', `sha256:0x${HEX.slice(2)}`],
  ])('rejects %s', (_, text) => {
    expect(parseCaPin(text)).toBeNull();
  });
});
