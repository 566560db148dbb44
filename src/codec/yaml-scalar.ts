/** Integers beyond 2^53 are bigint, so that range checks are exact. */
export type YamlScalar =
  | { readonly type: 'null'; readonly value: null }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'int'; readonly value: number | bigint }
  | { readonly type: 'float'; readonly value: number }
  | { readonly type: 'timestamp'; readonly value: string }
  | { readonly type: 'string'; readonly value: string };

/** Texts that are not strings, in all spellings. */
const WORDS: ReadonlyMap<string, YamlScalar> = new Map<string, YamlScalar>([
  ...words(['', '~', 'null', 'Null', 'NULL'], { type: 'null', value: null }),
  ...words(['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'], { type: 'bool', value: true }),
  ...words(['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'], { type: 'bool', value: false }),
  ...words(['.nan', '.NaN', '.NAN'], { type: 'float', value: Number.NaN }),
  ...words(['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'], { type: 'float', value: Number.POSITIVE_INFINITY }),
  ...words(['-.inf', '-.Inf', '-.INF'], { type: 'float', value: Number.NEGATIVE_INFINITY }),
]);
const LONGEST_WORD = Math.max(...[...WORDS.keys()].map(({ length }) => length));

function words(spellings: readonly string[], scalar: YamlScalar): readonly (readonly [string, YamlScalar])[] {
  return spellings.map((spelling) => [spelling, scalar]);
}

/** Most numbers: exact as a JavaScript number. */
const SHORT_DECIMAL = /^(?:0|[1-9][0-9]{0,14})$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const DOT_FLOAT = /^\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)?$/;
const TIMESTAMP =
  /^\d{4}-(?:1[0-2]|0?[1-9])-(?:3[01]|[12]\d|0?[1-9])(?:[Tt]\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)| \d{1,2}:\d{1,2}:\d{1,2}(?:\.\d+)?)?$/;

/**
 * The type that Kubernetes components assign to an unquoted scalar: YAML 1.1 words for booleans and null,
 * integers in Go's notations (`0x32`, `062`, `0o62`, `0b1`, `1_000`), no base 60.
 * @see go.yaml.in/yaml/v2 resolve.go, which sigs.k8s.io/yaml and therefore kubelet and kubeadm use
 */
export function resolvePlainScalar(text: string): YamlScalar {
  const word = text.length > LONGEST_WORD ? undefined : WORDS.get(text);
  if (word !== undefined) return word;
  const first = text.charCodeAt(0);
  if (first === 0x2e)
    return DOT_FLOAT.test(text) ? { type: 'float', value: Number(text.replaceAll('_', '')) } : { type: 'string', value: text };
  if (!isDigit(first) && first !== 0x2b && first !== 0x2d) return { type: 'string', value: text };
  return resolveNumber(text);
}

function resolveNumber(text: string): YamlScalar {
  if (SHORT_DECIMAL.test(text)) return { type: 'int', value: Number(text) };
  if (TIMESTAMP.test(text)) return { type: 'timestamp', value: text };
  const plain = text.replaceAll('_', '');
  const int = parseGoInteger(plain.replace(SIGNED_BINARY, '$10b$2'));
  if (int !== null) return { type: 'int', value: int };
  if (FLOAT.test(plain)) {
    const value = Number(plain);
    if (Number.isFinite(value)) return { type: 'float', value };
  }
  return { type: 'string', value: text };
}

const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;
/** Go's YAML parser also accepts a sign after the prefix. */
const SIGNED_BINARY = /^0b([-+])([01]+)$/;

/** Go's strconv.ParseInt/ParseUint with base 0; null: not an integer, or beyond 64 bits. */
function parseGoInteger(text: string): number | bigint | null {
  const match = INTEGER.exec(text);
  if (!match) return null;
  const [, sign, hex, binary, octal, decimal] = match;
  const digits =
    hex !== undefined ? `0x${hex}` : binary !== undefined ? `0b${binary}` : octal !== undefined ? `0o${octal}` : (decimal ?? '0');
  const value = sign === '-' ? -BigInt(digits) : BigInt(digits);
  if (value < -(2n ** 63n) || value >= (sign === '+' ? 2n ** 63n : 2n ** 64n)) return null;
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
