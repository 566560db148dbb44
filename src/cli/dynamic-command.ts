import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { PushedFileRequest, PushRequest, ValidationRequest } from '../dynamic/use-cases/push-file.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { isConfigMapKey } from '../kubelet/layers/config-source.ts';
import { addDrainOptions } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import type { DynamicAssignRequest, DynamicResetRequest, DynamicUndoRequest } from './dynamic-assign.ts';
import { defineDynamicEnable } from './dynamic-enable-command.ts';
import { addBackend, defineGc, defineInspect, defineReads } from './dynamic-read-command.ts';
import {
  addAssignmentReason,
  addRollout,
  addWait,
  type RolloutTexts,
  readRolloutOptions,
  readSource,
  requireNodeChoice,
} from './dynamic-rollout-options.ts';
import { addSections } from './help-layout.ts';
import { flagList, flagText } from './option-values.ts';
import { addClusterOptions, addDryRunOptions, collect } from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import { addPageOptions, pageFlags } from './page-options.ts';
import { backendOf, fleetNames, kubeconfigRequest, planRequest, runRequest } from './request-parts.ts';
import type { AssignRolloutRequest } from './rollout.ts';
import { gatesRequest } from './rollout-options.ts';
import { readReason, undoIdOf } from './writing-options.ts';

/** `dynamic ...`: configures kubelets from ConfigMaps. */
export function defineDynamic(dynamic: Command, on: On): void {
  definePush(dynamic, on);
  defineAssign(dynamic, on);
  defineReset(dynamic, on);
  defineUndo(dynamic, on);
  defineReads(dynamic, on);
  defineGc(dynamic, on);
  defineInspect(dynamic, on);
  defineDynamicEnable(dynamic, on);
  addSections(dynamic, { examples: EXAMPLES });
}

const PAYLOAD_FILE =
  'file with a KubeletConfiguration, or with only the fields to change (kind: KubeletConfigurationOverlay, apiVersion: kubeletadm.dev/v1alpha1)';

function definePush(dynamic: Command, on: On): void {
  const push = dynamic
    .command('push')
    .description('Validate a KubeletConfiguration, store it as a ConfigMap, and print the value for dynamic assign --configmap')
    .argument('<file>', `${PAYLOAD_FILE}; '-' for standard input`)
    .option('--name <name>', 'name of the ConfigMap, without the hash', 'node-config')
    .option(
      '-n, --namespace <namespace>',
      `namespace of the ConfigMap; only ${AGENT_NAMESPACE} is created if it does not exist`,
      AGENT_NAMESPACE,
    )
    .option('--key <key>', 'key of the KubeletConfiguration in the ConfigMap', 'kubelet')
    .option(
      '--beside <key=file>',
      'additional file to store in the ConfigMap, e.g. resolv.conf=./resolv.conf; the KubeletConfiguration refers to the file by KEY as a relative path (repeatable)',
      collect,
    )
    .option('--append-hash', "append kubectl's content hash to the name and make the ConfigMap immutable", true)
    .option('--no-append-hash', 'use the name without a hash')
    .option(
      '--in-place',
      'with --no-append-hash: replace the content of an existing ConfigMap that is not immutable; every kubelet that uses the ConfigMap restarts within seconds',
    );
  addClusterOptions(addDryRunOptions(addSigning(addValidation(push), 'all nodes')));
  on(
    push,
    (args, options): WithPlan<PushRequest> => ({
      pushed: pushedFile(soleFile(args), options),
      cluster: kubeconfigRequest(options),
      plan: planRequest(options),
      run: runRequest(options),
    }),
    runDynamicPush,
  );
}

