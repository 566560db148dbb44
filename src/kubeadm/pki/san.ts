import { isDnsSubdomain } from '../../base/text/dns-subdomain.ts';
import { quoteGo } from '../../base/text/go-quote.ts';
import { formatIp, parseIp } from '../../base/text/ip.ts';

const MAX_LENGTH = 253;

/** A subject alternative name of a certificate: a DNS name or an IP address. */
export interface San {
  readonly kind: 'DNS' | 'IP';
  readonly written: string;
  /** Canonical form for comparison, see `canonicalName`. */
  readonly value: string;
  /** `DNS:node2` or `IP:10.0.0.2`, with non-ASCII characters escaped for printing. */
  readonly shown: string;
}

export function dnsSan(name: string): San {
  return { kind: 'DNS', written: name, value: canonicalName(name), shown: `DNS:${printableName(name)}` };
}

export function ipSan(address: string): San {
  const value = canonicalName(address);
  return { kind: 'IP', written: address, value, shown: `IP:${printableName(value)}` };
}

/** Canonical form for comparison: RFC 5952 for addresses; lower case without a final dot for DNS names. */
export function canonicalName(text: string): string {
  const address = parseIp(text);
  return address === null ? text.toLowerCase().replace(/\.$/, '') : formatIp(address);
}

/**
 * A name for a message, at most 253 characters: unchanged if printable ASCII without spaces, otherwise quoted
 * with escapes.
 */
export function printableName(name: string): string {
  const start = name.length <= MAX_LENGTH ? name : `${name.slice(0, MAX_LENGTH)}...`;
  return /^[!-~]+$/.test(start) ? start : quoteGo(start).replace(/[^ -~]/gu, escapeCharacter);
}

/**
 * Why a certificate may not contain a DNS SAN, as a clause; null when it may. Only letters, digits, hyphens
 * and dots are accepted: no wildcards, control, invisible or non-ASCII characters, and no IP addresses, which
 * some clients match against DNS SANs.
 * @see RFC 5280 section 4.2.1.6 (IA5String), RFC 1123 section 2.1
 */
export function invalidDnsName(name: string): string | null {
  if (name.includes('*')) return 'is a wildcard';
  if (!isDnsSubdomain(name.toLowerCase())) return 'is not a valid DNS name';
  return /^\d+$/.test(name.split('.').at(-1) ?? '') ? 'ends in a number like an IP address' : null;
}

function escapeCharacter(char: string): string {
  return `\\u{${(char.codePointAt(0) as number).toString(16)}}`;
}
