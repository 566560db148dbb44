const CONTROLS = { '\x07': 'a', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v' };
const NAMED = new Map(Object.entries({ ...CONTROLS, '\\': '\\', '"': '"' }));
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Quotes text as Go's `%q` does; kubeadm writes kubeadm-flags.env and instance-config.yaml with it. */
export function quoteGo(text: string): string {
  return `"${Array.from(text, escapeCharacter).join('')}"`;
}

function escapeCharacter(char: string): string {
  const named = NAMED.get(char);
  if (named !== undefined) return `\\${named}`;
  if (PRINTABLE.test(char)) return char;
  const code = char.codePointAt(0) as number;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
}
