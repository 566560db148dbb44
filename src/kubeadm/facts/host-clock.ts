import { defineFact } from '../../host/facts/fact.ts';

/** The clock of the host in Unix seconds; null: unknown. */
export const hostClock = defineFact({ date: { kind: 'command', argv: ['date', '+%s'] } }, ({ date }): number | null =>
  date.exitCode === 0 && /^\d+\s*$/.test(date.stdout) ? Number(date.stdout.trim()) : null,
);
