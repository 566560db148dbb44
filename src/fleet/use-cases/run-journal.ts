import { type AppError, formatProblem, usageError } from '../../base/errors.ts';
import type { RunJournal, RunJournals } from '../history/journal.ts';
import { hostsToRetry, type JournalEntry, type JournaledRun } from '../history/journal.ts';
import type { FleetRunPorts } from '../ports.ts';
import type { FleetPorts, HostOutcome } from '../run/fleet.ts';
import { problemsOf } from '../run/fleet-failure.ts';

/** Hosts that earlier runs did not finish. */
export interface RetriedHosts {
  /** Names; the fleet file may no longer contain them. */
  readonly hosts: readonly string[];
  /** The last run over the fleet file or plan. */
  readonly last: JournaledRun;
}

/**
 * Performs a run, and records its start and its end.
 * @returns the failure of the run; null: all hosts succeeded
 */
export async function recordRun(
  { clock }: Pick<FleetRunPorts, 'clock'>,
  journals: RunJournals,
  run: Pick<JournaledRun, 'command' | 'subject' | 'hosts'>,
  perform: (journal: RunJournal) => Promise<AppError | null>,
): Promise<AppError | null> {
  const started = clock.now();
  const journal = await journals.begin(started);
  try {
    await journal.write({ event: 'run-started', time: started.toISOString(), ...run });
    const failure = await perform(journal);
    await journal.write({ event: 'run-ended', time: clock.now().toISOString(), exitCode: failure?.exitCode ?? 0 });
    return failure;
  } finally {
    await journal.close();
  }
}

/** Records hosts before they start and when they end. */
export function journaled(ports: FleetPorts, journal: RunJournal, { clock }: Pick<FleetRunPorts, 'clock'>): FleetPorts {
  const time = (): string => clock.now().toISOString();
  return {
    ...ports,
    begins: async (host) => {
      await ports.begins?.(host);
      await journal.write({ event: 'host-began', time: time(), host });
    },
    ended: async (outcome) => {
      await ports.ended?.(outcome);
      await journal.write(journalEntryOf(outcome, clock.now()));
    },
  };
}

/** The journal's entry of a host that has ended. */
function journalEntryOf(outcome: HostOutcome, now: Date): JournalEntry {
  const { host, status } = outcome;
  const problems = problemsOf([outcome]).map(formatProblem);
  return { event: 'host-ended', time: now.toISOString(), host, status, ...(problems.length === 0 ? {} : { problems }) };
}

/**
 * The hosts that earlier runs of a command did not finish.
 * @param run.name the fleet file or plan, as messages show it
 * @throws AppError USAGE (exit code 2) if no run of the command is recorded
 */
export async function readRetriedHosts(
  journals: RunJournals,
  { subject, command, name }: { readonly subject: string; readonly command: string; readonly name: string },
): Promise<RetriedHosts> {
  const runs = await journals.all(subject);
  const last = runs.findLast((run) => run.command === command);
  if (last === undefined)
    throw usageError(
      `--retry failed: no earlier ${command} of ${name} is recorded in ${journals.directory}`,
      `Run kubeletadm ${command} without --retry`,
    );
  return { hosts: hostsToRetry(runs, command), last };
}
