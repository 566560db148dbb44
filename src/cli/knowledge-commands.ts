import { type Command, Option } from 'commander';
import type { On, Run } from './command.ts';
import { addClusterOptions, addSshOptions, collect, outputOption } from './options.ts';

/** What is known about kubelets, below `config`: nothing of it changes anything. */
export function addKnowledgeCommands(config: Command, on: On): void {
  explainCommand(config, on);
  defaultsCommand(config, on);
  diffCommand(config, on);
  fromNodeCommand(config, on);
}

function explainCommand(config: Command, on: On): void {
  const explain = config
    .command('explain')
    .description('Explain a field of KubeletConfiguration, a flag of the kubelet or a feature gate')
    .argument('[name]', 'e.g. evictionHard, authentication.x509, --node-ip, NodeSwap; the begin of field names; default: all fields')
    .option('--kubernetes-version <version>', 'the kubelet to explain it for, 1.10 to 1.36 (default: 1.36)')
    .option('--recursive', 'members of members too')
    // A flag of the kubelet is what is asked for, not one of ours.
    .allowUnknownOption();
  on(explain.addOption(outputOption(['text', 'json', 'yaml'])), async (): Promise<Run> => (await import('./config-explain.ts')).runExplain);
  explain.addHelpText(
    'after',
    `
Examples:
  kubeletadm config explain maxPods --kubernetes-version 1.30
  kubeletadm config explain authentication --recursive
  kubeletadm config explain --node-labels
  kubeletadm config explain NodeSwap -o json`,
  );
}

function defaultsCommand(config: Command, on: On): void {
  const defaults = config
    .command('defaults')
    .description('Print the configuration that is in force when nothing is configured')
    .option('--kubernetes-version <version>', 'the kubelet whose defaults they are, 1.20 to 1.36 (default: 1.36)')
    .addOption(
      new Option('--profile <profile>', "whose defaults: the kubelet's own, or what kubeadm writes")
        .choices(['kubelet', 'kubeadm'])
        .default('kubelet'),
    );
  on(defaults.addOption(outputOption(['yaml', 'json'])), async (): Promise<Run> => (await import('./config-defaults.ts')).runDefaults);
  defaults.addHelpText(
    'after',
    `
Examples:
  kubeletadm config defaults --kubernetes-version 1.30
  kubeletadm config defaults --profile kubeadm -o json`,
  );
}

function diffCommand(config: Command, on: On): void {
  const diff = config
    .command('diff')
    .description('Compare what two configurations put in force: defaults count, durations and quantities are compared by value')
    .argument(
      '<a>',
      "a file ('-' is standard input), cluster, node/NAME, host/[user@]ADDRESS[:port] (host/localhost is this machine) or defaults/1.X",
    )
    .argument('<b>', 'the same')
    .option('--kubernetes-version <version>', 'the kubelet both are read by (default: the one each side runs with, else 1.36)')
    .option('--exit-code', 'exit with 6 when they differ');
  addSshOptions(addClusterOptions(diff.addOption(outputOption(['text', 'json', 'yaml']))));
  on(diff, async (): Promise<Run> => (await import('./config-diff.ts')).runDiff);
  diff.addHelpText(
    'after',
    `
Examples:
  kubeletadm config diff old.yaml new.yaml --kubernetes-version 1.34
  kubeletadm config diff cluster node/worker-1 --kubeconfig admin.conf
  kubeletadm config diff host/root@10.0.0.11 host/root@10.0.0.12 -o yaml
  kubeletadm config diff defaults/1.25 defaults/1.36`,
  );
}

/** `config migrate`: kubeadm's documents to another version, or a kubelet's configuration to another kubelet. */
export function addMigrateCommand(config: Command, on: On): void {
  const migrate = config
    .command('migrate')
    .description('Convert a KubeletConfiguration for another kubelet, or older kubeadm documents to v1beta4')
    .argument('[file]', "the KubeletConfiguration to convert; '-' is standard input")
    .option('--from <version>', 'the kubelet it was written for, 1.20 to 1.36')
    .option('--to <version>', 'the kubelet it is to be for')
    .option('--flags <file>', 'its flags, as in kubeadm-flags.env or /etc/default/kubelet (repeatable)', collect)
    .option('--kubelet-extra-args <name=value>', 'a flag of its command line (repeatable)', collect)
    .option('--keep-defaults', 'write down defaults that are others in the new kubelet')
    .option('--force', 'take out also what is lost by it')
    .option(
      '--old-config <file>',
      "kubeadm documents to convert to v1beta4; '-' is standard input; KubeletConfiguration documents stay as they are",
    )
    .option('--new-config <file>', 'where to write the result (default: standard output)')
    .option('--new-flags <file>', 'where to write the flags that stay, as kubeadm-flags.env');
  on(migrate.addOption(outputOption(['text', 'json', 'yaml'])), async (): Promise<Run> => (await import('./config-migrate.ts')).runMigrate);
  migrate.addHelpText(
    'after',
    `
Examples:
  kubeletadm config migrate kubelet.yaml --from 1.22 --to 1.36 > new.yaml
  kubeletadm config migrate kubelet.yaml --from 1.26 --to 1.36 --flags kubeadm-flags.env --new-config new.yaml --new-flags new.env
  kubeletadm config migrate --old-config v1beta3.yaml`,
  );
}

function fromNodeCommand(config: Command, on: On): void {
  const fromNode = config
    .command('from-node')
    .description(
      'Write a configuration file of what the kubelet of a node has in force (its configz), without fields that belong to that node alone and without deprecated fields',
    )
    .argument('<node>', 'name of the Node')
    .option('--without-defaults', 'leave out what the kubelet would have anyway')
    .addOption(
      new Option(
        '--kind <kind>',
        'kind of the file: overlay (a node keeps all other fields) or configuration (replaces all fields). Default: overlay; up to 1.23 configuration',
      ).choices(['overlay', 'configuration']),
    )
    .option('--overlay-out <file>', 'where to write what belongs to that node: for --overlay of init and join');
  addClusterOptions(fromNode.addOption(outputOption(['yaml', 'json'])));
  on(fromNode, async (): Promise<Run> => (await import('./config-from-node.ts')).runFromNode);
  fromNode.addHelpText(
    'after',
    `
Examples:
  kubeletadm config from-node worker-1 --without-defaults --kubeconfig admin.conf > kubelet.yaml
  kubeletadm config from-node worker-1 --overlay-out worker-1.yaml`,
  );
}
