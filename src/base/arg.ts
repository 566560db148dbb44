/** One command-line argument of a component; order and duplicates are kept. */
export interface Arg {
  readonly name: string;
  readonly value: string;
}
