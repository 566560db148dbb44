import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import type { HostConnections } from '../ports.ts';
import { MOST_OPEN } from './fleet-rules.ts';

/** Connections to hosts that are inspected first and changed later. */
interface KeptConnections extends Pick<HostConnections, 'connectHost'> {
  /** Closes the connections that are kept now, at the end of the run; connections that end later are not kept. */
  close(): Promise<void>;
  /** Connections that end from now on are not kept. */
  stopKeeping(): void;
}

interface Kept {
  /** @param reporter logs the further requests */
  take(reporter: Reporter | undefined): Host;
  close(): Promise<void>;
}

/**
 * Keeps one ended connection to each host, up to the number of open connections of a run, and returns it when the host
 * is connected again. Every further connection is a new one, also the one that confirms a change.
 */
export function keptConnections({ connectHost }: Pick<HostConnections, 'connectHost'>): KeptConnections {
  const all = new Map<string, Kept>();
  let keeps = true;
  const keepable = (name: string, host: Host, log: { reporter: Reporter | undefined }): Host => ({
    ...host,
    close: async () => {
      if (!keeps || all.has(name) || all.size >= MOST_OPEN) return host.close();
      const take = (reporter: Reporter | undefined): Host => {
        log.reporter = reporter;
        return keepable(name, host, log);
      };
      all.set(name, { take, close: () => host.close() });
    },
  });
  return {
    connectHost: async (target, reporter) => {
      const name = target.member?.name;
      if (name === undefined) return connectHost(target, reporter);
      const kept = all.get(name);
      all.delete(name);
      if (kept !== undefined) return kept.take(reporter);
      const log = { reporter };
      const { verbosity } = reporter ?? {};
      return keepable(name, await connectHost(target, { verbosity, report: (event) => log.reporter?.report(event) }), log);
    },
    stopKeeping: () => {
      keeps = false;
    },
    close: async () => {
      keeps = false;
      await Promise.all([...all.values()].map(({ close }) => close()));
    },
  };
}
