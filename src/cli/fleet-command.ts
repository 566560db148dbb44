import type { Command } from 'commander';
import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import type { CommitsRequest } from '../fleet/use-cases/finish-commits.ts';
import type { CommandOptions, On } from './command.ts';
import { defineApply } from './fleet-apply-command.ts';
import type { FleetDriftRequest } from './fleet-drift.ts';
import type { FleetExecRequest } from './fleet-exec.ts';
import type { FleetHistoryRequest } from './fleet-history.ts';
import { initCommand, validateCommand } from './fleet-init-command.ts';
import type { FleetInventoryRequest } from './fleet-inventory.ts';
import { addFleetHostOptions, addRunOptions, fleetRunRequest, isSelection, namedHostsOf } from './fleet-options.ts';
import { definePlan } from './fleet-plan-command.ts';
import type { FleetTrustRequest } from './fleet-trust.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagChoice, flagNumber, flagText } from './option-values.ts';
import {
  addClusterOptions,
  addFleetFileOption,
  addFleetSelectionOptions,
  addSshOptions,
  addTableOptions,
  FLEET_COMMAND_TIMEOUT,
  integerBetween,
  readOutputOption,
  SECONDS_OF_A_DAY,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import { CI_FORMATS, outputOption } from './output-options.ts';
import { addReport } from './page-options.ts';
import { connectionRequest, fleetRequest, outputRequest, readFormat, runRequest, tableRequest, verbosityOf } from './request-parts.ts';
import { defineFleetReset } from './reset-command.ts';
import { parallelOf } from './rollout-options.ts';
import type { FleetStatusRequest } from './status.ts';

/** `fleet`: commands for the hosts of a fleet file. */
export function defineFleet(fleet: Command, on: On): void {
  initCommand(fleet, on);
  inventoryCommand(fleet, on);
  validateCommand(fleet, on);
  trustCommand(fleet, on);
  addCommitCommands(fleet, on);
  historyCommand(fleet, on);
  defineFleetRun(fleet, on);
  defineFleetReset(fleet.command('reset').description('Revert the changes made to hosts of a fleet file by init, join or apply'), on);
  const schema = fleet.command('schema').description('Print the JSON Schema of fleet files, for editors');
  on(
    schema,
    () => null,
    async (services) => (await import('./fleet-validate.ts')).runFleetSchema(services),
  );
  addSections(schema, {
    examples: '  # file that the first line of a file of fleet init refers to\n  kubeletadm fleet schema > fleet.schema.json',
  });
}

function inventoryCommand(fleet: Command, on: On): void {
  const inventory = addFleetSelectionOptions(
    addFleetFileOption(fleet.command('inventory').description('Print the resolved inventory of a fleet file')),
  ).option('--host <name>', 'print only the host or Node with this name in the fleet file, and the source (file:line) of each setting');
  addTableOptions(inventory);
  on(
    inventory,
    (_, options): FleetInventoryRequest => ({
      ...fleetRequest(options),
      host: inventoryHost(options),
      output: tableRequest(options),
    }),
    async (...args) => (await import('./fleet-inventory.ts')).runFleetInventory(...args),
  );
  addSections(inventory, { examples: '  kubeletadm fleet inventory -f fleet.yaml\n  kubeletadm fleet inventory --host edge-017' });
}

const HOST_NAMES = 'names of hosts or Nodes in the fleet file, or [user@]address[:port]';

/** `--host`, as NAME or host/NAME. */
function inventoryHost(options: CommandOptions): string | undefined {
  return flagText(options, 'host')?.replace(/^hosts?\//, '');
}

/**
 * `fleet confirm` and `fleet revert`: finish changes of a run that stopped, or lost its host, before it
 * confirmed them.
 */
function addCommitCommands(fleet: Command, on: On): void {
  const options = (command: Command): Command =>
    addSshOptions(
      addFleetSelectionOptions(addFleetFileOption(command.argument('[host...]', HOST_NAMES))).addOption(
        outputOption(['text', 'json', 'yaml']),
      ),
      FLEET_COMMAND_TIMEOUT,
    );
  const confirm = options(fleet.command('confirm').description('Confirm a pending change before the host rolls it back'));
  on(confirm, commitRequest, (services, request) => runFinish(services, request, 'confirmCommits'));
  const revert = options(fleet.command('revert').description('Roll back a pending change immediately'));
  on(revert, commitRequest, (services, request) => runFinish(services, request, 'revertCommits'));
  for (const [command, verb] of [
    [confirm, 'confirm'],
    [revert, 'revert'],
  ] as const)
    addSections(command, {
      examples: `  kubeletadm fleet ${verb} worker-7\n  # all hosts of the group with a pending change\n  kubeletadm fleet ${verb} --group edge`,
    });
}

/** `fleet history`. */
function historyCommand(fleet: Command, on: On): void {
  const history = addSshOptions(
    addFleetSelectionOptions(
      addFleetFileOption(
        fleet
          .command('history')
          .description('Show the recorded changes of hosts: time, operator, reason and changed fields')
          .argument('[host...]', `${HOST_NAMES} (default: all hosts of the fleet file)`),
      ),
    ).addOption(outputOption(['text', 'json', 'yaml'])),
    FLEET_COMMAND_TIMEOUT,
  );
  on(
    history,
    (hosts, options): FleetHistoryRequest => ({
      ...fleetRequest(options),
      hosts: namedHostsOf(hosts, options),
      connection: connectionRequest(options),
      output: outputRequest(options),
    }),
    async (...args) => (await import('./fleet-history.ts')).runFleetHistory(...args),
  );
  addSections(history, { examples: '  kubeletadm fleet history -f fleet.yaml\n  kubeletadm fleet history worker-7 -o json' });
}

function trustCommand(fleet: Command, on: On): void {
  const trust = addFleetHostOptions(fleet.command('trust').description('Show unknown SSH host keys and record them in known_hosts'))
    .option('-y, --yes', 'record the keys without asking')
    .option('--dry-run', 'only show the keys; exit code 6 if a key is unknown')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(
    trust,
    (_, options): FleetTrustRequest => ({
      ...fleetRequest(options),
      connection: connectionRequest(options),
      parallel: parallelOf(options),
      yes: options.yes === true,
      run: runRequest(options),
      format: outputRequest(options).format,
    }),
    async (...args) => (await import('./fleet-trust.ts')).runFleetTrust(...args),
  );
  addSections(trust, { examples: '  kubeletadm fleet trust -f fleet.yaml\n  kubeletadm fleet trust --group edge --dry-run' });
}

function commitRequest(hosts: readonly string[], options: CommandOptions): FleetCommitRequest {
  const { file, selection } = fleetRequest(options);
  if (namedHostsOf(hosts, options).length === 0 && !isSelection(selection))
    throw usageError('no host was given', 'Pass names in the fleet file or addresses, or select hosts with --limit, --group or --selector');
  return { file, selection, hosts: namedHostsOf(hosts, options), connection: connectionRequest(options), output: outputRequest(options) };
}

/** `fleet plan`, `fleet apply`, `fleet status`, `fleet drift`, `fleet exec`. */
function defineFleetRun(fleet: Command, on: On): void {
  definePlan(fleet.command('plan').description('Show the changes a fleet file would make to its hosts, without making them'), on);
  defineApply(fleet.command('apply').description('Apply a fleet file or a saved plan'), on);
  defineStatus(
    fleet.command('status').description('Show the kubelet version, configuration, health, Node status and drift of each host'),
    on,
  );
  defineDrift(fleet.command('drift').description('Show where hosts differ from the configuration in the fleet file and the cluster'), on);
  defineExec(fleet.command('exec').description('Run a command as root on every host'), on);
}

interface FleetCommitRequest extends Omit<CommitsRequest, 'reporter' | 'onHost'> {
  readonly output: OutputRequest;
}

async function runFinish(
  services: Services,
  { output: { format, verbosity }, ...request }: FleetCommitRequest,
  name: 'confirmCommits' | 'revertCommits',
): Promise<ExitCode> {
  const [{ [name]: work }, { describeChangeOf }, { renderDocument }] = await Promise.all([
    import('../fleet/use-cases/finish-commits.ts'),
    import('../host/commit/commit-problems.ts'),
    import('./output/show-document.ts'),
  ]);
  const hosts: object[] = [];
  const { finishedHosts, exitCode, problems } = await work(services, {
    ...request,
    reporter: services.reporter({ verbosity, format: 'text' }),
    onHost: (host, finished) => {
      const text = finished === null ? 'no pending change' : `${finished.result}: ${describeChangeOf(finished.record)}`;
      if (format === 'text') services.output.stdout(`${host}: ${text}\n`);
      else hosts.push({ host, ...finishedMembers(finished) });
    },
  });
  if (format !== 'text')
    services.output.stdout(renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'FinishedChanges', hosts }, format));
  if (problems.length > 0) throw new AppError(problems, { exitCode });
  if (finishedHosts === 0 && format === 'text') services.output.stdout('Nothing to do: no change is pending.\n');
  return 0;
}

