/** A certificate (PEM) in which some bytes, in hexadecimal digits, are replaced by as many others. Its signature is no longer valid. */
export function patched(pem: string, before: string, after: string): string {
  const hex = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64').toString('hex');
  if (hex.split(before).length !== 2 || before.length !== after.length) throw new Error(`cannot replace ${before}`);
  return pemOf(Buffer.from(hex.replace(before, after), 'hex'));
}

export function pemOf(der: Uint8Array): string {
  return `-----BEGIN CERTIFICATE-----\n${Buffer.from(der).toString('base64')}\n-----END CERTIFICATE-----\n`;
}
