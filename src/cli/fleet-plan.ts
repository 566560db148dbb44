import { type ExitCode, formatProblem } from '../core/errors.ts';
import { selectHosts } from '../core/fleet/select.ts';
import { runFleet } from '../engine/fleet.ts';
import { hostBlocks } from '../engine/host-blocks.ts';
import type { Services } from '../ports/services.ts';
import { openFleetCluster } from './fleet-cluster.ts';
import { fleetMembers } from './fleet-members.ts';
import { exitOf, planLines, summaryLine } from './fleet-report.ts';
import { readRules } from './fleet-rules.ts';
import { directoryOf, readFleet } from './load-fleet.ts';
import type { CommandOptions } from './program.ts';
import { flagList, verbosityOf } from './read-options.ts';

/** `fleet plan`, `plan`. */
export async function runFleetPlan(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const fleet = await readFleet(services, options);
  for (const warning of fleet.warnings) services.output.stderr(`warning: ${formatProblem(warning)}\n`);
  const hosts = selectHosts(fleet.hosts, { limit: flagList(options, 'limit'), groups: flagList(options, 'group') });
  const rules = readRules(options, { total: hosts.length, dryRun: true });
  const access = await openFleetCluster(services, options, { cluster: fleet.cluster, file: fleet.file, dryRun: true, reporter });
  try {
    const members = await fleetMembers(services, options, { hosts, directory: directoryOf(fleet.file), access, dryRun: true });
    const blocks = hostBlocks(reporter);
    const result = await runFleet(members, rules, {
      signal: services.signal,
      reporterOf: blocks.of,
      ended: async ({ host }) => blocks.flush(host),
    });
    const lines = [
      ...planLines(result.outcomes, { colour: services.output.colour, origins: options.showOrigin === true }),
      summaryLine(result.outcomes),
    ];
    services.output.stdout(`${lines.join('\n')}\n`);
    const pending = result.outcomes.some(({ status }) => status === 'pending');
    return exitOf(services, result, pending && options.exitCode === true ? 6 : 0);
  } finally {
    await access.close();
  }
}
