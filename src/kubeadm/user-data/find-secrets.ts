import { maskSecrets } from '../../base/text/mask.ts';

export interface FoundSecret {
  readonly what: string;
  /** Null in a binary file. */
  readonly line: number | null;
}

/** Credentials of registries and proxies, in YAML, JSON, TOML and environment files. */
const PASSWORD = /(?:^|[{,])[ \t]*["']?(?:auth|passw(?:or)?d|identitytoken|registrytoken)["']?[ \t]*[:=][ \t]*["']?[^"'\s,}]/im;
const USER_IN_URL = /:\/\/[^\s/:@]+:[^\s/@]+@/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----\r?\n[A-Za-z0-9+/=]{16}/;

/**
 * Finds a private key, a token or a password in a file. In case of doubt, a text is a secret.
 * @returns the first one, without its value; null: none
 */
export function secretIn(content: Buffer): FoundSecret | null {
  const text = content.toString('latin1');
  if (text.includes('\0')) return PRIVATE_KEY.test(text) ? { what: 'a private key', line: null } : null;
  const masked = maskSecrets(text);
  const found = [firstDifference(text, masked), text.search(PASSWORD), text.search(USER_IN_URL)].filter((at) => at >= 0);
  if (found.length === 0) return null;
  const at = Math.min(...found);
  const what = text.startsWith('-----BEGIN', at) ? 'a private key' : 'a token, a key or a password';
  return { what, line: text.slice(0, at).split('\n').length };
}

function firstDifference(text: string, masked: string): number {
  if (text === masked) return -1;
  let at = 0;
  while (text[at] === masked[at]) at += 1;
  return at;
}
