/** What was worked out for a text stays; of the texts the last ones are kept. */
export class TextMemo<V> {
  readonly #values = new Map<string, V>();
  readonly #most: number;

  /** @param most values that are kept */
  constructor(most = MOST_VALUES) {
    this.#most = most;
  }

  /**
   * What `work` gives; worked out the first time.
   * @param key stands for everything the value depends on
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

/** What was worked out for an object stays as long as the object; of its values the last ones are kept. */
export class Memo<K extends object, V> {
  readonly #known = new WeakMap<K, TextMemo<V>>();

  /**
   * What `work` gives for an object and what else it depends on; worked out the first time.
   * @param key stands for everything besides the object that the value depends on
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

/** A number that stands for an object in keys: the same for the same object. */
export function identityOf(object: object): number {
  const known = NUMBERS.get(object);
  if (known !== undefined) return known;
  NUMBERS.set(object, ++next);
  return next;
}
