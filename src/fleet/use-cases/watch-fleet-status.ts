import { isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { type FleetStatus, type FleetStatusPorts, fleetStatus } from './fleet-status.ts';

/** Pause between two reads. Each read connects to all selected hosts. */
const PAUSE_MS = 10_000;

const SILENT: Reporter = { report: () => undefined };

/**
 * Reads the status of the selected hosts again and again, until the run is interrupted. A read that fails, for example
 * because the API server is unreachable, is reported once and repeated.
 * @param first the status that the caller has read
 * @param view.changed receives each status, `first` included
 * @throws the reason of the interruption
 */
export async function watchFleetStatus(
  services: FleetStatusPorts,
  request: FleetRunRequest,
  first: FleetStatus,
  { reporter, changed }: { readonly reporter: Reporter; readonly changed: (status: FleetStatus) => void },
): Promise<never> {
  const { clock, signal } = services;
  changed(first);
  let issue: string | null = null;
  for (;;) {
    await clock.sleep(PAUSE_MS, signal);
    try {
      // Warnings about hosts and the cluster were printed by the first read.
      const status = await fleetStatus(services, request, { reporter: SILENT, ports: { signal, reporterOf: () => SILENT } });
      signal.throwIfAborted();
      issue = null;
      changed(status);
    } catch (error) {
      if (signal.aborted || !isAppError(error)) throw error;
      if (issue !== error.message) reporter.report({ level: 'warning', code: 'NOT_FOLLOWED', message: `${error.message}: retrying` });
      issue = error.message;
    }
  }
}
