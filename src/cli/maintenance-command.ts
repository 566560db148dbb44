import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import type { DrainRules } from '../maintenance/forecast/drain-pod.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import type { DrainCommandRequest, MaintenanceStatusRequest, UncordonRequest } from './maintenance.ts';
import { flagNumber, flagText } from './option-values.ts';
import { addClusterOptions, addNodeSelectionOptions, addSshOptions, addTableOptions, integerBetween } from './options.ts';
import { outputOption } from './output-options.ts';
import { flagDuration, kubeconfigRequest, nodeChoice, outputRequest, parseSelector, runRequest, tableRequest } from './request-parts.ts';

const NODES = 'names of Nodes, as NAME or node/NAME, or of hosts in the fleet file';

/** `drain NODE...`. */
export function defineDrain(drain: Command, on: On): void {
  drain.argument('[node...]', NODES).option('--reason <text>', 'reason, recorded on each Node with the operator and the time');
  addDrainOptions(drain);
  on(
    addNodes(drain),
    (args, options) => drainRequest(args, options, 'drain'),
    async (...words) => (await import('./maintenance.ts')).runDrain(...words),
  );
  addSections(drain, { notes: DRAIN_NOTES, examples: DRAIN_EXAMPLES });
}

/** `uncordon NODE...`. */
export function defineUncordon(uncordon: Command, on: On): void {
  uncordon.argument('[node...]', NODES).addOption(outputOption(['text', 'json', 'yaml']));
  on(addNodes(uncordon), uncordonRequest, async (...words) => (await import('./maintenance.ts')).runUncordon(...words));
  addSections(uncordon, { notes: UNCORDON_NOTES });
}

/** `maintenance start|end|status`. */
export function defineMaintenance(maintenance: Command, on: On): void {
  const start = maintenance
    .command('start')
    .description('Drain nodes, and mark them as in maintenance')
    .argument('[node...]', NODES)
    .option('--reason <text>', 'reason, recorded on each Node with the operator and the time');
  addDrainOptions(start);
  on(
    addNodes(start),
    (args, options) => drainRequest(args, options, 'maintenance'),
    async (...words) => (await import('./maintenance.ts')).runDrain(...words),
  );
  const end = maintenance
    .command('end')
    .description('End the maintenance of nodes: remove the conditions and the cordon')
    .argument('[node...]', NODES);
  on(addNodes(end.addOption(outputOption(['text', 'json', 'yaml']))), uncordonRequest, async (...words) =>
    (await import('./maintenance.ts')).runUncordon(...words),
  );
  addSections(end, { notes: UNCORDON_NOTES });
  const status = maintenance
    .command('status')
    .description('Show which nodes are cordoned or in maintenance, by whom and why')
    .argument('[node...]', `${NODES} (default: all that are out of service)`);
  addTableOptions(status);
  on(addNodes(status), statusRequest, async (...words) => (await import('./maintenance.ts')).runMaintenanceStatus(...words));
  addSections(maintenance, { examples: MAINTENANCE_EXAMPLES });
}

function addNodes(command: Command): Command {
  return addClusterOptions(addSshOptions(addOptionGroup(command, HEADINGS.rollout, (rollout) => addNodeSelectionOptions(rollout))));
}

/** The flags of kubectl drain, and the limits. */
function addDrainOptions(command: Command): Command {
  addOptionGroup(command, HEADINGS.output, (output) =>
    output.option('--dry-run', 'print the forecast; change nothing').addOption(outputOption(['text', 'json', 'yaml'])),
  );
  return command
    .option('--ignore-daemonsets', 'leave pods of DaemonSets on the node; without the option, they prevent the drain')
    .option('--delete-emptydir-data', 'evict pods with emptyDir volumes, whose data is deleted')
    .option('--force', 'evict pods without a controller, which no controller creates again')
    .option('--grace-period <seconds>', 'grace period of each pod; -1: that of the pod', integerOrMinusOne, -1)
    .option('--pod-selector <labels>', 'label selector of the pods to evict; other pods stay')
    .option('--timeout <duration>', 'time limit for all nodes; 0: none', '0s')
    .option('--node-timeout <duration>', 'time limit for each node', '10m')
    .option('--parallel <nodes>', 'number of nodes drained at the same time', integerBetween(1, 1000), 1)
    .addOption(new Option('--disable-eviction', 'refused: deleted pods bypass their PodDisruptionBudgets').hideHelp());
}

