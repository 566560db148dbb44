import { type Command, Option } from 'commander';
import { addClusterOptions, addSshOptions, collect, outputOption } from './options.ts';
import type { On } from './program.ts';

/** `dynamic ...`: the configuration of kubelets from ConfigMaps. */
export function defineDynamic(dynamic: Command, on: On): void {
  definePush(dynamic, on);
  defineAssign(dynamic, on);
  defineReads(dynamic, on);
  defineInspect(dynamic, on);
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
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMap', 'kube-system')
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
      .description('Assign nodes a ConfigMap, and watch what becomes of it; exit code 5 when one fell back')
      .argument('<node...>', 'names of Nodes'),
  )
    .option('--configmap <namespace/name[/key]>', 'what dynamic push printed')
    .option('--file <file>', 'push this file first, under node-config and its hash')
    .option('--force', 'also where no configuration was ever reported');
  on(plan(waiting(judged(backend(assign)), ['trial', 'good', 'none'])), async () => (await import('./dynamic-assign.ts')).runDynamicAssign);
  const reset = addClusterOptions(
    dynamic.command('reset').description('Take assignments away: the nodes go back to their local configuration').argument('<node...>'),
  );
  on(plan(waiting(backend(reset), ['local', 'none'])), async () => (await import('./dynamic-assign.ts')).runDynamicReset);
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
  const gc = addClusterOptions(dynamic.command('gc').description('Delete ConfigMaps that dynamic push made and no node uses any more'))
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMaps', 'kube-system')
    .option('--older-than <duration>', 'leave younger ones alone', '1h');
  on(plan(gc), async () => (await import('./dynamic-gc.ts')).runDynamicGc);
}

function defineInspect(dynamic: Command, on: On): void {
  const inspect = addSshOptions(
    dynamic
      .command('inspect')
      .description('Read what a kubelet up to 1.23 keeps on its host: identities, payloads, which is in use, what is broken')
      .argument('<host>', '[user@]address[:port] over SSH; localhost is this machine'),
  )
    .option('--dynamic-config-dir <dir>', 'where it is (default: what the kubelet is started with)')
    .option('--kubeconfig <file>', 'with --repair: make sure first that the Node is not assigned the same any more')
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

function waiting(command: Command, choices: readonly [string, ...string[]]): Command {
  return command
    .addOption(new Option('--wait <state>', 'wait until nodes are there').choices(choices).default(choices[0]))
    .option('--timeout <duration>', 'how long (default: 3m; 15m for good)');
}

const EXAMPLES = `Examples:
  kubeletadm dynamic push kubelet.yaml                                   # prints e.g. kube-system/node-config-g2gfckm55t/kubelet
  kubeletadm dynamic assign node1 --configmap kube-system/node-config-g2gfckm55t
  kubeletadm dynamic assign node1 node2 --file kubelet.yaml --wait good
  kubeletadm dynamic status --watch
  kubeletadm dynamic reset node1
  kubeletadm dynamic inspect root@10.0.0.11 --repair                     # a kubelet that restarts for ever`;