function defineAssign(dynamic: Command, on: On): void {
  const assign = dynamic
    .command('assign')
    .description('Assign a ConfigMap to nodes in batches and wait for the result')
    .argument('[node...]', 'names of Nodes, as NAME or node/NAME, or of hosts in the fleet file')
    .option('--configmap <namespace/name[/key]>', 'ConfigMap to assign, as printed by dynamic push')
    .option('--file <file>', `${PAYLOAD_FILE}; stored as ConfigMap node-config-HASH and assigned`)
    .option(
      '-n, --namespace <namespace>',
      `with --file: namespace of the ConfigMap; only ${AGENT_NAMESPACE} is created if it does not exist`,
      AGENT_NAMESPACE,
    )
    .option(
      '--force',
      'also assign to nodes without dynamic configuration, and to nodes whose kubelet or agent has not reported a configuration yet',
    )
    .option(
      '--rollout <name>',
      'with --selector: create a KubeletConfigRollout with this name, and wait for its result; a running controller rolls it out, also to nodes that join later',
    )
    .option('--allow-pod-loss', 'also assign a configuration that would terminate running pods or prevent new pods from starting');
  addWait(
    addRollout(addBackend(addSigning(addValidation(assign), 'the selected nodes')), ASSIGN_TEXTS),
    ['trial', 'good', 'none'],
    ASSIGN_STATES,
  );
  addDrainOptions(addClusterOptions(addPageOptions(addDryRunOptions(addAssignmentReason(assign)))));
  addSections(
    on(assign, assignRequest, async (services, request) =>
      'asRollout' in request
        ? (await import('./rollout.ts')).runAssignRollout(services, await request.asRollout())
        : (await import('./dynamic-assign.ts')).runDynamicAssign(services, request),
    ),
    { notes: ASSIGN_NOTES, examples: ASSIGN_EXAMPLES },
  );
}

function defineReset(dynamic: Command, on: On): void {
  const reset = dynamic
    .command('reset')
    .description('Remove assignments in batches: the nodes return to their local configuration')
    .argument('[node...]', 'names of Nodes, as NAME or node/NAME, or of hosts in the fleet file');
  addWait(addRollout(addBackend(reset)), ['local', 'none'], 'local: the kubelet runs its local configuration');
  on(addClusterOptions(addPageOptions(addDryRunOptions(addAssignmentReason(reset)))), resetRequest, async (...args) =>
    (await import('./dynamic-assign.ts')).runDynamicReset(...args),
  );
}

function defineUndo(dynamic: Command, on: On): void {
  const undo = dynamic
    .command('undo')
    .description('Return nodes to the assignment before their last one, or to an earlier one, in batches')
    .argument('[node...]', 'names of Nodes, as NAME or node/NAME, or of hosts in the fleet file')
    .option(
      '--to <id>',
      "run after which the nodes had the desired assignment (an id of dynamic history), or 'oldest': before the oldest recorded change (default: before the last change)",
    )
    .option('-y, --yes', 'do not ask before changing the nodes')
    .option('--allow-pod-loss', 'also return to a configuration that would terminate running pods or prevent new pods from starting');
  addWait(
    addRollout(addBackend(undo), { good: ' or with --wait good' }),
    ['trial', 'good', 'none'],
    `${ASSIGN_STATES}. For a node that returns to its local configuration, trial and good mean that the kubelet runs it`,
  );
  addDrainOptions(addClusterOptions(addPageOptions(addDryRunOptions(addAssignmentReason(undo)))));
  addSections(
    on(undo, undoRequest, async (...args) => (await import('./dynamic-assign.ts')).runDynamicUndo(...args)),
    { notes: UNDO_NOTES, examples: UNDO_EXAMPLES },
  );
}

function undoRequest(args: readonly string[], options: CommandOptions): DynamicUndoRequest {
  const request = resetRequest(args, options);
  return { ...request, to: undoIdOf(options, 'dynamic history'), yes: options.yes === true, allowPodLoss: options.allowPodLoss === true };
}

function addSigning(command: Command, nodes: string): Command {
  return command
    .option(
      '--sign <key>',
      'SSH key with which the ConfigMap is signed, for nodes that require signatures: a private key, or the public key of a key in ssh-agent',
    )
    .option(
      '--sign-for <pattern>',
      `with --sign: Node names for which the signature is valid, e.g. 'edge-*' (repeatable; default: ${nodes})`,
      collect,
    )
    .option(
      '--revision <number>',
      'with --sign: revision of the configuration; nodes refuse a lower revision than the last accepted one (default: the current time in milliseconds)',
    );
}

