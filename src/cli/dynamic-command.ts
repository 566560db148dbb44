import { type Command, Option } from 'commander';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import type { On } from './command.ts';
import { defineDynamicEnable } from './dynamic-enable-command.ts';
import { addSections, HEADINGS, underHeading } from './help-layout.ts';
import {
  addClusterOptions,
  addDryRunOptions,
  addKubeconfigOptions,
  addSshOptions,
  addTargetOption,
  collect,
  collectList,
  outputOption,
} from './options.ts';
import { addLockOption } from './writing-options.ts';

/** `dynamic ...`: the configuration of kubelets from ConfigMaps. */
export function defineDynamic(dynamic: Command, on: On): void {
  definePush(dynamic, on);
  defineAssign(dynamic, on);
  defineReset(dynamic, on);
  defineReads(dynamic, on);
  defineGc(dynamic, on);
  defineInspect(dynamic, on);
  defineDynamicEnable(dynamic, on);
  addSections(dynamic, { examples: EXAMPLES });
}

function definePush(dynamic: Command, on: On): void {
  const push = dynamic
    .command('push')
    .description('Validate a KubeletConfiguration, store it as a ConfigMap, and print the value for dynamic assign --configmap')
    .argument('<file>', "file with one KubeletConfiguration; '-' for standard input")
    .option('--name <name>', 'name of the ConfigMap, without the hash', 'node-config')
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMap; the default one is created if it does not exist', AGENT_NAMESPACE)
    .option('--key <key>', 'key of the payload in the ConfigMap', 'kubelet')
    .option(
      '--beside <key=file>',
      'additional file that the payload references by a relative path, e.g. resolv.conf=./resolv.conf (repeatable)',
      collect,
    )
    .option('--append-hash', "append kubectl's content hash to the name and make the ConfigMap immutable", true)
    .option('--no-append-hash', 'use the name without a hash')
    .option('--in-place', 'replace the content of an existing ConfigMap; every node that uses it restarts its kubelet within seconds');
  addClusterOptions(addDryRunOptions(addValidation(push)));
  on(push, async () => (await import('./dynamic-push.ts')).runDynamicPush);
}

function defineAssign(dynamic: Command, on: On): void {
  const assign = dynamic
    .command('assign')
    .description(
      'Assign a ConfigMap to nodes in batches and wait for the result; exit code 4 if only some nodes are updated, 5 if they rolled back',
    )
    .argument('[node...]', 'names of Nodes')
    .option('--configmap <namespace/name[/key]>', 'ConfigMap to assign, as printed by dynamic push')
    .option('--file <file>', 'KubeletConfiguration to push first, as node-config with its hash')
    .option(
      '-n, --namespace <namespace>',
      'with --file: namespace of the ConfigMap; the default one is created if it does not exist',
      AGENT_NAMESPACE,
    )
    .option('--force', 'assign to nodes without a reported configuration status as well');
  addWait(addRollout(addBackend(addValidation(assign))), ['trial', 'good', 'none']);
  addClusterOptions(addDryRunOptions(assign));
  addSections(
    on(assign, async () => (await import('./dynamic-assign.ts')).runDynamicAssign),
    { notes: ASSIGN_NOTES, examples: ASSIGN_EXAMPLES },
  );
}

function defineReset(dynamic: Command, on: On): void {
  const reset = dynamic
    .command('reset')
    .description('Remove assignments in batches: the nodes return to their local configuration')
    .argument('[node...]', 'names of Nodes');
  addWait(addRollout(addBackend(reset)), ['local', 'none']);
  on(addClusterOptions(addDryRunOptions(reset)), async () => (await import('./dynamic-assign.ts')).runDynamicReset);
}

function defineReads(dynamic: Command, on: On): void {
  const status = dynamic
    .command('status')
    .description('Show the assigned and the active configuration of nodes, with the reason for a difference')
    .argument('[node...]', 'names of Nodes (default: all)')
    .option('-w, --watch', 'print each change until interrupted')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(addClusterOptions(addBackend(status)), async () => (await import('./dynamic-status.ts')).runDynamicStatus);
  const history = dynamic
    .command('history')
    .description('Show the configuration changes of a node from the events that the API server retains')
    .argument('<node>', 'name of the Node')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(addClusterOptions(history), async () => (await import('./dynamic-status.ts')).runDynamicHistory);
}

