import { Command, type CommanderError } from 'commander';
import { type ExitCode, usageError } from '../core/errors.ts';
import type { Output, Services } from '../ports/services.ts';
import { INIT_PHASES, JOIN_PHASES, RESET_PHASES } from '../workflows/phase-lists.ts';
import { addKnowledgeCommands, addMigrateCommand, addNodeCommands } from './knowledge-commands.ts';
import { addNodeLifecycleCommands } from './node-lifecycle-commands.ts';
import {
  addClusterOptions,
  addHostOptions,
  addNodeOptions,
  addPlanOptions,
  addSshOptions,
  addVerbosity,
  collect,
  collectList,
  outputOption,
  parseCount,
} from './options.ts';
import { phaseLines } from './phase-lines.ts';
import { addTokenCommands } from './token-commands.ts';

/** Runs a command and gives the exit code. Loaded on use, so that help is quick. */
export type Run = (services: CommandServices, args: readonly string[], options: CommandOptions) => Promise<ExitCode>;
export type CommandOptions = Readonly<Record<string, unknown>>;

/** What commands get: the services, and other command lines to run. */
export interface CommandServices extends Services {
  runCommand(argv: readonly string[], output?: Output): Promise<ExitCode>;
}

/**
 * The command tree. `exit` gets the code of the command that ran.
 * @param load gives the function that runs a command
 */
export function buildProgram(services: CommandServices, exit: (code: ExitCode) => void, version: string): Command {
  const on = (command: Command, load: () => Promise<Run>): Command =>
    command.action(async (...args: unknown[]) => {
      const own = args.at(-1) as Command;
      const options = own.optsWithGlobals() as CommandOptions;
      exit(await (await load())(services, own.args, options));
    });
  const program = new Command('kubeletadm')
    .description('Bootstrap, provision and reconfigure kubelets like kubeadm does, on this machine or over SSH')
    .version(version, '--version', 'print the version')
    .helpCommand(false)
    .showHelpAfterError('(--help shows what there is)')
    .exitOverride()
    .configureOutput({ writeOut: (text) => services.output.stdout(text), writeErr: (text) => services.output.stderr(text) });
  addVerbosity(program);
  initCommand(program, on);
  joinCommand(program, on);
  resetCommand(program, on);
  addNodeLifecycleCommands(program, on);
  addTokenCommands(program, on);
  configCommand(program, on);
  addNodeCommands(program, on);
  labCommand(program, on);
  const completion = program.command('completion').description('Print a script for the shell that completes commands and options');
  completion.argument('<shell>', 'bash, zsh or fish').addHelpText('after', COMPLETION_EXAMPLES);
  on(completion, async () => {
    const { runCompletion } = await import('./completion.ts');
    return async (at, [shell]) => runCompletion(program, at, shell);
  });
  on(
    program
      .command('version')
      .description('Print the version')
      .addOption(outputOption(['text', 'json', 'yaml'])),
    async () => (await import('./version.ts')).runVersion,
  );
  return program;
}

export type On = (command: Command, load: () => Promise<Run>) => Command;

function initCommand(program: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./init.ts')).runInit;
  const options = (command: Command): Command => addInitOptions(addHostOptions(addNodeOptions(addPlanOptions(command))));
  const init = on(
    options(program.command('init').description('Bring up the kubelet of the first node and upload its configuration for all others')),
    load,
  );
  init.addHelpText('after', () => `\nPhases:\n${phaseLines(INIT_PHASES)}\n\n${INIT_EXAMPLES}`);
  const phase = options(
    init.command('phase').description('Run one phase of init').argument('<name...>', 'a phase, e.g. upload-config kubelet'),
  );
  on(phase, load).addHelpText('after', () => `\nPhases:\n${phaseLines(INIT_PHASES)}`);
}

function joinCommand(program: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./join.ts')).runJoin;
  const options = (command: Command): Command => addJoinOptions(addHostOptions(addNodeOptions(addPlanOptions(command))));
  const join = on(
    options(program.command('join').description('Join a node to a cluster').argument('[address:port]', 'the API server')),
    load,
  );
  join.addHelpText('after', () => `\nPhases:\n${phaseLines(JOIN_PHASES)}\n\n${JOIN_EXAMPLES}`);
  const phase = options(
    join.command('phase').description('Run one phase of join').argument('<name...>', 'a phase; then the address:port of the API server'),
  );
  on(phase, async () => (await import('./join.ts')).runJoinPhase).addHelpText('after', () => `\nPhases:\n${phaseLines(JOIN_PHASES)}`);
}

