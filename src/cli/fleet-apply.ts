import { AppError, type ExitCode } from '../core/errors.ts';
import { runFleet } from '../engine/fleet.ts';
import { hostBlocks } from '../engine/host-blocks.ts';
import type { Services } from '../ports/services.ts';
import { type FleetAccess, openFleetCluster } from './fleet-cluster.ts';
import { fleetMembers } from './fleet-members.ts';
import { exitOf, summaryLine } from './fleet-report.ts';
import { readRules } from './fleet-rules.ts';
import { type FleetTasks, readTasks } from './fleet-tasks.ts';
import type { CommandOptions } from './program.ts';
import { verbosityOf } from './read-options.ts';

/** `fleet apply [PLAN]`, `apply [PLAN]`. */
export async function runFleetApply(services: Services, args: readonly string[], given: CommandOptions): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: verbosityOf(given), format: 'text' });
  const work = await readTasks(services, args[0], given);
  const { tasks, cluster, file, directory, options } = work;
  const rules = readRules(options, { total: tasks.length, dryRun: false });
  if (tasks.length === 0) {
    services.output.stdout('Nothing to do.\n');
    return 0;
  }
  const access = await openFleetCluster(services, options, { cluster, file, dryRun: false, reporter });
  try {
    requireSameServer(work, access);
    const members = await fleetMembers(services, options, { tasks, directory, access, dryRun: false });
    const blocks = hostBlocks(reporter);
    const result = await runFleet(members, rules, {
      signal: services.signal,
      reporterOf: blocks.of,
      ended: async ({ host }) => blocks.flush(host),
    });
    services.output.stdout(`${summaryLine(result.outcomes)}\n`);
    return exitOf(services, result, 0);
  } finally {
    await access.close();
  }
}

function requireSameServer({ server }: FleetTasks, { apiServer }: FleetAccess): void {
  if (server === null || server === apiServer.server) return;
  const message = `the plan was made with ${server}, and this is ${apiServer.server}`;
  throw new AppError({ code: 'PLAN_STALE', message, mend: 'Give the credentials of that cluster, or plan again' }, { exitCode: 2 });
}
