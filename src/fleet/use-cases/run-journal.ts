import { type AppError, formatProblem, usageError } from '../../base/errors.ts';
import { present } from '../../base/present.ts';
import { codesOf, historyEntry, type RunAttribution, resultOf } from '../history/host-history.ts';
import type { RunJournal, RunJournals } from '../history/journal.ts';
import { hostsToRetry, type JournalEntry, type JournaledRun } from '../history/journal.ts';
import type { FleetRunPorts, LockOwnerPorts } from '../ports.ts';
import type { FleetPorts, HostOutcome } from '../run/fleet.ts';
import { problemsOf } from '../run/fleet-failure.ts';

/** Hosts that earlier runs did not finish. */
export interface RetriedHosts {
  /** Names; the fleet file may no longer contain them. */
  readonly hosts: readonly string[];
  /** The last run over the fleet file or plan. */
  readonly last: JournaledRun;
}

type JournalPorts = Pick<FleetRunPorts, 'clock'> & LockOwnerPorts;

/**
 * Performs a run, and records its start and its end.
 * @param perform receives the journal, and the attribution with the id of the run
 * @returns the failure of the run; null: all hosts succeeded
 */
export async function recordRun(
  { clock, self, newId }: JournalPorts,
  journals: RunJournals,
  { note, ...run }: Pick<JournaledRun, 'subject' | 'fleet' | 'hosts'> & { readonly note: RunAttribution },
  perform: (journal: RunJournal, note: RunAttribution) => Promise<AppError | null>,
): Promise<AppError | null> {
  const started = clock.now();
  const journal = await journals.begin(started);
  const id = await newId();
  const { command, reason } = note;
  try {
    const about = { ...present({ reason, fleet: run.fleet }), id, operator: self.name, time: started.toISOString(), command };
    await journal.write({ event: 'run-started', ...about, subject: run.subject, hosts: run.hosts });
    const failure = await perform(journal, { ...note, run: id });
    await journal.write({ event: 'run-ended', time: clock.now().toISOString(), exitCode: failure?.exitCode ?? 0 });
    return failure;
  } finally {
    await journal.close();
  }
}

/** Records hosts before they start and when they end. */
export function journaled(ports: FleetPorts, journal: RunJournal, { clock, self }: JournalPorts, note: RunAttribution): FleetPorts {
  const time = (): string => clock.now().toISOString();
  return {
    ...ports,
    gateEnded: async (gate) => {
      await ports.gateEnded?.(gate);
      await journal.write({ event: 'gate-ended', time: time(), ...gate });
    },
    begins: async (host) => {
      await ports.begins?.(host);
      await journal.write({ event: 'host-began', time: time(), host });
    },
    ended: async (outcome) => {
      await ports.ended?.(outcome);
      await journal.write(journalEntryOf(outcome, { now: clock.now(), operator: self.name, note }));
    },
  };
}

/** The journal's entry of a host that has ended. */
function journalEntryOf(
  outcome: HostOutcome,
  { now, operator, note }: { readonly now: Date; readonly operator: string; readonly note: RunAttribution },
): JournalEntry {
  const { host, status, plan, error } = outcome;
  const time = now.toISOString();
  const problems = problemsOf([outcome]).map(formatProblem);
  const isChanged = plan !== null && CHANGED.has(status);
  const start = plan && { id: `${note.run}-${host}`, note, operator, time: now, plan: plan.host };
  const change = isChanged && start ? historyEntry(start, resultOf(error), codesOf(error)) : undefined;
  return { event: 'host-ended', time, host, status, ...(problems.length === 0 ? {} : { problems }), ...present({ change }) };
}

const CHANGED: ReadonlySet<HostOutcome['status']> = new Set(['changed', 'failed', 'rolled-back']);

/**
 * The hosts that earlier runs of a command did not finish.
 * @param run.name the fleet file or plan, as messages show it
 * @throws AppError USAGE (exit code 2) if no run of the command is recorded
 */
export async function readRetriedHosts(
  journals: RunJournals,
  { subject, command, name }: { readonly subject: string; readonly command: string; readonly name: string },
): Promise<RetriedHosts> {
  const runs = await journals.all((run) => run.subject === subject);
  const last = runs.findLast((run) => run.command === command);
  if (last === undefined)
    throw usageError(
      `--retry failed: no earlier ${command} of ${name} is recorded in ${journals.directory}`,
      `Run kubeletadm ${command} without --retry`,
    );
  return { hosts: hostsToRetry(runs, command), last };
}
