import { type Command, Option } from 'commander';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import type { On } from './command.ts';
import { defineDynamicEnable } from './dynamic-enable-command.ts';
import { addClusterOptions, addSshOptions, collect, collectList, outputOption } from './options.ts';
import { addLockOption } from './writing-options.ts';

/** `dynamic ...`: the configuration of kubelets from ConfigMaps. */
export function defineDynamic(dynamic: Command, on: On): void {
  definePush(dynamic, on);
  defineAssign(dynamic, on);
  defineReads(dynamic, on);
  defineInspect(dynamic, on);
  defineDynamicEnable(dynamic, on);
  dynamic.addHelpText('after', () => `\n${EXAMPLES}`);
}

function definePush(dynamic: Command, on: On): void {
  const push = addClusterOptions(
    dynamic
      .command('push')
      .description('Make a ConfigMap of a KubeletConfiguration that passes its check, and print what to assign')
      .argument('<file>', "one KubeletConfiguration; '-' is standard input"),
  )
    .option('--name <name>', 'name of the ConfigMap, before the hash', 'node-config')
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMap; the default is created where it is missing', AGENT_NAMESPACE)
    .option('--key <key>', 'key of the payload', 'kubelet')
    .option('--beside <key=file>', 'another file that the payload names relatively, e.g. resolv.conf=./resolv.conf (repeatable)', collect)
    .option('--append-hash', "append kubectl's hash of the content to the name, and make it immutable", true)
    .option('--no-append-hash', 'use the name as it is')
    .option('--in-place', 'replace other content under that name; every node that uses it restarts within seconds');
  on(plan(judged(push)), async () => (await import('./dynamic-push.ts')).runDynamicPush);
}

function defineAssign(dynamic: Command, on: On): void {
  const assign = addClusterOptions(
    dynamic
      .command('assign')
      .description(
        'Assign nodes a ConfigMap batch by batch, and watch what becomes of it; exit code 4 when only some are there, 5 when it fell back',
      )
      .argument('[node...]', 'names of Nodes'),
  )
    .option('--configmap <namespace/name[/key]>', 'what dynamic push printed')
    .option('--file <file>', 'push this file first, under node-config and its hash')
    .option(
      '-n, --namespace <namespace>',
      'with --file: namespace of the ConfigMap; the default is created where it is missing',
      AGENT_NAMESPACE,
    )
    .option('--force', 'also where no configuration was ever reported');
  on(
    plan(waiting(rollout(judged(backend(assign))), ['trial', 'good', 'none'])),
    async () => (await import('./dynamic-assign.ts')).runDynamicAssign,
  ).addHelpText('after', () => `\n${ASSIGN_EXAMPLES}`);
  const reset = addClusterOptions(
    dynamic
      .command('reset')
      .description('Take assignments away batch by batch: the nodes go back to their local configuration')
      .argument('[node...]', 'names of Nodes'),
  );
  on(plan(waiting(rollout(backend(reset)), ['local', 'none'])), async () => (await import('./dynamic-assign.ts')).runDynamicReset);
}

function defineReads(dynamic: Command, on: On): void {
  const status = addClusterOptions(
    dynamic.command('status').description('Say what nodes are assigned, what they run, and why').argument('[node...]', 'default: all'),
  )
    .option('-w, --watch', 'go on, and print each change')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(backend(status), async () => (await import('./dynamic-status.ts')).runDynamicStatus);
  const history = addClusterOptions(
    dynamic.command('history').description('Say what a node changed to and when, as far as the API server remembers').argument('<node>'),
  ).addOption(outputOption(['text', 'json', 'yaml']));
  on(history, async () => (await import('./dynamic-status.ts')).runDynamicHistory);
  const gc = addLockOption(
    addSshOptions(
      addClusterOptions(
        dynamic
          .command('gc')
          .description('Delete ConfigMaps that dynamic push made and no node uses any more; with --host checkpoints on hosts'),
      ),
    ),
  )
    .option('--host <[user@]address[:port]>', 'remove unused checkpoints on this host over SSH instead of ConfigMaps (repeatable)', collect)
    .option('--dynamic-config-dir <dir>', 'with --host: where a kubelet up to 1.23 keeps them (default: what it is started with)')
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMaps', AGENT_NAMESPACE)
    .option('--older-than <duration>', 'leave younger ones alone', '1h');
  on(plan(gc), async () => (await import('./dynamic-gc.ts')).runDynamicGc);
}

