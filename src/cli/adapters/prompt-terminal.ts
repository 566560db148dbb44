import { createInterface as createLineReader } from 'node:readline';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { interrupted } from '../../base/errors.ts';

/** Standard input, or a terminal in its place. */
export type TerminalInput = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Standard error, or a terminal in its place. */
export type TerminalOutput = NodeJS.WritableStream & { readonly isTTY?: boolean };

/**
 * Asks a yes-or-no question on a terminal; null without a terminal. Every answer except `y` and `yes` means
 * no.
 */
export async function confirmOnTerminal(question: string, stdin: TerminalInput, stderr: TerminalOutput): Promise<boolean | null> {
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}

/**
 * Asks for a secret on a terminal. The typed characters are not shown, and not kept in a history.
 * @returns the text up to Enter or Ctrl-D; null without a terminal
 * @throws AppError INTERRUPTED (exit code 130) after Ctrl-C
 */
export async function askSecretOnTerminal(prompt: string, stdin: TerminalInput, stderr: TerminalOutput): Promise<string | null> {
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  // A terminal reader puts the terminal into raw mode, so that the terminal itself shows nothing either.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createLineReader({ input: stdin, output: silent, terminal: true, historySize: 0 });
  stderr.write(prompt);
  try {
    return await new Promise<string>((resolve, reject) => {
      reader.once('line', resolve);
      reader.once('close', () => resolve(''));
      reader.once('SIGINT', () => reject(interrupted('SIGINT')));
    });
  } finally {
    reader.close();
    stderr.write('\n');
  }
}
