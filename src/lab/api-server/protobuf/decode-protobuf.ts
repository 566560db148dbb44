import type { Json, JsonObject } from '../../../base/json.ts';
import { MESSAGES } from './messages.ts';

interface Field {
  readonly name: string;
  /** For example `string`, `*int`, `[]core.Taint`, `map:quantity`. */
  readonly type: string;
}
type Message = ReadonlyMap<number, Field>;

const MAGIC = [0x6b, 0x38, 0x73, 0x00];
const ENVELOPE = 'envelope';
/** API groups by the first part of their message names. */
const PACKAGES: Readonly<Record<string, string>> = {
  '': 'core',
  apps: 'apps',
  'authentication.k8s.io': 'authentication',
  'authorization.k8s.io': 'authorization',
  'certificates.k8s.io': 'certificates',
  'coordination.k8s.io': 'coordination',
  'rbac.authorization.k8s.io': 'rbac',
};
const NO_TIME_SECONDS = -62135596800;

/**
 * Decodes an object in Kubernetes' protobuf format, as kubectl, kubeadm and kubelets send it. Empty strings,
 * zeros and empty messages are omitted where Go cannot distinguish them from absent ones.
 * @throws Error for invalid bytes or an unknown kind
 * @see k8s.io/apimachinery pkg/runtime/serializer/protobuf (1.36)
 */