function addValidation(command: Command): Command {
  return command
    .option('--kubernetes-version <version>', 'kubelet version to validate for (default: the versions of the nodes)')
    .option('--skip-validation', 'accept a configuration that fails validation; errors are shown as warnings');
}

const ASSIGN_TEXTS: RolloutTexts = { fleetNote: '. -f is the short form of --fleet here, not of --file', good: ' or with --wait good' };

const ASSIGN_STATES =
  'trial: the kubelet runs the new configuration, and its trial period has begun. good: the trial period has ended without a failure';

const ASSIGN_NOTES = `Exit code 4: some of the nodes failed. Exit code 5: the change failed and was undone. Either the command named only one node, and this node rolled back; or --on-failure revert restored the previous configuration of all nodes.

Nodes that are already down count as unavailable and are processed last. Nodes that already have the assignment are skipped: to resume an interrupted command, run the command again. With -o json, each step is a JSON object on its own line.`;

const ASSIGN_EXAMPLES = `  kubeletadm dynamic assign --selector pool=edge --file kubelet.yaml \\
    --canary 2 --max-unavailable 5% --wait good --on-failure revert
  kubeletadm dynamic assign --group edge -f fleet.yaml \\
    --configmap kubeletadm-system/node-config-g2gfckm55t --dry-run`;

const UNDO_NOTES = `Each Node records its last ten assignments by kubeletadm (annotation kubeletadm.dev/config-history); dynamic history shows them. The command refuses, before any change, a node that has been assigned something else since, and a ConfigMap that was deleted or changed since. Because the node itself can write its record, only ConfigMaps that dynamic push has created are assigned; others need dynamic assign.

undo is recorded as a change: a second undo restores the assignment before the first. To resume an interrupted undo, run the command again for the same nodes.`;

const UNDO_EXAMPLES = `  kubeletadm dynamic undo node1 --dry-run
  kubeletadm dynamic undo --selector pool=edge --reason "OPS-1234: pods were evicted"
  # back to the assignment after a run, whose id is in the column RUN
  kubeletadm dynamic history node1
  kubeletadm dynamic undo node1 --to 3f2a9c10`;

const EXAMPLES = `  # prints e.g. kubeletadm-system/node-config-g2gfckm55t/kubelet
  kubeletadm dynamic push kubelet.yaml
  kubeletadm dynamic assign node1 --configmap kubeletadm-system/node-config-g2gfckm55t
  kubeletadm dynamic assign node1 node2 --file kubelet.yaml --wait good
  kubeletadm dynamic status --watch
  kubeletadm dynamic undo node1
  kubeletadm dynamic reset node1
  # a kubelet in a crash loop
  kubeletadm dynamic inspect root@10.0.0.11 --repair`;

function soleFile([file, ...more]: readonly string[]): string {
  if (file === undefined || more.length > 0) throw usageError('dynamic push needs one file', "Pass one file; '-' is standard input");
  return file;
}

function pushedFile(file: string, options: CommandOptions): PushedFileRequest {
  return {
    file,
    namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
    name: flagText(options, 'name') ?? 'node-config',
    key: flagText(options, 'key') ?? 'kubelet',
    additionalFiles: flagList(options, 'beside').map(parseAdditionalFile),
    appendHash: options.appendHash !== false,
    inPlace: options.inPlace === true,
    signing: signingRequest(options),
    validation: validationRequest(options),
  };
}

function signingRequest(options: CommandOptions): PushedFileRequest['signing'] {
  const [key, revision, nodes] = [flagText(options, 'sign'), flagText(options, 'revision'), flagList(options, 'signFor')];
  if (key === undefined && (revision !== undefined || nodes.length > 0))
    throw usageError(`${revision === undefined ? '--sign-for' : '--revision'} requires --sign`, 'Also pass the key with --sign');
  if (key === undefined) return null;
  if (revision !== undefined && !(/^[1-9]\d{0,15}$/.test(revision) && Number.isSafeInteger(Number(revision))))
    throw usageError(`--revision ${revision} is not a positive integer up to ${Number.MAX_SAFE_INTEGER}`, 'For example: --revision 42');
  return { key, revision: revision === undefined ? null : Number(revision), nodes: nodes.length === 0 ? null : nodes };
}

