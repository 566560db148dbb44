import { createInterface } from 'node:readline/promises';

/**
 * Asks a yes-or-no question on a terminal; null without a terminal. Every answer except `y` and `yes` means
 * no.
 */
export async function confirmOnTerminal(
  question: string,
  stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean },
  stderr: NodeJS.WritableStream & { readonly isTTY?: boolean },
): Promise<boolean | null> {
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}