function integerOrMinusOne(text: string): number {
  return text === '-1' ? -1 : integerBetween(0, 2 ** 31)(text);
}

function drainRequest(args: readonly string[], options: CommandOptions, purpose: 'drain' | 'maintenance'): DrainCommandRequest {
  if (options.disableEviction === true)
    throw usageError(
      '--disable-eviction is not supported: deleted pods bypass their PodDisruptionBudgets',
      'Free the budget that the forecast names: run the command with --dry-run',
    );
  const reason = flagText(options, 'reason') ?? (purpose === 'drain' ? 'drain' : 'maintenance');
  const total = flagDuration(options, 'timeout', { example: 'Pass for example --timeout 30m' }) ?? 0;
  const timeoutMs =
    flagDuration(options, 'nodeTimeout', { flag: '--node-timeout', example: 'Pass for example --node-timeout 10m', least: 1 }) ?? 0;
  return {
    choice: requiredChoice(args, options),
    cluster: kubeconfigRequest(options),
    run: runRequest(options),
    settings: { rules: rulesOf(options), timeoutMs, isForMaintenance: purpose === 'maintenance' },
    limits: { atOnce: flagNumber(options, 'parallel', 1), timeoutMs: total === 0 ? null : total },
    reason,
    output: outputRequest(options),
  };
}

function rulesOf(options: CommandOptions): DrainRules {
  const seconds = flagNumber(options, 'gracePeriod', -1);
  const selector = flagText(options, 'podSelector');
  return {
    ignoreDaemonSets: options.ignoreDaemonsets === true,
    deleteEmptyDirData: options.deleteEmptydirData === true,
    force: options.force === true,
    gracePeriodSeconds: seconds < 0 ? null : seconds,
    selects: selector === undefined ? () => true : parseSelector(selector, '--pod-selector').matches,
  };
}

function requiredChoice(args: readonly string[], options: CommandOptions): NonNullable<ReturnType<typeof nodeChoice>> {
  const choice = nodeChoice(args, options);
  if (choice === undefined) throw usageError('no node is selected', 'Pass names of Nodes, --selector, --group or --limit');
  return choice;
}

function uncordonRequest(args: readonly string[], options: CommandOptions): UncordonRequest {
  return { choice: requiredChoice(args, options), cluster: kubeconfigRequest(options), output: outputRequest(options) };
}

function statusRequest(args: readonly string[], options: CommandOptions): MaintenanceStatusRequest {
  return { choice: nodeChoice(args, options), cluster: kubeconfigRequest(options), output: tableRequest(options) };
}

const DRAIN_NOTES = `Before the first cordon, the command forecasts which pods have to move, which PodDisruptionBudgets cover them, and whether other nodes can take them (an estimate). If a node cannot be drained, nothing is cordoned, and the exit code is 3.

Pods are evicted through the Eviction API, which respects PodDisruptionBudgets. A node that is not drained in time is uncordoned again; a drained node stays cordoned until uncordon. Exit code 4: only some of the nodes are drained.`;

const UNCORDON_NOTES = 'Cordons that other programs made stay; remove them with kubectl uncordon.';

const DRAIN_EXAMPLES = `  # What would a drain do? Changes nothing
  kubeletadm drain worker-1 worker-2 --ignore-daemonsets --dry-run

  kubeletadm drain worker-1 --ignore-daemonsets --reason 'new disk'
  kubeletadm uncordon worker-1`;

const MAINTENANCE_EXAMPLES = `  kubeletadm maintenance start worker-1 --ignore-daemonsets --reason 'new disk'
  kubeletadm maintenance status
  kubeletadm maintenance end worker-1`;