function parseAdditionalFile(text: string): PushedFileRequest['additionalFiles'][number] {
  const [, key = '', file = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  if (file === '' || !isConfigMapKey(key))
    throw usageError(`--beside ${text} does not have the form key=file`, 'For example: --beside resolv.conf=./resolv.conf');
  return { key, file };
}

function validationRequest(options: CommandOptions): ValidationRequest {
  return { kubernetesVersion: flagText(options, 'kubernetesVersion'), skipValidation: options.skipValidation === true };
}

/** Of the rollout that the command creates: loaded on use, so that help is quick. */
type AssignRequest = DynamicAssignRequest | { readonly asRollout: () => Promise<AssignRolloutRequest> };

function assignRequest(args: readonly string[], options: CommandOptions): AssignRequest {
  const assigned = assignedRequest(options);
  if (options.rollout !== undefined)
    return { asRollout: async () => (await import('./rollout-spec-options.ts')).assignRolloutRequest(args, options, assigned) };
  return {
    ...resetRequest(args, options),
    assigned,
    force: options.force === true,
    allowPodLoss: options.allowPodLoss === true,
  };
}

function assignedRequest(options: CommandOptions): AssignRolloutRequest['assigned'] {
  const [argument, file] = [flagText(options, 'configmap'), flagText(options, 'file')];
  if (argument === undefined && file === undefined) {
    const fleet = fleetNames(options);
    const hint =
      fleet === undefined ? 'Pass --configmap or --file' : `-f is the fleet file: if ${fleet} is the configuration, pass it with --file`;
    throw usageError('dynamic assign: nothing to assign', hint);
  }
  if (argument !== undefined && file !== undefined)
    throw usageError('dynamic assign: --configmap and --file cannot be combined', 'Pass one of the two');
  if (file === undefined && signingRequest(options) !== null)
    throw usageError('dynamic assign: --sign requires --file', 'To sign the content of an existing ConfigMap, pass its file with --file');
  if (argument !== undefined) return { kind: 'config-map', source: readSource(argument), validation: validationRequest(options) };
  return { kind: 'file', pushed: pushedFile(file ?? '-', options) };
}

function resetRequest(args: readonly string[], options: CommandOptions): DynamicResetRequest {
  return {
    ...pageFlags(options),
    choice: requireNodeChoice(args, options),
    rollout: readRolloutOptions(options),
    gates: gatesRequest(options),
    backend: backendOf(options),
    reason: readReason(options),
    cluster: kubeconfigRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
  };
}

/** `dynamic push FILE`: prints `NAMESPACE/NAME/KEY`. */
async function runDynamicPush(services: Services, request: WithPlan<PushRequest>): Promise<ExitCode> {
  const [{ pushFile }, { describeSource, formatConfigSource }, { renderDocument }, { showOrApply }] = await Promise.all([
    import('../dynamic/use-cases/push-file.ts'),
    import('../kubelet/layers/config-source.ts'),
    import('./output/show-document.ts'),
    import('./output/show-plan.ts'),
  ]);
  const { verbosity, format } = request.plan;
  return pushFile(services, request, services.reporter({ verbosity, format: 'text' }), ({ push: { plan, source }, ...planned }, apply) =>
    showOrApply(services, request, { phase: 'dynamic-push', plans: [plan], ...planned }, async () => {
      await apply();
      const result = { 'create-object': 'created', 'update-object': 'updated' }[plan.changes.at(-1)?.kind as string] ?? 'unchanged';
      const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'PushedConfig', result, configSource: formatConfigSource(source) };
      services.output.stdout(format === 'text' ? `${describeSource(source)}\n` : renderDocument(document, format));
      return 0;
    }),
  );
}
