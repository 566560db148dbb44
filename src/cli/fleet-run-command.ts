import { type Command, Option } from 'commander';
import type { On, Run } from './command.ts';
import {
  addClusterOptions,
  addFleetFileOption,
  addFleetSelectionOptions,
  addSshOptions,
  collectList,
  integerBetween,
  outputOption,
  SECONDS_OF_A_DAY,
} from './options.ts';
import { addConfirmOptions } from './writing-options.ts';

/** More hosts at once than any fleet file can usefully list. */
const MAX_PARALLEL = 100_000;

/** `fleet plan`, `fleet apply`, `fleet status`, `fleet drift`, `fleet exec`. */
export function defineFleetRun(fleet: Command, on: On): void {
  definePlan(fleet.command('plan').description(PLAN), on);
  defineApply(fleet.command('apply').description(APPLY), on);
  defineStatus(fleet.command('status').description('Show a line for each host: version, configuration, health, Node, drift'), on);
  defineDrift(
    fleet.command('drift').description('Show how hosts differ from the fleet file and the cluster, whatever made the change'),
    on,
  );
  defineExec(fleet.command('exec').description('Run a command as root on every host'), on);
}

function defineStatus(status: Command, on: On): void {
  addClusterOptions(addFleetHostOptions(status)).addOption(outputOption(['text', 'json', 'yaml']));
  on(status, async (): Promise<Run> => (await import('./fleet-status.ts')).runFleetStatus);
  status.addHelpText('after', STATUS_EXAMPLES);
}

function defineDrift(drift: Command, on: On): void {
  addRunOptions(drift)
    .option('--exit-code', 'exit with 6 when a host has drifted')
    .option('--diff', 'with what apply would change')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(drift, async (): Promise<Run> => (await import('./fleet-drift.ts')).runFleetDrift);
  drift.addHelpText('after', DRIFT_EXAMPLES);
}

function defineExec(exec: Command, on: On): void {
  addFleetHostOptions(exec.argument('<command...>', 'the command and its arguments, after --; one alone is a line for the shell'))
    .option('--timeout <seconds>', 'time limit of the command on each host', integerBetween(1, SECONDS_OF_A_DAY), 60)
    .addOption(new Option('-o, --output <format>', 'json: one object a host').choices(['text', 'json']).default('text'));
  on(exec, async (): Promise<Run> => (await import('./fleet-exec.ts')).runFleetExec);
  exec.addHelpText('after', EXEC_EXAMPLES);
}

const PLAN = 'Show what a fleet file would change on its hosts; changes nothing';
const APPLY = 'Bring the hosts of a fleet file to what it says, or do what a saved plan says';

/** `plan`, `fleet plan`. */
export function definePlan(plan: Command, on: On): void {
  addRunOptions(plan)
    .option('--out <file>', 'save the plan, for apply')
    .option('--show-origin', 'say of each field which line of which file it comes from')
    .option('--exit-code', 'exit with 6 when changes are pending')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(plan, async (): Promise<Run> => (await import('./fleet-plan.ts')).runFleetPlan);
  plan.addHelpText('after', PLAN_EXAMPLES);
}

/** `apply`, `fleet apply`. */
export function defineApply(apply: Command, on: On): void {
  addConfirmOptions(
    addRunOptions(
      apply.argument('[plan]', 'a plan that was saved: exactly that is done; a host on which anything changed since is refused'),
    ),
  )
    .option('--canary <hosts>', 'so many hosts (or a share, 5%) are changed first and must be well before any other (0: none)', '1')
    .option('--serial <hosts>', 'so many hosts (or a share, 20%) at most are being changed at a time')
    .option(
      '--max-fail <hosts>',
      'maximum number (or share, 5%) of failed hosts before the rest is not started; 100%: no limit (default: 1 or 10% of the changed hosts, at most 10)',
    )
    .option(
      '--replan',
      'of a saved plan: plan hosts that changed since again, show the difference and apply the new plan (default: refuse them)',
    )
    .addOption(new Option('--retry <hosts>', 'only the hosts the last run left undone: failed, not reached, not begun').choices(['failed']))
    .addOption(new Option('-o, --output <format>', 'json: one event a line').choices(['text', 'json']).default('text'));
  on(apply, async (): Promise<Run> => (await import('./fleet-apply.ts')).runFleetApply);
  apply.addHelpText('after', APPLY_EXAMPLES);
}

/** Which hosts, and how they and the cluster are reached. */
export function addFleetHostOptions(command: Command): Command {
  return addSshOptions(
    addFleetSelectionOptions(addFleetFileOption(command)).option(
      '--parallel <hosts>',
      'maximum number of hosts processed at once',
      integerBetween(1, MAX_PARALLEL),
      50,
    ),
  );
}

function addRunOptions(command: Command): Command {
  return addClusterOptions(addFleetHostOptions(command))
    .option('--take-over', 'take the name of a Node that is there and not Ready')
    .option('--ignore-preflight-errors <checks>', "preflight checks whose errors become warnings; 'all' ignores all", collectList);
}

const PLAN_EXAMPLES = `
Hosts that are no nodes yet join the cluster; those that are get the configuration that the file and the cluster say now.

Examples:
  kubeletadm plan -f fleet.yaml
  kubeletadm plan -f fleet.yaml --group edge --out plan.json`;

const APPLY_EXAMPLES = `
Unreachable hosts are reported at the end and do not delay others. Ctrl-C finishes the hosts in progress and starts no other.

Examples:
  kubeletadm apply -f fleet.yaml --serial 10% --max-fail 2
  kubeletadm apply plan.json`;

const STATUS_EXAMPLES = `
Examples:
  kubeletadm fleet status -f fleet.yaml
  kubeletadm fleet status --group edge -o json`;

const DRIFT_EXAMPLES = `
Examples:
  # in a cron job: exit code 6 when a file was edited by hand, or a package overwrote it
  kubeletadm fleet drift -f fleet.yaml --exit-code
  kubeletadm fleet drift --limit edge-017 --diff`;

const EXEC_EXAMPLES = `
Examples:
  kubeletadm fleet exec -f fleet.yaml -- systemctl is-active kubelet
  kubeletadm fleet exec --group edge -- 'journalctl -u kubelet -n 3 | tail -1'`;