function resetCommand(program: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./reset.ts')).runReset;
  const options = (command: Command): Command =>
    addHostOptions(addPlanOptions(command))
      .option('--config <file>', "a ResetConfiguration document; '-' is standard input")
      .option('--cri-socket <socket>', 'socket of the container runtime (default: detected)')
      .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
      .option('--cleanup-tmp-dir', 'empty /etc/kubernetes/tmp as well')
      .option('--delete-node', 'stop the kubelet and delete its Node as well (pods are not drained); needs credentials of an administrator')
      .option('--node-name <name>', 'with --delete-node: the Node (default: the one the host is registered as)')
      .option('--kubeconfig <file>', 'with --delete-node: credentials of an administrator (default: as for init)')
      .option('--context <name>', 'context of the kubeconfig')
      .option('-f, --force', 'do not ask');
  const reset = on(options(program.command('reset').description('Take off a host what init or join put there')), load);
  reset.addHelpText('after', () => `\nPhases:\n${phaseLines(RESET_PHASES)}\n\n${RESET_EXAMPLES}`);
  const phase = options(reset.command('phase').description('Run one phase of reset').argument('<name...>', 'a phase'));
  on(phase, load).addHelpText('after', () => `\nPhases:\n${phaseLines(RESET_PHASES)}`);
}

function configCommand(program: Command, on: On): void {
  const config = program.command('config').description('Look at, check and convert configuration files');
  const print = config.command('print').description('Print default configurations');
  for (const action of ['init', 'join', 'reset', 'upgrade'] as const) {
    const command = print.command(`${action}-defaults`).description(`Print the defaults of ${action}`);
    if (action === 'init') command.option('--component-configs <kinds>', 'also KubeletConfiguration, KubeProxyConfiguration', collectList);
    on(command, async () => {
      const { runPrintDefaults } = await import('./config-print.ts');
      return (services, _args, options) => runPrintDefaults(services, action, options);
    });
  }
  const validate = config
    .command('validate')
    .description('Check configuration files; exit code 2 when one is not right')
    .argument('[file...]', "files; '-' is standard input");
  validate
    .option('--config <file>', 'a file, as kubeadm names it (repeatable)', collect)
    .option('--allow-deprecated-api', 'no warning about API versions that will go');
  validate
    .option('--kubernetes-version <version>', 'the kubelet to judge KubeletConfigurations by, e.g. 1.34 (default: the newest known)')
    .option('--lenient', 'unknown and duplicate fields of a KubeletConfiguration are warnings');
  addSshOptions(
    validate
      .option('--kubelet <path>', 'ask this kubelet binary as well; it is not started')
      .option(
        '--host <[user@]address[:port]>',
        'ask the kubelet of this host, and judge by its flags and what it runs with (repeatable)',
        collect,
      ),
  );
  on(validate.addOption(outputOption(['text', 'json', 'sarif'])), async () => (await import('./config-validate.ts')).runValidate);
  addMigrateCommand(config, on);
  const render = addInitOptions(addHostOptions(addNodeOptions(config.command('render').description('Print the files a node would get'))));
  render.option('--show-origin', 'say of each field which layer it comes from').addOption(outputOption(['text', 'json', 'yaml']));
  on(render.argument('[path...]', 'only these files'), async () => (await import('./config-render.ts')).runRender);
  addKnowledgeCommands(config, on);
}

function labCommand(program: Command, on: On): void {
  const lab = program
    .command('lab')
    .description('Start a lab in this process: an API server and three hosts to try everything on; no root needed');
  lab
    .option('--demo', 'run init on one host and join on the others, show the results and end')
    .option('--hosts <count>', 'how many hosts', parseCount, 3)
    .option('--dir <dir>', 'where to keep it (default: a new directory below the temporary one)');
  on(lab, async () => (await import('./lab.ts')).runLab);
}

