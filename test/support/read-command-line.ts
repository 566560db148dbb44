import { Command } from 'commander';
import type { On } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { PHASE_LISTS } from '../../src/kubeadm/workflows/phase-lists.ts';

/**
 * Reads a command line as the program does, without running it.
 * @param words the command and its arguments
 * @returns the request of the command. Throws the errors of commander and of the command
 */
export async function readCommandLine(words: readonly string[]): Promise<unknown> {
  const entry = COMMANDS.find(({ name }) => name === words[0]);
  if (entry === undefined) throw new Error(`unknown command: ${words.join(' ')}`);
  let request: unknown;
  const on: On = (command, readRequest) =>
    command.exitOverride().action((...args: unknown[]) => {
      const own = args.at(-1) as Command;
      request = readRequest(own.args, own.optsWithGlobals());
    });
  const program = new Command('kubeletadm').exitOverride().configureOutput({ writeErr: () => undefined });
  (await entry.load())(program.command(entry.name), on, PHASE_LISTS);
  await program.parseAsync([...words], { from: 'user' });
  return request;
}
