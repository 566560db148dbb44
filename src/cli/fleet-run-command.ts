import { type Command, Option } from 'commander';
import {
  addClusterOptions,
  addFleetFileOption,
  addFleetSelectionOptions,
  addSshOptions,
  collectList,
  outputOption,
  parseCount,
} from './options.ts';
import type { On, Run } from './program.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `fleet plan`, `fleet apply`. */
export function defineFleetRun(fleet: Command, on: On): void {
  definePlan(fleet.command('plan').description(PLAN), on);
  defineApply(fleet.command('apply').description(APPLY), on);
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
    .option('--max-fail <hosts>', 'more failed hosts (or a share) than this stop the rest')
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
      'hosts that are worked on at a time',
      parseCount,
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
A host that cannot be reached is told at the end and keeps nobody waiting. Ctrl-C brings the hosts under way to their end and begins no other.

Examples:
  kubeletadm apply -f fleet.yaml --serial 10% --max-fail 2
  kubeletadm apply plan.json`;
