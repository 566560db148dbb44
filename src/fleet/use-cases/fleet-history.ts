import type { RunTime } from '../../base/clock.ts';
import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { clientIdentity, registeredNode } from '../../kubelet/facts/kubelet-identity.ts';
import { observedHistory } from '../history/host-history.ts';
import type { RunJournals } from '../history/journal.ts';
import { mergeHistory, type RecordedChange } from '../history/merge-history.ts';
import type { FleetFilePorts, HostConnections } from '../ports.ts';
import { subjectOf } from './fleet-tasks.ts';
import { fleetFileOf } from './load-fleet.ts';
import { type NamedHostsRequest, namedHosts } from './named-hosts.ts';

const PARALLEL = 50;

const FACTS = combineFacts({ history: observedHistory, identity: clientIdentity });

export interface HostHistory {
  readonly host: string;
  /** The Node that its kubelet has registered; null: unknown. */
  readonly node: string | null;
  /** The oldest first. */
  readonly entries: readonly RecordedChange[];
  /** False: the host could not be read; its changes are those of the journals. */
  readonly isRead: boolean;
}

type HistoryPorts = FleetFilePorts & RunTime & HostConnections & { runJournals(): Promise<RunJournals> };

/**
 * Reads the histories of hosts, and merges them with the journals of the runs of this user over the same fleet file.
 * @returns the hosts in their order; `failure`: the problems of hosts that were not read, null if none
 * @throws AppError with exit code 2 for an invalid file or selection
 */
export async function fleetHistory(services: HistoryPorts, request: NamedHostsRequest, reporter: Reporter) {
  const named = await namedHosts(services, request, { changes: false });
  const file = subjectOf(services, fleetFileOf(request.file));
  const isOfFleet = named.some(({ member }) => member !== null);
  const runs = isOfFleet ? await (await services.runJournals()).all((run) => (run.fleet ?? run.subject) === file) : [];
  const problems: Problem[] = [];
  const hosts = await inParallel(named, PARALLEL, async ({ name, target, member }): Promise<HostHistory> => {
    const merged = (history: Parameters<typeof mergeHistory>[1]) => mergeHistory(name, history, member === null ? [] : runs);
    try {
      const host = await services.connectHost(target, reporter);
      try {
        const { history, identity } = await observe(host, FACTS, services.signal);
        return { host: name, node: registeredNode(identity), entries: merged(history), isRead: true };
      } finally {
        await host.close();
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      problems.push(...error.problems.map((problem) => ({ ...problem, host: name })));
      return { host: name, node: null, entries: merged([]), isRead: false };
    }
  });
  const isPartial = hosts.some(({ isRead }) => isRead);
  return { hosts, failure: problems.length === 0 ? null : new AppError(problems, { exitCode: isPartial ? 4 : 1 }) };
}
