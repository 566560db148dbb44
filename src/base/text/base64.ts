/**
 * As strict as OpenSSH: padding is required, unused bits must be zero, only C's isspace is ignored; null:
 * rejected.
 * @see b64_pton of BIND and OpenBSD
 */
export function decodeStrictBase64(text: string): Buffer | null {
  const compact = text.replace(/[\t\n\v\f\r ]+/g, '');
  const bytes = Buffer.from(compact, 'base64');
  return bytes.toString('base64') === compact ? bytes : null;
}