export function decodeProtobuf(bytes: Uint8Array): JsonObject {
  if (!MAGIC.every((byte, index) => bytes[index] === byte)) throw new Error('provided data does not appear to be a protobuf message');
  const known = messages();
  const envelope = new Reader(bytes.subarray(MAGIC.length), known).message(ENVELOPE);
  const { apiVersion = '', kind = '' } = (envelope.typeMeta ?? {}) as { readonly apiVersion?: string; readonly kind?: string };
  const raw = Buffer.from(String(envelope.raw ?? ''), 'base64');
  const name = kind === 'DeleteOptions' ? 'meta.DeleteOptions' : `${PACKAGES[apiVersion.split('/').slice(0, -1).join('/')]}.${kind}`;
  if (!known.has(name)) throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`);
  return { apiVersion, kind, ...new Reader(raw, known).message(name) };
}

let parsed: ReadonlyMap<string, Message> | null = null;

function messages(): ReadonlyMap<string, Message> {
  parsed ??= new Map([
    ...MESSAGES.trim().split('\n').map(parseMessage),
    [
      ENVELOPE,
      new Map([
        [1, { name: 'typeMeta', type: 'typeMeta' }],
        [2, { name: 'raw', type: 'bytes' }],
      ]),
    ] as const,
    [
      'typeMeta',
      new Map([
        [1, { name: 'apiVersion', type: 'string' }],
        [2, { name: 'kind', type: 'string' }],
      ]),
    ] as const,
  ]);
  return parsed;
}

function parseMessage(line: string): readonly [string, Message] {
  const [name = '', fields = ''] = line.split(': ');
  return [
    name,
    new Map(
      fields.split('; ').map((text) => {
        const [number, field = '', type = ''] = text.split(' ');
        return [Number(number), { name: field, type }] as const;
      }),
    ),
  ];
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #known: ReadonlyMap<string, Message>;
  #at = 0;

  constructor(bytes: Uint8Array, known: ReadonlyMap<string, Message>) {
    this.#bytes = bytes;
    this.#known = known;
  }

  message(name: string): Record<string, Json> {
    const fields = this.#known.get(name);
    if (!fields) throw new Error(`unknown message ${name}`);
    const result: Record<string, Json> = {};
    const lists = new Map<string, Json[]>();
    const maps = new Map<string, (readonly [string, Json])[]>();
    while (this.#at < this.#bytes.length) {
      const { number, wire } = this.#tag();
      const field = fields.get(number);
      if (!field) this.#skip(wire);
      else if (field.type.startsWith('[]')) append(lists, field.name, this.#present(field.type.slice('[]'.length), wire));
      else if (field.type.startsWith('map:')) append(maps, field.name, this.#entry(field.type.slice('map:'.length)));
      else this.#take(result, field, wire);
    }
    for (const [key, items] of lists) result[key] = items;
    for (const [key, entries] of maps) result[key] = Object.fromEntries(entries);
    return result;
  }

  #take(result: Record<string, Json>, { name, type }: Field, wire: number): void {
    const value = type.startsWith('*') ? this.#present(type.slice(1), wire) : this.#value(type, wire);
    if (name === '-') Object.assign(result, value);
    else if (value !== null) result[name] = value;
  }

  #present(type: string, wire: number): Json {
    return this.#value(type, wire) ?? zeroOf(type);
  }

  /** Null for values that are indistinguishable from absent ones. */
  #value(type: string, wire: number): Json {
    switch (type) {
      case 'bool':
        return this.#varint() === 0n ? null : true;
      case 'int': {
        const value = Number(BigInt.asIntN(64, this.#varint()));
        return value === 0 ? null : value;
      }
      case 'string':
        return textOrNull(Buffer.from(this.#chunk()).toString('utf8'));
      case 'bytes':
        return textOrNull(Buffer.from(this.#chunk()).toString('base64'));
      case 'raw':
        return rawOf(this.#numbers());
      case 'time':
      case 'microtime':
        return timeOf(this.#numbers(), type === 'microtime' ? 6 : 0);
      case 'duration':
        return `${Number(this.#numbers().get(1) ?? 0n) / 1e9}s`;
      case 'quantity':
        return this.#texts().get(1) ?? '0';
      case 'intOrString':
        return this.#intOrString();
      default: {
        if (wire !== 2) throw new Error(`field of ${type} has wire type ${wire}`);
        const inner = new Reader(this.#chunk(), this.#known);
        if (type.startsWith('items:')) return inner.#items(type.slice('items:'.length));
        const value = inner.message(type);
        return Object.keys(value).length === 0 ? null : value;
      }
    }
  }

  #entry(type: string): readonly [string, Json] {
    const inner = new Reader(this.#chunk(), this.#known);
    let key = '';
    let value: Json = null;
    while (inner.#at < inner.#bytes.length) {
      const { number, wire } = inner.#tag();
      if (number === 1) key = Buffer.from(inner.#chunk()).toString('utf8');
      else if (number === 2) value = inner.#value(type, wire);
      else inner.#skip(wire);
    }
    return [key, value ?? zeroOf(type)];
  }

  #items(type: string): readonly Json[] {
    const items: Json[] = [];
    while (this.#at < this.#bytes.length) {
      const { wire } = this.#tag();
      items.push(this.#present(type, wire));
    }
    return items;
  }

  #intOrString(): Json {
    const inner = new Reader(this.#chunk(), this.#known);
    let [isText, number, text] = [false, 0, ''];
    while (inner.#at < inner.#bytes.length) {
      const tag = inner.#tag();
      if (tag.number === 1) isText = inner.#varint() === 1n;
      else if (tag.number === 2) number = Number(BigInt.asIntN(64, inner.#varint()));
      else if (tag.number === 3) text = Buffer.from(inner.#chunk()).toString('utf8');
      else inner.#skip(tag.wire);
    }
    return isText ? text : number;
  }

  /** The fields of a small message: numbers by value, chunks by position. */
  #numbers(): ReadonlyMap<number, bigint | Uint8Array> {
    const inner = new Reader(this.#chunk(), this.#known);
    const found = new Map<number, bigint | Uint8Array>();
    while (inner.#at < inner.#bytes.length) {
      const { number, wire } = inner.#tag();
      found.set(number, wire === 0 ? inner.#varint() : inner.#chunk());
    }
    return found;
  }

  #texts(): ReadonlyMap<number, string> {
    return new Map(
      [...this.#numbers()].map(([number, value]) => [
        number,
        typeof value === 'bigint' ? String(value) : Buffer.from(value).toString('utf8'),
      ]),
    );
  }

  #tag(): { readonly number: number; readonly wire: number } {
    const tag = Number(this.#varint());
    return { number: tag >>> 3, wire: tag & 7 };
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new Error('unexpected end of the message');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error('a number has more than 64 bits');
  }

  #chunk(): Uint8Array {
    const length = Number(this.#varint());
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new Error('unexpected end of the message');
    const chunk = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return chunk;
  }

  #skip(wire: number): void {
    if (wire === 0) this.#varint();
    else if (wire === 2) this.#chunk();
    else if (wire === 1 || wire === 5) this.#at += wire === 1 ? 8 : 4;
    else throw new Error(`wire type ${wire} is not known`);
  }
}

function append<T>(collected: Map<string, T[]>, name: string, item: T): void {
  const known = collected.get(name);
  if (known) known.push(item);
  else collected.set(name, [item]);
}

function textOrNull(text: string): string | null {
  return text === '' ? null : text;
}

function rawOf(fields: ReadonlyMap<number, bigint | Uint8Array>): Json {
  const raw = fields.get(1);
  return raw instanceof Uint8Array && raw.length > 0 ? (JSON.parse(Buffer.from(raw).toString('utf8')) as Json) : null;
}

function timeOf(fields: ReadonlyMap<number, bigint | Uint8Array>, digits: 0 | 6): string | null {
  const number = (field: number) => Number(BigInt.asIntN(64, BigInt((fields.get(field) as bigint | undefined) ?? 0n)));
  const [seconds, nanos] = [number(1), number(2)];
  if (fields.size === 0 || seconds === NO_TIME_SECONDS) return null;
  const whole = new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, '');
  return digits === 0 ? `${whole}Z` : `${whole}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`;
}

/** The zero value of a present but empty field. */
function zeroOf(type: string): Json {
  if (type === 'bool') return false;
  if (type === 'int') return 0;
  if (type === 'string' || type === 'bytes') return '';
  if (type === 'time' || type === 'microtime' || type === 'raw') return null;
  return {};
}
