/** A file that is too large for a plan or a single program: identified by its hash, sent in pieces. */
export interface LargeFile {
  /** SHA-256 of the file in hexadecimal digits. */
  readonly sha256: string;
  readonly size: number;
  /** Its first bytes, one character each, which identify the type of executable. */
  readonly head: string;
  /** The file compressed with gzip, as pieces in base64. */
  pieces(): Iterable<string>;
}

/** A local file, or a part of one, that is too large for memory: identified by its hash, read by ranges. */
export interface RangedFile {
  /** SHA-256 of the content in hexadecimal digits. */
  readonly sha256: string;
  readonly size: number;
  /**
   * Reads `length` bytes from `offset`; less only at the end.
   * @throws AppError INPUT_UNREADABLE
   */
  read(offset: number, length: number): Promise<Uint8Array>;
}
