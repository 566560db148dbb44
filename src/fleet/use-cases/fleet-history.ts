import type { RunTime } from '../../base/clock.ts';
import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import { observe } from '../../host/access/observe.ts';
import { type CommitRecord, commitRecord } from '../../host/commit/record.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { clientIdentity, registeredNode } from '../../kubelet/facts/kubelet-identity.ts';
import { type HistoryEntry, hostHistory } from '../history/host-history.ts';
import type { FleetFilePorts, HostConnections } from '../ports.ts';
import { type NamedHostsRequest, namedHosts } from './named-hosts.ts';

const PARALLEL = 50;

const FACTS = combineFacts({ history: hostHistory, record: commitRecord, identity: clientIdentity });

export interface HostHistory {
  readonly host: string;
  /** The Node that its kubelet has registered; null: unknown. */
  readonly node: string | null;
  /** The oldest first; null: the host was not read. */
  readonly entries: readonly HistoryEntry[] | null;
}

/**
 * Reads the journals of hosts.
 * @returns the hosts in their order; `failure`: the problems of hosts that were not read, null if none
 * @throws AppError with exit code 2 for an invalid file or selection
 */
export async function fleetHistory(services: FleetFilePorts & RunTime & HostConnections, request: NamedHostsRequest, reporter: Reporter) {
  const named = await namedHosts(services, request, { changes: false });
  const problems: Problem[] = [];
  const hosts = await inParallel(named, PARALLEL, async ({ name, target }): Promise<HostHistory> => {
    try {
      const host = await services.connectHost(target, reporter);
      try {
        const { history, record, identity } = await observe(host, FACTS, services.signal);
        return { host: name, node: registeredNode(identity), entries: history.map(withRollback(record)) };
      } finally {
        await host.close();
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      problems.push(...error.problems.map((problem) => ({ ...problem, host: name })));
      return { host: name, node: null, entries: null };
    }
  });
  const isPartial = hosts.some(({ entries }) => entries !== null);
  return { hosts, failure: problems.length === 0 ? null : new AppError(problems, { exitCode: isPartial ? 4 : 1 }) };
}

/**
 * Corrects an entry without a recorded end by the last rollback of the host, which follows an interrupted run. The
 * identifier of the entry begins with that of its run, which the rollback has as well.
 */
function withRollback(record: CommitRecord | null): (entry: HistoryEntry) => HistoryEntry {
  if (record?.state !== 'reverted' || record.id === '') return (entry) => entry;
  return (entry) =>
    entry.result === 'started' && entry.id?.startsWith(`${record.id}-`) === true ? { ...entry, result: 'rolled-back' } : entry;
}
