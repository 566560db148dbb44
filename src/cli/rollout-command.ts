import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { splitSetting } from '../kubelet/layers/setting-form.ts';
import { addDrainLimits, allowOption } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { readSource } from './dynamic-rollout-options.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagList, flagText } from './option-values.ts';
import { addClusterOptions, addTableOptions, collect, integerBetween, readOutputOption } from './options.ts';
import { outputOption } from './output-options.ts';
import { flagDuration, kubeconfigRequest, outputRequest, readFormat, runRequest, selectorOf, tableRequest } from './request-parts.ts';
import type { CreateRequest, DiffRequest, StatusRequest, UndoRequest } from './rollout.ts';
import { gatesOption, ORDERS } from './rollout-options.ts';
import { canariesOf, rolloutRequest, specOf } from './rollout-spec-options.ts';

/** `rollout ...`: KubeletConfigRollout objects, with the verbs of kubectl rollout. */
export function defineRollout(rollout: Command, on: On): void {
  defineCreate(rollout, on);
  defineStatus(rollout, on);
  const list = rollout.command('list').description('List the rollouts of the cluster');
  on(addClusterOptions(addTableOptions(list)), listRequest, async (...args) => (await import('./rollout.ts')).runRolloutList(...args));
  for (const [name, description] of PAUSES) {
    const command = named(rollout, name, description);
    on(addClusterOptions(command), rolloutRequest, async (services, request) =>
      (await import('./rollout.ts')).runRolloutPause(services, request, name === 'pause'),
    );
  }
  defineRevisions(rollout, on);
  addSections(rollout, { notes: NOTES, examples: EXAMPLES });
}

const PAUSES = [
  ['pause', 'Pause a rollout: change no further node; nodes in progress finish'],
  ['resume', 'Resume a paused rollout'],
] as const;

function named(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).argument('<name>', 'name of the rollout, as NAME or kcr/NAME');
}

function defineCreate(rollout: Command, on: On): void {
  const create = named(rollout, 'create', 'Create a rollout after validating its payload for all selected nodes')
    .option('-l, --selector <labels>', 'label selector of the nodes, as in kubectl; also for nodes that join later')
    .option('--all', 'in place of --selector: all nodes')
    .option('--configmap <namespace/name[/key]>', 'immutable ConfigMap with the configuration, as printed by dynamic push')
    .option('--overlay <file>', "in place of --configmap: file with fields of a KubeletConfiguration; '-' for standard input")
    .option(
      '--set <field=value>',
      'in place of --configmap, or in addition to --overlay: field, e.g. --set maxPods=50 (repeatable)',
      collect,
    )
    .option('-n, --namespace <namespace>', 'namespace of the controller', AGENT_NAMESPACE);
  addOptionGroup(create, HEADINGS.rollout, (group) =>
    addDrainLimits(
      group
        .option('--canary <nodes>', 'canaries, changed first: number, percentage, or label of the nodes such as pool=edge (default: 1)')
        .addOption(new Option('--order <order>', 'order of the nodes: one zone after the other, or spread over the zones').choices(ORDERS))
        .option('--max-unavailable <nodes>', 'maximum number or percentage of nodes in progress or unavailable at once (default: 1)')
        .option(
          '--max-fail <nodes>',
          'maximum number of failed nodes; when more nodes fail, or a canary fails, no other node is changed (default: 0)',
        )
        .option('--min-ready <duration>', 'time a node must be Ready with its new configuration (default: 30s)')
        .option('--progress-deadline <duration>', 'time limit for each node (default: 15m)')
        .addOption(gatesOption('gates with a command or with files of credentials are refused'))
        .addOption(
          new Option(
            '--until <state>',
            'state that each node must reach. trial: the kubelet runs the new configuration, and its trial period has begun. good: the trial period has ended without a failure (default: trial)',
          ).choices(['trial', 'good']),
        )
        .addOption(
          allowOption(
            'most disruptive class of changes to allow; dynamic assign --help explains the classes; for drain and unsafe, each node is drained (default: new-pods-only)',
          ),
        )
        .addOption(
          new Option(
            '--on-failure <action>',
            'action when the rollout fails. stop: change no other node. revert: also restore the previous assignment of all changed nodes (default: stop)',
          ).choices(['stop', 'revert']),
        )
        .addOption(
          new Option(
            '--deletion-policy <policy>',
            'action when the object is deleted. leave: nodes keep their configuration. reset: nodes return to their local configuration (default: leave)',
          ).choices(['leave', 'reset']),
        )
        .option('--paused', 'create the rollout paused: change no node until kubeletadm rollout resume'),
    ),
  );
  addOptionGroup(create, HEADINGS.output, (output) =>
    output.option('--dry-run', 'validate and print the object; create nothing').addOption(outputOption(['text', 'json', 'yaml'])),
  );
  on(addClusterOptions(create), createRequest, async (...args) => (await import('./rollout.ts')).runRolloutCreate(...args));
  addSections(create, { examples: CREATE_EXAMPLES });
}

function defineStatus(rollout: Command, on: On): void {
  const status = named(rollout, 'status', 'Show the state of a rollout and its nodes that are not updated').option(
    '--wait',
    'wait until the rollout is complete or has failed. Exit codes: 0 complete, 1 the only node failed or --timeout was reached, 3 refused before a node was updated, 4 some nodes failed or refused later, 5 reverted',
  );
  status.option('--timeout <duration>', 'with --wait: time limit; 0s: no limit (default: 0s)');
  addOptionGroup(addClusterOptions(status), HEADINGS.output, (output) => output.addOption(readOutputOption()));
  on(status, statusRequest, async (...args) => (await import('./rollout.ts')).runRolloutStatus(...args));
}

