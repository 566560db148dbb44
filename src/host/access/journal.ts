import type { Host } from './host.ts';

/**
 * Prints the last lines of a unit's journal since a time (as of journalctl), newest first. Without
 * `--reverse`, journalctl 252 prints the first lines since that time (systemd 252 src/journal/journalctl.c),
 * which are of earlier processes.
 */
export function journalCommand(part: {
  readonly unit: string;
  readonly since: string;
  readonly lines: number;
  readonly bootOnly: boolean;
}): readonly string[] {
  const { unit, since, lines, bootOnly } = part;
  const boot = bootOnly ? ['--boot'] : [];
  return ['journalctl', `--unit=${unit}`, `--since=${since}`, `--lines=${lines}`, '--reverse', '--output=cat', '--no-pager', ...boot];
}

export function oldestFirst(output: string): string {
  return output.replace(/\n$/, '').split('\n').reverse().join('\n');
}

/** The lines of `journalCommand`, oldest first; null: the journal cannot be read. */
export async function readJournal(host: Host, part: Parameters<typeof journalCommand>[0], signal?: AbortSignal): Promise<string | null> {
  const { journal } = await host.query({ journal: { kind: 'command', argv: journalCommand(part) } }, { signal });
  return journal.exitCode === 0 ? oldestFirst(journal.stdout) : null;
}
