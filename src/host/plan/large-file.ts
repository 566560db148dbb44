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