function defineInspect(dynamic: Command, on: On): void {
  const inspect = addLockOption(
    addSshOptions(
      dynamic
        .command('inspect')
        .description(
          'Read what an agent, or a kubelet up to 1.23, keeps on its host: identities, payloads, which is in use, what is broken',
        )
        .argument('<host>', '[user@]address[:port] over SSH; localhost is this machine'),
    ),
  )
    .option('--dynamic-config-dir <dir>', 'where it is (default: what the kubelet is started with)')
    .option(
      '--kubeconfig <file>',
      'compare checkpoints with their ConfigMaps; with --repair, refuse while the Node is still assigned what the kubelet crashes with',
    )
    .option('--context <name>', 'context of the kubeconfig')
    .option('--repair', 'get the kubelet back: start it with its last known good where that is whole, else with its local configuration');
  on(plan(inspect), async () => (await import('./dynamic-inspect.ts')).runDynamicInspect);
}

function plan(command: Command): Command {
  return command
    .option('--dry-run', 'print the plan and change nothing')
    .addOption(outputOption(['text', 'json', 'yaml']))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending');
}

function judged(command: Command): Command {
  return command
    .option('--kubernetes-version <version>', 'judge for this kubelet (default: those of the nodes)')
    .option('--skip-validation', 'also what a kubelet refuses');
}

function backend(command: Command): Command {
  return command.addOption(
    new Option('--backend <backend>', 'what puts it into force (default: by the kubelet and what the Node shows)').choices([
      'native',
      'agent',
    ]),
  );
}

/** Which nodes, and how many at a time. */
function rollout(command: Command): Command {
  return command
    .option('-l, --selector <labels>', 'all Nodes with these labels, in place of names')
    .option('--group <groups>', 'all hosts of these groups of a fleet file, in place of names (repeatable)', collectList)
    .option('-f, --fleet <file>', "with --group: the fleet file; '-' is standard input (default: fleet.yaml)")
    .option('--canary <nodes>', 'so many nodes (or a share, 5%) go first and must be there before any other (default: 1)')
    .option('--max-unavailable <nodes>', 'maximum number (or share) of nodes in progress or down at once (default: 10%, at least 1)')
    .option('--min-ready <duration>', 'how long a node has to be well before it counts (default: 30s with several nodes)')
    .addOption(
      new Option(
        '--on-failure <what>',
        'when a node fails: leave the others alone, or give all that were touched back what they had',
      ).choices(['stop', 'revert']),
    );
}

function waiting(command: Command, choices: readonly [string, ...string[]]): Command {
  return command
    .addOption(
      new Option('--wait <state>', 'how far a node has to come; none: all at once, whatever becomes of it')
        .choices(choices)
        .default(choices[0]),
    )
    .option('--timeout <duration>', 'how long a node may take (default: 3m; 15m for good)');
}

const ASSIGN_EXAMPLES = `Nodes that are down already count, and come last. Nodes that have it already are left alone: the same command goes on where it was interrupted.
As -o json each step is an event, one object a line.

Examples:
  kubeletadm dynamic assign --selector pool=edge --file kubelet.yaml --canary 2 --max-unavailable 5% --wait good --on-failure revert
  kubeletadm dynamic assign --group edge -f fleet.yaml --configmap kubeletadm-system/node-config-g2gfckm55t --dry-run`;

const EXAMPLES = `Examples:
  kubeletadm dynamic push kubelet.yaml                                   # prints e.g. kubeletadm-system/node-config-g2gfckm55t/kubelet
  kubeletadm dynamic assign node1 --configmap kubeletadm-system/node-config-g2gfckm55t
  kubeletadm dynamic assign node1 node2 --file kubelet.yaml --wait good
  kubeletadm dynamic status --watch
  kubeletadm dynamic reset node1
  kubeletadm dynamic inspect root@10.0.0.11 --repair                     # a kubelet in a crash loop`;
