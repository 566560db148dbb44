/** A file that is too large for a plan and for one program: told by its hash, sent in pieces. */
export interface LargeFile {
  /** Of the file itself, in hexadecimal digits. */
  readonly sha256: string;
  readonly size: number;
  /** Its first bytes, one character each: they tell what kind of program it is. */
  readonly head: string;
  /** The file in gzip, cut into pieces in base64. */
  pieces(): Iterable<string>;
}
