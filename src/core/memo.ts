/** What was worked out for an object stays as long as the object; of its values the last ones are kept. */
export class Memo<K extends object, V> {
  readonly #known = new WeakMap<K, Map<string, V>>();

  /**
   * What `work` gives for an object and what else it depends on; worked out the first time.
   * @param key stands for everything besides the object that the value depends on
   */
  get(object: K, key: string, work: () => V): V {
    const values = this.#known.get(object) ?? new Map<string, V>();
    this.#known.set(object, values);
    if (values.has(key)) return values.get(key) as V;
    const value = work();
    if (values.size >= MOST_VALUES) values.clear();
    values.set(key, value);
    return value;
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
