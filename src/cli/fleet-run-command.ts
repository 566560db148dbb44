import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { type Amount, parseAmount } from '../fleet/amount.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import type { RulesRequest } from '../fleet/use-cases/fleet-rules.ts';
import type { CommandOptions, On } from './command.ts';
import type { FleetApplyRequest } from './fleet-apply.ts';
import type { FleetDriftRequest } from './fleet-drift.ts';
import type { FleetExecRequest } from './fleet-exec.ts';
import type { FleetPlanRequest } from './fleet-plan.ts';
import type { FleetStatusRequest } from './fleet-status.ts';
import { addSections, HEADINGS, underHeading } from './help-layout.ts';
import {
  addClusterOptions,
  addFleetFileOption,
  addFleetSelectionOptions,
  addIgnoredChecks,
  addShowOrigin,
  addSshOptions,
  FLEET_COMMAND_TIMEOUT,
  integerBetween,
  outputOption,
  SECONDS_OF_A_DAY,
} from './options.ts';
import {
  connectionRequest,
  flagChoice,
  flagNumber,
  flagText,
  fleetRequest,
  ignoredChecks,
  kubeconfigRequest,
  outputRequest,
  planRequest,
  verbosityOf,
} from './request-parts.ts';
import { addConfirmOptions, writingRequest } from './writing-options.ts';

/** Larger than any usable fleet file. */
const MAX_PARALLEL = 100_000;

/** `fleet plan`, `fleet apply`, `fleet status`, `fleet drift`, `fleet exec`. */
export function defineFleetRun(fleet: Command, on: On): void {
  definePlan(fleet.command('plan').description('Show the changes a fleet file would make to its hosts, without making them'), on);
  defineApply(fleet.command('apply').description('Apply a fleet file or a saved plan'), on);
  defineStatus(fleet.command('status').description('Show version, configuration, health, Node and drift of each host'), on);
  defineDrift(fleet.command('drift').description('Show where hosts differ from the configuration in the fleet file and the cluster'), on);
  defineExec(fleet.command('exec').description('Run a command as root on every host'), on);
}

function defineStatus(status: Command, on: On): void {
  addClusterOptions(addFleetHostOptions(status.addOption(outputOption(['text', 'json', 'yaml']))));
  on(
    status,
    (_, options): FleetStatusRequest => ({ run: runRequest(options), output: outputRequest(options) }),
    async () => (await import('./fleet-status.ts')).runFleetStatus,
  );
  addSections(status, { examples: STATUS_EXAMPLES });
}

function defineDrift(drift: Command, on: On): void {
  underHeading(drift, HEADINGS.output, (output) =>
    output
      .addOption(outputOption(['text', 'json', 'yaml']))
      .option('--exit-code', 'exit with code 6 if a host has drifted')
      .option('--diff', 'show the changes that apply would make'),
  );
  on(
    addRunOptions(drift),
    (_, options): FleetDriftRequest => ({
      run: runRequest(options),
      output: outputRequest(options),
      showsDiff: options.diff === true,
      failsIfDrifted: options.exitCode === true,
    }),
    async () => (await import('./fleet-drift.ts')).runFleetDrift,
  );
  addSections(drift, { examples: DRIFT_EXAMPLES });
}

function defineExec(exec: Command, on: On): void {
  addFleetHostOptions(
    exec
      .argument('<command...>', 'command and arguments, after --; a single argument is a command line for the shell')
      .option('--timeout <seconds>', 'time limit of the command on each host', integerBetween(1, SECONDS_OF_A_DAY), 60)
      .addOption(outputOption(['text', 'json'], 'output format; json: one object per host')),
    'time limit for each command that kubeletadm itself runs on a host (default: ssh.commandTimeout of the fleet file, otherwise 1m0s)',
  );
  on(exec, execRequest, async () => (await import('./fleet-exec.ts')).runFleetExec);
  addSections(exec, { examples: EXEC_EXAMPLES });
}

/** `plan`, `fleet plan`. */
export function definePlan(plan: Command, on: On): void {
  underHeading(plan, HEADINGS.output, (output) =>
    output
      .option('--out <file>', 'file to save the plan to, for apply')
      .addOption(outputOption(['text', 'json', 'yaml']))
      .option('--exit-code', 'exit with code 6 if changes are pending'),
  );
  on(
    addRunOptions(addShowOrigin(plan)),
    (_, options): FleetPlanRequest => ({ run: runRequest(options), output: planRequest(options), out: flagText(options, 'out') }),
    async () => (await import('./fleet-plan.ts')).runFleetPlan,
  );
  addSections(plan, { notes: PLAN_NOTES, examples: PLAN_EXAMPLES });
}

