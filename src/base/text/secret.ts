const inspectSymbol = Symbol.for('nodejs.util.inspect.custom');

/**
 * A token, a private key, a password: every form of printing, logging, templating or serialising returns
 * `[secret]`. Only adapters, and the encoders that prepare their payloads, call `reveal()`.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  /** Compares the values; the result does not reveal the position of a difference. */
  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspectSymbol](): string {
    return '[secret]';
  }
}

/** A kubeconfig with a token, for example: prints masked; `reveal()` returns the text for the file. */
export class SensitiveText {
  readonly #parts: readonly (string | Secret)[];

  constructor(parts: readonly (string | Secret)[]) {
    this.#parts = parts;
  }

  /** The unmasked text for the file. */
  reveal(): string {
    return this.#parts.map((part) => (typeof part === 'string' ? part : part.reveal())).join('');
  }

  /** The text with each secret replaced by `[secret]`. */
  toString(): string {
    return this.#parts.map(String).join('');
  }

  toJSON(): string {
    return this.toString();
  }

  [inspectSymbol](): string {
    return this.toString();
  }
}

/** The unmasked text, for adapters and for comparison with the content on a host; never for output. */
export function revealText(text: string | SensitiveText): string {
  return typeof text === 'string' ? text : text.reveal();
}
