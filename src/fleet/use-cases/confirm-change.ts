import { declined, usageError } from '../../base/errors.ts';
import type { RunSettings } from '../../host/run-settings.ts';

/**
 * Asks the operator before a command changes hosts. A dry run asks nothing.
 * @param isConfirmed the command line or a document confirms the change
 * @param confirm the question; null: the program has no terminal
 * @param command.changed what is declined; default: the command
 * @throws AppError USAGE (exit code 2) without a terminal; DECLINED (exit code 1)
 */
export async function confirmChange(
  { dryRun }: RunSettings,
  isConfirmed: boolean,
  confirm: () => Promise<boolean | null>,
  { command, flag, changed = command }: { readonly command: string; readonly flag: string; readonly changed?: string },
): Promise<void> {
  const answer = dryRun || isConfirmed || (await confirm());
  const hint = `Add ${flag}. To see the plan first, add --dry-run`;
  if (answer === null) throw usageError(`${command} asks before it changes anything, but standard input is not a terminal`, hint);
  if (!answer) throw declined(changed);
}