function addInitOptions(command: Command): Command {
  return addClusterOptions(command)
    .option('--kubernetes-version <version>', 'version of the control plane (default: asked of the API server)')
    .option('--service-cidr <cidr>', 'addresses of services; the tenth is the clusterDNS of all nodes (default: 10.96.0.0/12)')
    .option('--service-dns-domain <domain>', 'domain of services (default: cluster.local)')
    .option('--pod-network-cidr <cidr>', 'addresses of pods')
    .option('--control-plane-endpoint <host:port>', 'address of all control planes together')
    .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
    .option('--image-repository <repository>', 'where control plane images come from')
    .option('--feature-gates <name=bool>', "kubeadm's feature gates")
    .option('--token <token>', 'bootstrap token (default: one that is there and nodes can join by, else a new one)')
    .option('--token-ttl <duration>', 'how long it lives (default: 24h0m0s; 0 is for ever)')
    .option('--skip-token-print', 'leave the token out of the join command that is printed')
    .option('--apiserver-advertise-address <address>', 'address the API server tells others')
    .option('--apiserver-bind-port <port>', 'port of the API server')
    .option('--apiserver-cert-extra-sans <names>', 'more names for the certificate of the API server', collectList)
    .option('--force-upload', 'replace a kubelet-config that was edited by hand, and the address in cluster-info');
}

function addJoinOptions(command: Command): Command {
  return command
    .option('--token <token>', 'both --discovery-token and --tls-bootstrap-token')
    .option('--discovery-token <token>', 'token to find the cluster with')
    .option('--discovery-token-ca-cert-hash <type:value>', "pin of the cluster's CA, sha256:<hex> (repeatable)", collect)
    .option('--discovery-token-unsafe-skip-ca-verification', 'without a pin: who knows the token may pass for the API server')
    .option('--discovery-file <file>', 'kubeconfig to find the cluster with, a path or an https URL')
    .option('--tls-bootstrap-token <token>', 'token the kubelet bootstraps itself with')
    .option('--ca-cert <file>', "the cluster's CA certificate itself, in place of a pin")
    .option('--take-over', 'take the name of a Node that is there and not Ready')
    .option('--wait-ready [duration]', 'wait until the Node is Ready (default: 5m)')
    .option('--kubeconfig <file>', 'credentials of an administrator, for labels and taints that a node may not give itself')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--control-plane', 'make the node a control plane')
    .option('--certificate-key <key>', 'key of the uploaded control plane certificates')
    .option('--apiserver-advertise-address <address>', 'with --control-plane: address its API server tells others')
    .option('--apiserver-bind-port <port>', 'with --control-plane: port of its API server');
}

const INIT_EXAMPLES = `Examples:
  # what would change on this machine, and why each field is what it is
  kubeletadm init --kubeconfig admin.conf --dry-run --show-origin
  # a host over SSH, with its own address and a smaller pod limit
  kubeletadm init --kubeconfig admin.conf --host root@10.0.0.11 --node-ip 10.0.0.11 --set maxPods=50
  # only the files, into a directory (for an image)
  kubeletadm init --config init.yaml --rootfs ./image
  # one phase
  kubeletadm init phase upload-config kubelet --kubeconfig admin.conf`;

const JOIN_EXAMPLES = `Examples:
  # as token create --print-join-command prints it, here and on hosts over SSH
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:<hex> --host root@10.0.0.12
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --ca-cert ca.crt --host root@10.0.0.12
  # by a kubeconfig with the cluster's CA, from disk or from the web
  kubeletadm join --discovery-file cluster.conf --host node2 --host node3 --dry-run
  kubeletadm join --discovery-file https://config.example.com/cluster.conf --tls-bootstrap-token abcdef.0123456789abcdef
  kubeletadm join --config join.yaml --overlay node2-kubelet.yaml --host node2`;

const COMPLETION_EXAMPLES = `
Examples:
  source <(kubeletadm completion bash)
  kubeletadm completion fish > ~/.config/fish/completions/kubeletadm.fish`;

const RESET_EXAMPLES = `Examples:
  # what would be removed
  kubeletadm reset --host node2 --dry-run
  # after kubectl drain node2
  kubeletadm reset --host node2 --force --delete-node --kubeconfig admin.conf`;

/** Turns what commander throws into ours; null: help or version was printed, all is well. */
export function usageOf(error: CommanderError): ReturnType<typeof usageError> | null {
  if (error.exitCode === 0) return null;
  return usageError(error.message.replace(/^error: /, ''), 'kubeletadm --help shows what there is');
}