function finishedMembers(finished: Parameters<CommitsRequest['onHost']>[1]): object {
  if (finished === null) return { result: 'none' };
  const { result, record } = finished;
  return { result, madeBy: record.owner, madeAt: new Date(record.armedAt * 1000).toISOString() };
}

function defineDrift(drift: Command, on: On): void {
  addOptionGroup(drift, HEADINGS.output, (output) =>
    output
      .addOption(readOutputOption(['text', 'json', 'yaml', ...CI_FORMATS]))
      .option('--exit-code', 'exit with code 6 if a host has drifted')
      .option('--diff', 'show the changes that apply would make'),
  );
  on(
    addRunOptions(drift),
    (_, options): FleetDriftRequest => ({
      ...fleetRunRequest(options),
      output: { format: CI_FORMATS.find((name) => name === options.output) ?? readFormat(options), verbosity: verbosityOf(options) },
      showsDiff: options.diff === true,
      failsIfDrifted: options.exitCode === true,
    }),
    async (...args) => (await import('./fleet-drift.ts')).runFleetDrift(...args),
  );
  addSections(drift, { examples: DRIFT_EXAMPLES });
}

const DRIFT_EXAMPLES = `  # in a cron job: exit code 6 after a manual edit, or if a package overwrote a file
  kubeletadm fleet drift -f fleet.yaml --exit-code
  kubeletadm fleet drift --limit edge-017 --diff`;

