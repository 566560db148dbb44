import { createHash } from 'node:crypto';

/** Input of the name that `kubectl create configmap --append-hash` generates. */
interface HashedConfigMap {
  /** Name without the hash. */
  readonly name: string;
  /**
   * Null: the object has no `data`, for example after reading it from an API server. `kubectl create` always
   * sends one.
   */
  readonly data: Readonly<Record<string, string>> | null;
  readonly binaryData?: Readonly<Record<string, Uint8Array>>;
  readonly immutable?: boolean;
}

/**
 * The hash that kubectl appends to the name of a ConfigMap. It covers name, data, binaryData and, if set,
 * `immutable`, but not namespace, labels and annotations.
 * @returns ten characters
 * @see kubernetes/kubectl pkg/util/hash, built with Go 1.22 or later (earlier versions escape backspace and
 *   form feed differently)
 */
export function appendHashOf({ name, data, binaryData = {}, immutable }: HashedConfigMap): string {
  const binary = Object.entries(binaryData).map(([key, value]) => [key, Buffer.from(value).toString('base64')] as const);
  const members = [
    ...(binary.length === 0 ? [] : [`"binaryData":${encodeMap(binary)}`]),
    `"data":${data === null ? 'null' : encodeMap(Object.entries(data))}`,
    ...(immutable === undefined ? [] : [`"immutable":${immutable}`]),
    '"kind":"ConfigMap"',
    `"name":${encodeGoString(name)}`,
  ];
  const hex = createHash('sha256')
    .update(`{${members.join(',')}}`)
    .digest('hex');
  return hex.slice(0, 10).replace(/[013ae]/g, (digit) => SAFE[digit] as string);
}

/** The name with the hash appended: `my-config-gkdd4d9d6k`. */
export function appendHash(configMap: HashedConfigMap): string {
  return `${configMap.name}-${appendHashOf(configMap)}`;
}

/** kubectl replaces characters that could form words or look like other characters. */
const SAFE: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };

function encodeMap(entries: readonly (readonly [string, string])[]): string {
  const sorted = entries.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${sorted.map(([key, value]) => `${encodeGoString(key)}:${encodeGoString(value)}`).join(',')}}`;
}

/**
 * Writes a string as Go's encoding/json does: like JSON, with HTML characters escaped as well. Unpaired
 * surrogates become U+FFFD.
 */
function encodeGoString(text: string): string {
  return JSON.stringify(Buffer.from(text, 'utf8').toString('utf8')).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
