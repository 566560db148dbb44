import { maskPodSource } from './mask-pod-source.ts';

const SECRET_NAMES =
  'token|password|client-key-data|id-token|refresh-token|access-token|client-secret|secret|token-secret|certificateKey|tlsBootstrapToken';
/** A key of a YAML block or of a flow mapping (JSON too), up to the start of its value. */
const SECRET_KEY = `(?:^[ \\t]*(?:-[ \\t]+)*|[{,][ \\t]*)["']?(?:${SECRET_NAMES})["']?[ \\t]*:`;
const BLOCK_SCALAR = new RegExp(
  `^(([ \\t]*)(?:- +)*["']?(?:${SECRET_NAMES})["']?[ \\t]*:[ \\t]*)[|>].*(?:\\r?\\n(?:\\2[ \\t].*|[ \\t]*(?=\\r?\\n)))+`,
  'gim',
);
const QUOTED = new RegExp(`(${SECRET_KEY}[ \\t]*)(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*')`, 'gim');
const PLAIN_IN_FLOW = new RegExp(`([{,][ \\t]*["']?(?:${SECRET_NAMES})["']?[ \\t]*:[ \\t]+)[^"'\\s,}[{][^,}\\n]*`, 'gi');
const PLAIN = new RegExp(`^([ \\t]*(?:-[ \\t]+)*["']?(?:${SECRET_NAMES})["']?[ \\t]*:[ \\t]*)(?!["'{[\\s]|\\[secret\\]).+$`, 'gim');

/** Replaces texts that look like secrets in YAML or JSON (a kubeconfig, a join configuration) by `[secret]`. */
export function maskSecrets(text: string): string {
  return maskPodSource(withoutPrivateKeys(text))
    .replace(BLOCK_SCALAR, (_, key: string) => `${key}[secret]`)
    .replace(QUOTED, (_, key: string) => `${key}[secret]`)
    .replace(PLAIN_IN_FLOW, (_, key: string) => `${key}[secret]`)
    .replace(PLAIN, (_, key: string) => `${key}[secret]`)
    .replace(/:\/\/[^\s/@"']+@/g, '://[secret]@')
    .replace(/\S+/g, withoutProxyUser)
    .replace(/(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/g, '[secret]')
    .replace(/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, '[secret]');
}

/** Masks the user of a proxy variable up to the last @ of a word: a password written by hand may contain any character. */
function withoutProxyUser(word: string): string {
  const url = word.indexOf('://');
  const end = word.lastIndexOf('@');
  return end > url && url > 0 && /_proxy=/i.test(word.slice(0, url)) ? `${word.slice(0, url)}://[secret]${word.slice(end)}` : word;
}

/** The last key also when its end is cut off. Linear time for any number of unmatched BEGIN lines. */
function withoutPrivateKeys(text: string): string {
  let result = '';
  let from = 0;
  for (let begin = nextPrivateKey(text, BEGIN, 0); begin !== null; begin = nextPrivateKey(text, BEGIN, from)) {
    result += `${text.slice(from, begin.at)}[secret]`;
    from = nextPrivateKey(text, END, begin.end)?.end ?? text.length;
  }
  return result + text.slice(from);
}

const BEGIN = '-----BEGIN ';
const END = '-----END ';

/** The next line that begins or ends a private key of any type. */
function nextPrivateKey(text: string, mark: string, from: number): { readonly at: number; readonly end: number } | null {
  for (let at = text.indexOf(mark, from); at >= 0; at = text.indexOf(mark, at + mark.length)) {
    const line = /^[A-Z ]*PRIVATE KEY-----/.exec(text.slice(at + mark.length, at + mark.length + 100));
    if (line !== null) return { at, end: at + mark.length + line[0].length };
  }
  return null;
}
