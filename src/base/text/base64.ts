/**
 * Decodes base64 as strictly as OpenSSH: padding is required, unused bits must be zero, and only the
 * whitespace of C's isspace is ignored.
 * @returns null for text that OpenSSH rejects
 * @see b64_pton of BIND and OpenBSD
 */
export function decodeStrictBase64(text: string): Buffer | null {
  const compact = text.replace(/[\t\n\v\f\r ]+/g, '');
  const bytes = Buffer.from(compact, 'base64');
  return bytes.toString('base64') === compact ? bytes : null;
}
