/**
 * Decodes base64 as strictly as OpenSSH: padding is required, bits that are left over are zero, and only C's white space may stand in between.
 * @returns null where OpenSSH finds no base64
 * @see b64_pton of BIND and OpenBSD
 */
export function decodeStrictBase64(text: string): Buffer | null {
  const compact = text.replace(/[\t\n\v\f\r ]+/g, '');
  const bytes = Buffer.from(compact, 'base64');
  return bytes.toString('base64') === compact ? bytes : null;
}
