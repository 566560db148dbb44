const inspectSymbol = Symbol.for('nodejs.util.inspect.custom');

/**
 * A value that must never be shown: a token, a private key, a password. However it is printed, logged, templated or serialised, it reads
 * `[secret]`. Only adapters, and the encoders that make what adapters send, call `reveal()`.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. */
  reveal(): string {
    return this.#value;
  }

  /** Equal values, without telling where they differ. */
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

/**
 * Text that may hold secrets, such as a kubeconfig with a token. It prints masked; `reveal()` gives what goes into the file.
 */
export class SensitiveText {
  readonly #parts: readonly (string | Secret)[];

  constructor(parts: readonly (string | Secret)[]) {
    this.#parts = parts;
  }

  /** The text as it goes into the file. */
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

/** The text itself, wherever it may or may not be sensitive. For adapters and for comparison with what is on a host, never for output. */
export function revealText(text: string | SensitiveText): string {
  return typeof text === 'string' ? text : text.reveal();
}