function defineRevisions(rollout: Command, on: On): void {
  const undo = named(rollout, 'undo', 'Set the payload of a rollout to that of an earlier revision')
    .addOption(revisionOption('--to-revision <number>', 'number of the revision, see rollout history (default: the previous revision)'))
    .option('--dry-run', 'print the changed fields; change nothing');
  on(addClusterOptions(undo), undoRequest, async (...args) => (await import('./rollout.ts')).runRolloutUndo(...args));
  const history = named(rollout, 'history', 'List the revisions of a rollout, with the fields that each one changed');
  on(addClusterOptions(addTableOptions(history)), historyRequest, async (...args) =>
    (await import('./rollout.ts')).runRolloutHistory(...args),
  );
  const diff = named(rollout, 'diff', 'Compare the payload of a rollout with the running configuration of its nodes, or two revisions')
    .addOption(
      revisionOption(
        '--revision <number>',
        'compare this revision with the payload (default: compare the running configuration of the nodes with the payload)',
      ),
    )
    .addOption(revisionOption('--to-revision <number>', 'with --revision: compare with this revision instead of the payload'))
    .option('--exit-code', 'exit with code 6 if fields differ');
  addOptionGroup(diff, HEADINGS.output, (output) => output.addOption(readOutputOption()));
  on(addClusterOptions(diff), diffRequest, async (...args) => (await import('./rollout.ts')).runRolloutDiff(...args));
}

const MOST_REVISIONS = 2_147_483_647;

function revisionOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(integerBetween(1, MOST_REVISIONS));
}

const NOTES = `A rollout is an object of the cluster (KubeletConfigRollout, short name kcr). A controller changes its nodes batch by batch, also nodes that join later; to install it, see kubeletadm controller install. kubectl apply, edit, get and delete work as for other objects.`;

const EXAMPLES = `  kubeletadm rollout create edge --selector pool=edge --set maxPods=200 --canary 2 --max-unavailable 10%
  kubeletadm rollout status edge --wait --timeout 30m
  kubeletadm rollout undo edge`;

const CREATE_EXAMPLES = `  kubeletadm rollout create edge --selector pool=edge --overlay fields.yaml --on-failure revert
  kubeletadm rollout create edge --selector pool=edge --configmap kubeletadm-system/node-config-g2gfckm55t
  kubeletadm rollout create edge --selector pool=edge --set maxPods=200 --gates gates.yaml
  # change all fields of an existing rollout
  kubeletadm rollout create edge --selector pool=edge --set maxPods=200 --dry-run -o yaml | kubectl replace -f -`;

function listRequest(args: readonly string[], options: CommandOptions) {
  if (args.length > 0) throw usageError(`rollout list takes no arguments: ${args.join(' ')}`);
  return { cluster: kubeconfigRequest(options), output: tableRequest(options) };
}

function statusRequest(args: readonly string[], options: CommandOptions): StatusRequest {
  const timeoutMs = flagDuration(options, 'timeout', { example: 'Pass for example --timeout 30m' });
  const waits = options.wait === true;
  if (timeoutMs !== undefined && !waits) throw usageError('--timeout requires --wait', 'Add --wait');
  return { ...rolloutRequest(args, options), waits, timeoutMs: timeoutMs ?? 0, format: readFormat(options) };
}

function undoRequest(args: readonly string[], options: CommandOptions): UndoRequest {
  return { ...rolloutRequest(args, options), toRevision: flagOf(options, 'toRevision'), run: runRequest(options) };
}

function historyRequest(args: readonly string[], options: CommandOptions) {
  return { ...rolloutRequest(args, options), output: tableRequest(options) };
}

function diffRequest(args: readonly string[], options: CommandOptions): DiffRequest {
  const [revision, toRevision] = [flagOf(options, 'revision'), flagOf(options, 'toRevision')];
  if (toRevision !== undefined && revision === undefined) throw usageError('--to-revision requires --revision', 'Add --revision');
  return { ...rolloutRequest(args, options), revision, toRevision, failsIfChanged: options.exitCode === true, format: readFormat(options) };
}

/** A number that commander has parsed. */
function flagOf(options: CommandOptions, name: 'revision' | 'toRevision'): number | undefined {
  const value = options[name];
  return typeof value === 'number' ? value : undefined;
}

function createRequest(args: readonly string[], options: CommandOptions): CreateRequest {
  const canaries = canariesOf(options);
  return {
    ...rolloutRequest(args, options),
    namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
    selector: requiredSelector(options),
    payload: payloadOf(options),
    spec: specOf(options, canaries !== undefined),
    canaries,
    gates: flagText(options, 'gates'),
    run: runRequest(options),
    format: outputRequest(options).format,
  };
}

function requiredSelector(options: CommandOptions): CreateRequest['selector'] {
  const selector = selectorOf(options);
  if ((selector === undefined) === (options.all === true)) return selector ?? null;
  throw usageError('rollout create: one of --selector and --all is required', 'For example: --selector pool=edge');
}

function payloadOf(options: CommandOptions): CreateRequest['payload'] {
  const [configMap, overlay, settings] = [flagText(options, 'configmap'), flagText(options, 'overlay'), flagList(options, 'set')];
  const hasFields = overlay !== undefined || settings.length > 0;
  if ((configMap !== undefined) === hasFields)
    throw usageError(
      `rollout create: ${hasFields ? '--configmap cannot be combined with --overlay and --set' : 'nothing to roll out'}`,
      'Pass --configmap, or fields with --overlay and --set',
    );
  for (const setting of settings) splitSetting(setting);
  return configMap === undefined ? { overlay, settings } : readSource(configMap);
}