function defineExec(exec: Command, on: On): void {
  addFleetHostOptions(
    exec
      .argument(
        '<command...>',
        "command and its arguments, after --; a single argument is run by a shell on the host, e.g. 'journalctl -u kubelet | tail -1'",
      )
      .option('--timeout <seconds>', 'time limit of the command on each host', integerBetween(1, SECONDS_OF_A_DAY), 60)
      .addOption(outputOption(['text', 'json'], 'output format; json: one object per host')),
    {
      commandTimeout:
        'time limit for each command that kubeletadm itself runs on a host (default: ssh.commandTimeout of the fleet file, otherwise 1m0s)',
    },
  );
  on(exec, execRequest, async (...args) => (await import('./fleet-exec.ts')).runFleetExec(...args));
  addSections(exec, { examples: EXEC_EXAMPLES });
}

function execRequest(args: readonly string[], options: CommandOptions): FleetExecRequest {
  const [only = ''] = args;
  if (args.length === 0)
    throw usageError('no command was given', 'Write the command after --: kubeletadm fleet exec -- systemctl is-active kubelet');
  return {
    ...fleetRequest(options),
    argv: args.length === 1 ? ['sh', '-c', only] : args,
    connection: connectionRequest(options),
    parallel: parallelOf(options),
    timeoutMs: flagNumber(options, 'timeout', 60) * 1000,
    format: flagChoice(options, 'output', ['text', 'json']),
  };
}

const EXEC_EXAMPLES = `  kubeletadm fleet exec -f fleet.yaml -- systemctl is-active kubelet
  kubeletadm fleet exec --group edge -- 'journalctl -u kubelet -n 3 | tail -1'`;

function defineStatus(status: Command, on: On): void {
  addOptionGroup(addReport(addTableOptions(status)), HEADINGS.output, (output) =>
    output.option('-w, --watch', 'after the first table, read the hosts again every 10 s and print changed rows until interrupted'),
  );
  addClusterOptions(addFleetHostOptions(status));
  on(
    status,
    (_, options): FleetStatusRequest => ({
      ...fleetRunRequest(options),
      output: { ...tableRequest(options), verbosity: verbosityOf(options) },
      watches: watchesStatus(options),
      report: flagText(options, 'report'),
    }),
    async (...args) => (await import('./status.ts')).runFleetStatus(...args),
  );
  addSections(status, { examples: STATUS_EXAMPLES });
}

function watchesStatus(options: CommandOptions): boolean {
  if (options.watch === true && options.report !== undefined)
    throw usageError('--watch and --report cannot be combined', 'Omit one of the two');
  return options.watch === true;
}

const STATUS_EXAMPLES = `  kubeletadm fleet status -f fleet.yaml
  kubeletadm fleet status --group edge -o json
  kubeletadm fleet status -l pool=edge -o jsonpath='{range .hosts[?(@.drift!="none")]}{.host}{"\\n"}{end}'`;
