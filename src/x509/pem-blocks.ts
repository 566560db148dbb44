export interface PemBlock {
  /** For example `CERTIFICATE`, `EC PRIVATE KEY`. */
  readonly label: string;
  /** The block with its BEGIN and END lines and a newline. */
  readonly pem: string;
}

const DASHES = '-----';
const BEGIN = `${DASHES}BEGIN `;

/**
 * Finds the blocks of a PEM text in linear time for any input. Text between blocks and blocks without an END line of
 * their own label are skipped.
 * @param text content of a file; base64 and legacy headers never contain five dashes, so a block ends at the next ones
 * @see RFC 7468, section 3
 */
export function pemBlocks(text: string): readonly PemBlock[] {
  const blocks: PemBlock[] = [];
  for (let begin = text.indexOf(BEGIN); begin >= 0; ) {
    const labelEnd = text.indexOf(DASHES, begin + BEGIN.length);
    const end = labelEnd < 0 ? -1 : text.indexOf(DASHES, labelEnd + DASHES.length);
    if (end < 0) break;
    const label = text.slice(begin + BEGIN.length, labelEnd);
    const endLine = `${DASHES}END ${label}${DASHES}`;
    const isBlock = text.startsWith(endLine, end);
    if (isBlock) blocks.push({ label, pem: `${text.slice(begin, end)}${endLine}\n` });
    begin = text.indexOf(BEGIN, isBlock ? end + endLine.length : labelEnd);
  }
  return blocks;
}

/** The text between the first and the last line of a block. */
export function pemBody({ label, pem }: PemBlock): string {
  const lines = BEGIN.length + label.length + DASHES.length;
  return pem.slice(lines, pem.lastIndexOf(`${DASHES}END `));
}

export function certificateBlocks(text: string): readonly PemBlock[] {
  return pemBlocks(text).filter(({ label }) => label === 'CERTIFICATE');
}

/** The first private key of a PEM text, of any type; null when the text contains none. */
export function privateKeyBlock(text: string): PemBlock | null {
  return pemBlocks(text).find(({ label }) => label === 'PRIVATE KEY' || label.endsWith(' PRIVATE KEY')) ?? null;
}
