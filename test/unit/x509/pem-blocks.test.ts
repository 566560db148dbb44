import { describe, expect, it } from 'vitest';
import { pemBlocks } from '../../../src/x509/pem-blocks.ts';

const block = (label: string, body = 'AA==\n'): string => `-----BEGIN ${label}-----\n${body}-----END ${label}-----\n`;

describe('pemBlocks', () => {
  it('finds the blocks of all labels in their order, with any text around them', () => {
    const text = `Bag Attributes\n${block('CERTIFICATE', 'AQ==\n')}x\n${block('EC PRIVATE KEY')}${block('CERTIFICATE', 'Ag==\n').trimEnd()}`;
    expect(pemBlocks(text)).toEqual([
      { label: 'CERTIFICATE', pem: block('CERTIFICATE', 'AQ==\n') },
      { label: 'EC PRIVATE KEY', pem: block('EC PRIVATE KEY') },
      { label: 'CERTIFICATE', pem: block('CERTIFICATE', 'Ag==\n') },
    ]);
  });

  it('keeps headers of legacy encrypted keys', () => {
    const key = block('RSA PRIVATE KEY', 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAA==\n');
    expect(pemBlocks(key)).toEqual([{ label: 'RSA PRIVATE KEY', pem: key }]);
  });

  it.each([
    ['an END line of another label', '-----BEGIN CERTIFICATE-----\nAA==\n-----END PRIVATE KEY-----\n'],
    ['no END line', '-----BEGIN CERTIFICATE-----\nAA==\n'],
    ['no end of its BEGIN line', '-----BEGIN CERTIFICATE'],
    ['nothing', ''],
  ])('skips a block with %s, and continues after it', (_, text) => {
    expect(pemBlocks(text)).toEqual([]);
    expect(pemBlocks(`${text}${block('CERTIFICATE')}`)).toEqual([{ label: 'CERTIFICATE', pem: block('CERTIFICATE') }]);
  });

  it.each(['-----BEGIN CERTIFICATE-----', '-----BEGIN ', '-----', '-----BEGIN A-----\n-----END B-----\n'])(
    'parses 4 MB of %j in time',
    (piece) => {
      const text = piece.repeat(Math.ceil(4_000_000 / piece.length));
      const started = performance.now();
      expect(pemBlocks(text)).toEqual([]);
      expect(performance.now() - started).toBeLessThan(10_000);
    },
  );
});
