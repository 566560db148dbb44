/** Caches the values computed for texts, up to a limit. */
export class TextMemo<V> {
  readonly #values = new Map<string, V>();
  readonly #most: number;

  /** @param most maximum number of cached values */
  constructor(most = MOST_VALUES) {
    this.#most = most;
  }

  /**
   * Returns the cached value, or computes it with `work`.
   * @param key identifies all inputs of the value
   */
  get(key: string, work: () => V): V {
    const known = this.#values.get(key);
    if (known !== undefined || this.#values.has(key)) return known as V;
    const value = work();
    if (this.#values.size >= this.#most) this.#values.clear();
    this.#values.set(key, value);
    return value;
  }
}

/** Caches computed values per object for the lifetime of the object, up to a limit for each object. */
export class Memo<K extends object, V> {
  readonly #known = new WeakMap<K, TextMemo<V>>();

  /**
   * Returns the cached value for an object and key, or computes it with `work`.
   * @param key identifies all inputs of the value other than the object
   */
  get(object: K, key: string, work: () => V): V {
    const values = this.#known.get(object) ?? new TextMemo<V>();
    if (!this.#known.has(object)) this.#known.set(object, values);
    return values.get(key, work);
  }
}

const MOST_VALUES = 1_000;

const NUMBERS = new WeakMap<object, number>();
let next = 0;

/** A number that identifies an object in cache keys: always the same for the same object. */
export function identityOf(object: object): number {
  const known = NUMBERS.get(object);
  if (known !== undefined) return known;
  NUMBERS.set(object, ++next);
  return next;
}
