import { maskSecrets } from './mask.ts';

/** A value that is written out: no variable, command substitution or placeholder. */
const VALUE = '["\']?(?!(?:true|false|null|~)["\']?[ \\t]*(?:[,}#\\r\\n]|$))[^\\s"\'$<{\\[(,}|>&]';
const NAME = '(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)s?';

/** Texts with which programs receive credentials, in YAML, JSON, TOML, environment files and command lines. */
const PATTERNS: readonly RegExp[] = [
  new RegExp(`(?<![\\w.-])[\\w.-]{0,200}${NAME}["']?[ \\t]{0,20}[:=][ \\t]{0,20}${VALUE}`, 'im'),
  new RegExp(`(?:^|[{,])[ \\t]*["']?auth["']?[ \\t]*[:=][ \\t]*${VALUE}`, 'im'),
  new RegExp(`(?<!\\S)--?[\\w-]{0,40}${NAME}[ \\t]+${VALUE}`, 'im'),
  new RegExp(`authorization["']?[ \\t]{0,20}[:=][ \\t]{0,20}["']?[a-z]{1,20}[ \\t]+${VALUE}`, 'i'),
  /(?<!\S)(?:-u|--user|--proxy-user)[ \t=]{0,4}["']?[A-Za-z][\w.@-]{0,99}:["']?[^\s"'$]/m,
  /:\/\/[^\s/:@]{1,200}:[^\s/@$]{1,200}@/,
  // crypt(5): hashes of passwords, as in /etc/shadow.
  /\$(?:1|5|6|y|gy|7|2[abxy])\$[./A-Za-z0-9,=$]{8}/,
];

/**
 * The offset of a text that looks like a private key, a token or a password; null: none. Compressed or
 * encrypted texts, and secrets under other names, are not found.
 */
export function findSecret(text: string): number | null {
  const found = [firstDifference(text, maskSecrets(text)), ...PATTERNS.map((pattern) => text.search(pattern))].filter((at) => at >= 0);
  return found.length === 0 ? null : Math.min(...found);
}

function firstDifference(text: string, masked: string): number {
  if (text === masked) return -1;
  let at = 0;
  while (text[at] === masked[at]) at += 1;
  return at;
}
