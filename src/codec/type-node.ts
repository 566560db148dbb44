export type TypeNode = ScalarNode | ListNode | MapNode | ObjectNode;

export type ScalarNode =
  /** `values`: the words of an enumeration. Decoding accepts any string: validation checks the words. */
  | { readonly kind: 'string'; readonly values: readonly string[] | null }
  | { readonly kind: 'bool' | 'int32' | 'int64' | 'uint32' | 'float' }
  /** A string in Go's syntax; `durationOrNanoseconds` also accepts an integer of nanoseconds. */
  | { readonly kind: 'duration' | 'durationOrNanoseconds' }
  | { readonly kind: 'quantity' }
  /** A port number or name, a count or a percentage. */
  | { readonly kind: 'intOrString' }
  | { readonly kind: 'timestamp' };
export interface ListNode {
  readonly kind: 'list';
  readonly items: TypeNode;
}
export interface MapNode {
  readonly kind: 'map';
  readonly values: TypeNode;
}
export interface ObjectNode {
  readonly kind: 'object';
  readonly fields: ReadonlyMap<string, FieldNode>;
}

/** A member of an object: its type and how Go treats its absence. */
export interface FieldNode {
  readonly name: string;
  /** As in the catalogue: `logging.vmodule[].filePattern`. */
  readonly path: string;
  readonly type: TypeNode;
  readonly pointer: boolean;
  readonly omitempty: boolean;
  readonly printedWhenUnset: boolean;
}