/** `apply`, `fleet apply`. */
export function defineApply(apply: Command, on: On): void {
  apply.argument('[plan]', 'saved plan, applied exactly as saved; hosts that changed since then are refused');
  underHeading(apply, HEADINGS.rollout, (rollout) =>
    rollout
      .option(
        '--canary <hosts>',
        'number or percentage of hosts that must be changed and healthy before any other host is changed; 0: none',
        '1',
      )
      .option('--serial <hosts>', 'maximum number or percentage of hosts changed at once (default: the value of --parallel)')
      .option(
        '--max-fail <hosts>',
        'number or percentage of failed hosts tolerated; with more, the remaining hosts are skipped; 100%: no limit (default: 10% of the hosts changed so far, but never fewer than 1 or more than 10 hosts)',
      )
      .option(
        '--replan',
        'plan again for hosts that changed since the plan was saved, show the difference and apply the new plan (default: refuse such hosts)',
      )
      .addOption(
        new Option(
          '--retry <hosts>',
          'with failed: process only the hosts that in the last run failed, rolled back, were refused, were unreachable or were not started',
        ).choices(['failed']),
      ),
  );
  apply.addOption(outputOption(['text', 'json'], 'output format; json: one event per line'));
  on(
    addConfirmOptions(addRunOptions(apply)),
    ([planFile], options): FleetApplyRequest => ({
      planFile,
      run: runRequest(options),
      retriesFailed: options.retry !== undefined,
      output: outputRequest(options),
    }),
    async () => (await import('./fleet-apply.ts')).runFleetApply,
  );
  addSections(apply, { notes: APPLY_NOTES, examples: APPLY_EXAMPLES });
}

/**
 * Selection of hosts, and the connection to the hosts and the cluster.
 * @param commandTimeout the text of `--command-timeout`
 */
export function addFleetHostOptions(command: Command, commandTimeout = FLEET_COMMAND_TIMEOUT): Command {
  addFleetSelectionOptions(addFleetFileOption(command));
  underHeading(command, HEADINGS.fleet, (fleet) =>
    fleet.option('--parallel <hosts>', 'maximum number of hosts processed at once', integerBetween(1, MAX_PARALLEL), 50),
  );
  return addSshOptions(command, commandTimeout);
}

function addRunOptions(command: Command): Command {
  addIgnoredChecks(command);
  addClusterOptions(addFleetHostOptions(command));
  return underHeading(command, HEADINGS.fleet, (fleet) =>
    fleet.option('--take-over', 'reuse the name of an existing Node that is not Ready'),
  );
}

function execRequest(args: readonly string[], options: CommandOptions): FleetExecRequest {
  const [only = ''] = args;
  if (args.length === 0) throw usageError('no command was given', 'Write it after --: fleet exec -- systemctl is-active kubelet');
  return {
    ...fleetRequest(options),
    argv: args.length === 1 ? ['sh', '-c', only] : args,
    connection: connectionRequest(options),
    parallel: parallelOf(options),
    timeoutMs: flagNumber(options, 'timeout', 60) * 1000,
    format: flagChoice(options, 'output', ['text', 'json']),
  };
}

/** `--parallel`. */
export function parallelOf(options: CommandOptions): number {
  return flagNumber(options, 'parallel', 50);
}

function runRequest(options: CommandOptions): FleetRunRequest {
  return {
    ...fleetRequest(options),
    connection: connectionRequest(options),
    cluster: kubeconfigRequest(options),
    rules: rulesRequest(options),
    writing: writingRequest(options),
    ignorePreflightErrors: ignoredChecks(options),
    takeOver: options.takeOver === true,
    replan: options.replan === true,
    verbosity: verbosityOf(options),
  };
}

function rulesRequest(options: CommandOptions): RulesRequest {
  const serial = amountOf(options, 'serial');
  if (serial !== null && ('hosts' in serial ? serial.hosts : serial.percent) === 0)
    throw usageError('--serial 0: must be at least 1', 'Leave the option out to change all hosts at once');
  return {
    parallel: parallelOf(options),
    canary: amountOf(options, 'canary') ?? { hosts: 0 },
    serial,
    maxFail: amountOf(options, 'maxFail'),
  };
}

function amountOf(options: CommandOptions, name: 'canary' | 'serial' | 'maxFail'): Amount | null {
  const text = flagText(options, name);
  if (text === undefined) return null;
  const amount = parseAmount(text);
  if (amount !== null) return amount;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw usageError(`--${flag} ${text}: neither a number of hosts nor a percentage`, `Write it like --${flag} 5 or --${flag} 10%`);
}

const PLAN_NOTES =
  'Hosts that are not nodes yet would join the cluster. Existing nodes would get the configuration defined by the fleet file and the cluster.';

const PLAN_EXAMPLES = `  kubeletadm plan -f fleet.yaml
  kubeletadm plan -f fleet.yaml --group edge --out plan.json`;

const APPLY_NOTES =
  'Unreachable hosts are reported at the end and do not delay other hosts. After Ctrl-C, the hosts in progress are finished and no other host is changed.';

const APPLY_EXAMPLES = `  kubeletadm apply -f fleet.yaml --serial 10% --max-fail 2
  kubeletadm apply plan.json`;

const STATUS_EXAMPLES = `  kubeletadm fleet status -f fleet.yaml
  kubeletadm fleet status --group edge -o json`;

const DRIFT_EXAMPLES = `  # in a cron job: exit code 6 after a manual edit, or if a package overwrote a file
  kubeletadm fleet drift -f fleet.yaml --exit-code
  kubeletadm fleet drift --limit edge-017 --diff`;

const EXEC_EXAMPLES = `  kubeletadm fleet exec -f fleet.yaml -- systemctl is-active kubelet
  kubeletadm fleet exec --group edge -- 'journalctl -u kubelet -n 3 | tail -1'`;
