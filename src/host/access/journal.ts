import type { Host } from './host.ts';

interface JournalPart {
  readonly unit: string;
  /** As of journalctl. */
  readonly since: string;
  readonly lines: number;
  readonly bootOnly: boolean;
}

/**
 * Prints the last lines of a unit's journal since a time, newest first. Without `--reverse`, journalctl 252 prints the
 * first lines since that time (systemd 252 src/journal/journalctl.c), which are of earlier processes.
 */
export function journalCommand({ unit, since, lines, bootOnly }: JournalPart): readonly string[] {
  const boot = bootOnly ? ['--boot'] : [];
  return ['journalctl', `--unit=${unit}`, `--since=${since}`, `--lines=${lines}`, '--reverse', '--output=cat', '--no-pager', ...boot];
}

/** The output of `journalCommand`, oldest line first. */
export function oldestFirst(output: string): string {
  return output.replace(/\n$/, '').split('\n').reverse().join('\n');
}

/** The lines of `journalCommand`, oldest first; null: the journal cannot be read. */
export async function readJournal(host: Host, part: JournalPart, signal?: AbortSignal): Promise<string | null> {
  const { journal } = await host.query({ journal: { kind: 'command', argv: journalCommand(part) } }, { signal });
  return journal.exitCode === 0 ? oldestFirst(journal.stdout) : null;
}