function defineGc(dynamic: Command, on: On): void {
  const gc = dynamic
    .command('gc')
    .description('Delete unused ConfigMaps created by dynamic push or, with --host, unused checkpoints on hosts')
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMaps', AGENT_NAMESPACE)
    .option('--older-than <duration>', 'minimum age of deleted ConfigMaps and checkpoints', '1h');
  addTargetOption(addClusterOptions(addDryRunOptions(gc)), 'host to delete checkpoints on, over SSH, instead of ConfigMaps (repeatable)');
  underHeading(gc, HEADINGS.host, (host) =>
    host.option('--dynamic-config-dir <dir>', 'with --host: checkpoint directory of a kubelet up to 1.23 (default: from its command line)'),
  );
  on(addLockOption(addSshOptions(gc)), async () => (await import('./dynamic-gc.ts')).runDynamicGc);
}

function defineInspect(dynamic: Command, on: On): void {
  const inspect = dynamic
    .command('inspect')
    .description('Show the checkpoints that an agent, or a kubelet up to 1.23, stores on its host: identity, payload, use and damage')
    .argument('<host>', '[user@]address[:port] over SSH; localhost: the local host')
    .option('--repair', 'start a failing kubelet: up to 1.23 with an intact last known good configuration, otherwise with the local one')
    .option('--dynamic-config-dir <dir>', 'checkpoint directory (default: from the command line of the kubelet)');
  addKubeconfigOptions(
    addDryRunOptions(inspect),
    'kubeconfig to compare checkpoints with their ConfigMaps; with --repair, refuse while the Node is still assigned the failing configuration',
  );
  on(addLockOption(addSshOptions(inspect)), async () => (await import('./dynamic-inspect.ts')).runDynamicInspect);
}

function addValidation(command: Command): Command {
  return command
    .option('--kubernetes-version <version>', 'kubelet version to validate for (default: the versions of the nodes)')
    .option('--skip-validation', 'accept a configuration that the kubelet rejects');
}

function addBackend(command: Command): Command {
  return command.addOption(
    new Option('--backend <backend>', 'component that applies configurations (default: detected from each Node)').choices([
      'native',
      'agent',
    ]),
  );
}

/** Which nodes, and how many at a time. */
function addRollout(command: Command): Command {
  return underHeading(command, HEADINGS.rollout, (rollout) =>
    rollout
      .option('-l, --selector <labels>', 'label selector of Nodes, instead of names')
      .option('--group <groups>', 'groups of a fleet file, instead of names (repeatable)', collectList)
      .option('-f, --fleet <file>', "with --group: fleet file; '-' for standard input (default: fleet.yaml)")
      .option('--canary <nodes>', 'number or percentage of nodes to update first, before any other (default: 1)')
      .option('--max-unavailable <nodes>', 'maximum number or percentage of nodes in progress or down at once (default: 10%, at least 1)')
      .option('--min-ready <duration>', 'time a node must stay healthy to count as updated (default: 30s with several nodes)')
      .addOption(
        new Option(
          '--on-failure <action>',
          'when a node fails: leave the other nodes unchanged (stop), or restore the previous assignment of all changed nodes (revert)',
        ).choices(['stop', 'revert']),
      ),
  );
}

function addWait(command: Command, choices: readonly [string, ...string[]]): Command {
  return underHeading(command, HEADINGS.rollout, (rollout) =>
    rollout
      .addOption(
        new Option('--wait <state>', 'state to wait for on each node; none: assign all nodes at once without waiting')
          .choices(choices)
          .default(choices[0]),
      )
      .option('--timeout <duration>', 'time limit for each node (default: 3m; 15m with --wait good)'),
  );
}

const ASSIGN_NOTES =
  'Nodes that are already down count as unavailable and are processed last. Nodes with the same assignment are unchanged: rerun an interrupted command to resume it. With -o json each step is one JSON object per line.';

const ASSIGN_EXAMPLES = `  kubeletadm dynamic assign --selector pool=edge --file kubelet.yaml \\
    --canary 2 --max-unavailable 5% --wait good --on-failure revert
  kubeletadm dynamic assign --group edge -f fleet.yaml \\
    --configmap kubeletadm-system/node-config-g2gfckm55t --dry-run`;

const EXAMPLES = `  # prints e.g. kubeletadm-system/node-config-g2gfckm55t/kubelet
  kubeletadm dynamic push kubelet.yaml
  kubeletadm dynamic assign node1 --configmap kubeletadm-system/node-config-g2gfckm55t
  kubeletadm dynamic assign node1 node2 --file kubelet.yaml --wait good
  kubeletadm dynamic status --watch
  kubeletadm dynamic reset node1
  # a kubelet in a crash loop
  kubeletadm dynamic inspect root@10.0.0.11 --repair`;
