import { type Command, InvalidArgumentError, Option } from 'commander';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { type CI_FORMATS, diffOption, outputOption } from './output-options.ts';

/** A repeatable option whose values may also be separated by commas, as kubeadm's lists are. */
export function collectList(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), ...value.split(',').filter((item) => item !== '')];
}

/** Names of phases. @see kubeadm 1.36 cmd/kubeadm/app/cmd/phases/workflow/runner.go: an empty name is invalid */
function collectPhases(value: string, before: readonly string[] | undefined): readonly string[] {
  if (value !== '' && value.split(',').includes('')) throw new InvalidArgumentError('A name between the commas is empty.');
  return collectList(value, before);
}

/** A repeatable option whose values may contain commas. */
export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/**
 * The parser of an option whose value is an integer between two bounds, both included. The parser throws commander's error for any other value.
 */
export function integerBetween(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`must be an integer from ${least} to ${most}`);
  };
}

/** The highest level of `-v`, as klog uses levels. */
export const MAX_VERBOSITY = 10;
/** Time limits in seconds end at one day, as those of `--command-timeout` do; Node's timers fire at once above 24.8 days. */
export const SECONDS_OF_A_DAY = 86_400;

type TableChoice = 'text' | 'wide' | 'name' | 'json' | 'yaml' | (typeof CI_FORMATS)[number];

/** `-o` of a command that only reads, with templates as in kubectl; the first choice is the default. */
export function readOutputOption(choices: readonly [TableChoice, ...TableChoice[]] = ['text', 'json', 'yaml']): Option {
  const all = [...choices, ...JSONPATH_CHOICES] as const;
  const option = outputOption(all);
  return option.argParser((value) => {
    // As in kubectl, the names of the document formats are not case-sensitive.
    const name = value.toLowerCase();
    if (choices.some((choice) => choice === name)) return name;
    if (/^jsonpath(?:-as-json)?(?:=|$)/.test(value)) return value;
    if (/^(?:go-template|template|jsonpath-file)/.test(value)) throw new InvalidArgumentError(TEMPLATES_ONLY);
    throw new InvalidArgumentError(`Allowed choices are ${all.join(', ')}.`);
  });
}

/** The choices that stand for all templates. */
const JSONPATH_CHOICES = ['jsonpath=TEMPLATE', 'jsonpath-as-json=TEMPLATE'] as const;
const TEMPLATES_ONLY = 'templates of Go and template files are not supported: write a JSONPath template on the command line';

/** `-o` and `--no-headers` of a command that prints a table. */
export function addTableOptions(
  command: Command,
  choices: readonly [TableChoice, ...TableChoice[]] = ['text', 'wide', 'name', 'json', 'yaml'],
): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output.addOption(readOutputOption(choices)).option('--no-headers', 'print tables without the header'),
  );
}

/** The flags of kubeadm's printers that only exist for its scripts: no printed document has managed fields. */
export function addPrinterFlags(command: Command): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output
      .option(
        '--allow-missing-template-keys',
        'print nothing for fields of the template that do not exist; with =false, report them as errors',
        true,
      )
      .addOption(new Option('--no-allow-missing-template-keys', 'a field that does not exist is an error').hideHelp())
      .addOption(withoutEffect('--show-managed-fields')),
  );
}

/** `-v`, which every command has. */
export function addVerbosity(command: Command): Command {
  return command.addOption(
    new Option(
      '-v, --v <level>',
      'log verbosity from 0 to 10; 1: also phases and detected host details, 2: also operations on hosts, 5: also stack traces',
    )
      .argParser(integerBetween(0, MAX_VERBOSITY))
      .default(0)
      .helpGroup(HEADINGS.global),
  );
}

/** An option that is accepted only because kubeadm has it; help and completion do not show it. */
export function withoutEffect(flags: string): Option {
  return new Option(flags, 'no effect').hideHelp();
}

/** `--vmodule` of klog, which selects source files of kubeadm: validated, without an effect. */
export function addModuleVerbosity(command: Command): Command {
  return command.addOption(
    withoutEffect('--vmodule <pattern=N,...>').argParser((value) => {
      const parts = value.split(',').filter((part) => part !== '');
      if (parts.every((part) => /^[^=]+=[0-9]+$/.test(part))) return value;
      throw new InvalidArgumentError('must be a comma-separated list of filename=N');
    }),
  );
}

/** An option of kubeadm's command groups that only some subcommands use; these have an option of the same name. */
export function addInheritedOption(command: Command, flags: string, description: string): Command {
  return command.addOption(new Option(flags, description).hideHelp());
}

/** `--dry-run`, `--diff`, `-o`, `--exit-code`: for commands that create a plan. */
export function addDryRunOptions(command: Command): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output
      .option('--dry-run', 'print the plan; change nothing')
      .addOption(diffOption())
      .addOption(outputOption(['text', 'json', 'yaml']))
      .option('--exit-code', 'with --dry-run: exit with code 6 if changes are pending'),
  );
}

/** `--dry-run`, `-o`, `--exit-code`, and the selection of phases and checks: for commands that plan phases. */
export function addPlanOptions(command: Command): Command {
  addDryRunOptions(command);
  return addOptionGroup(command, HEADINGS.phases, (phases) =>
    addIgnoredChecks(
      phases.option('--skip-phases <phases>', 'phases to skip, as NAME or PARENT/CHILD, e.g. addon/kube-proxy (repeatable)', collectPhases),
    ),
  );
}

/** `--show-origin`. */
export function addShowOrigin(command: Command): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output.option('--show-origin', 'show the source of each field (such as cluster, node, patch or flag) with file and line'),
  );
}

/** `--ignore-preflight-errors`. */
export function addIgnoredChecks(command: Command): Command {
  return addOptionGroup(command, HEADINGS.phases, (phases) =>
    phases.option(
      '--ignore-preflight-errors <checks>',
      "preflight checks whose errors are shown as warnings; 'all' for every check (repeatable)",
      collectList,
    ),
  );
}

/**
 * Target hosts, or a root directory in place of a host.
 * @param rootfs the text of `--rootfs`, which depends on the effect of the command
 * @param target the text of `--host`
 */
export function addHostOptions(
  command: Command,
  rootfs = 'directory to write all files to instead of /; no service is started',
  target?: string,
): Command {
  addTargetOption(command, target);
  addOptionGroup(command, HEADINGS.host, (host) => host.option('--rootfs <dir>', rootfs));
  return addSshOptions(command);
}

/** `--host`. */
export function addTargetOption(
  command: Command,
  description = 'target host, reached over SSH (repeatable; default: the local host)',
): Command {
  return addFleetNames(addHostOption(command, description));
}

/** `--host` of a command that has another option for the fleet file. */
export function addHostOption(command: Command, description: string): Command {
  return addOptionGroup(command, HEADINGS.host, (host) => host.option('--host <host>', `${description}; HOST is ${HOST_FORMS}`, collect));
}

/** The forms of a host on a command line. */
export const HOST_FORMS = '[user@]address[:port], or the name of a host or Node in the fleet file';

/** `--fleet`: the names that hosts and Nodes on the command line may have. */
export function addFleetNames(command: Command): Command {
  return addOptionGroup(command, HEADINGS.host, (host) => host.option('--fleet <file>', FLEET_NAMES));
}

const FLEET_NAMES = 'fleet file that names of hosts and Nodes refer to (default: fleet.yaml, if it exists)';

/** The text of `--command-timeout` for commands without a fleet file. */
const COMMAND_TIMEOUT = 'time limit for each command on a host (default: 1m0s)';
/** The text of `--command-timeout` for commands that read the hosts from a fleet file. */
export const FLEET_COMMAND_TIMEOUT =
  'time limit for each command on a host (default: ssh.commandTimeout of the fleet file, otherwise 1m0s)';

/**
 * SSH connection to hosts, and privilege escalation of commands.
 * @param commandTimeout the text of `--command-timeout`
 */
export function addSshOptions(command: Command, commandTimeout = COMMAND_TIMEOUT): Command {
  return addOptionGroup(command, HEADINGS.ssh, (ssh) =>
    ssh
      .option('--ssh-config <file>', 'OpenSSH client configuration (default: ~/.ssh/config and /etc/ssh/ssh_config)')
      .option(
        '-i, --ssh-identity <file>',
        'private key file (repeatable; default: from the SSH configuration, and keys of the SSH agent)',
        collect,
      )
      .option('--ssh-known-hosts <file>', 'known_hosts file to verify host keys with (default: from the SSH configuration)')
      .option('--ssh-accept-new', 'accept and record keys of unknown hosts; changed keys are always refused')
      .option(
        '--ssh-password-stdin',
        'read the SSH password from the first line of standard input (default: from the environment variable KUBELETADM_SSH_PASSWORD, if set)',
      )
      .option('-k, --ask-pass', 'ask for the SSH password on the terminal, once for all hosts')
      .addOption(
        new Option('--ssh-transport <client>', "SSH client: built-in, or the system's ssh")
          .choices(['builtin', 'openssh'])
          .default('builtin'),
      )
      .addOption(
        new Option('--become <method>', 'privilege escalation on the host; auto: sudo, unless the SSH user is root')
          .choices(['auto', 'sudo', 'none'])
          .default('auto'),
      )
      .option(
        '--sudo-password-stdin',
        'read the sudo password from the first line of standard input, or from the second line if --ssh-password-stdin is given too (default: from the environment variable KUBELETADM_SUDO_PASSWORD, if set)',
      )
      .option('-K, --ask-become-pass', 'ask for the sudo password on the terminal, once for all hosts')
      .option('--connect-timeout <seconds>', 'time limit for connecting to a host', integerBetween(1, SECONDS_OF_A_DAY), 10)
      .option('--command-timeout <duration>', commandTimeout),
  );
}

/** The fleet file. */
export function addFleetFileOption(command: Command, description = "fleet file; '-' for standard input (default: fleet.yaml)"): Command {
  return addOptionGroup(command, HEADINGS.fleet, (fleet) => fleet.option('-f, --file <file>', description));
}

const HOST_PATTERNS =
  'hosts to select: names of hosts (* and ? are wildcards) or Nodes, ranges such as edge-[001:020], or groups; a leading ! excludes them (repeatable)';

/** Selection of Nodes by label or by the hosts of a fleet file, in place of names. */
export function addNodeSelectionOptions(command: Command, fleetNote = ''): Command {
  return command
    .option('-l, --selector <labels>', 'in place of node names, a label selector of Nodes, as in kubectl')
    .option('--group <groups>', 'in place of node names, groups of a fleet file (repeatable)', collectList)
    .option('--limit <hosts>', `in place of node names, ${HOST_PATTERNS}`, collectList)
    .option(
      '-f, --fleet <file>',
      `fleet file that --group, --limit and host names refer to; '-' for standard input${fleetNote} (default: fleet.yaml)`,
    );
}

/**
 * Selection of hosts of a fleet.
 * @param file the place of the names and labels
 */
export function addFleetSelectionOptions(command: Command, { file = 'the fleet file' }: { readonly file?: string } = {}): Command {
  return addOptionGroup(command, HEADINGS.fleet, (fleet) =>
    fleet
      .option('--limit <hosts>', HOST_PATTERNS, collectList)
      .option(
        '--group <groups>',
        'groups of hosts to select (repeatable); with --limit or --selector, a host must match every option',
        collectList,
      )
      .option('-l, --selector <labels>', `label selector, as in kubectl; matches the labels that ${file} declares for hosts and groups`),
  );
}

/** API server and credentials. */
export function addClusterOptions(
  command: Command,
  elsewhere = 'default: KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf',
): Command {
  return addKubeconfigOptions(command, `kubeconfig of an administrator (${elsewhere})`);
}

/** `--kubeconfig` and `--context`. */
export function addKubeconfigOptions(command: Command, description: string): Command {
  addOptionGroup(command, HEADINGS.cluster, (cluster) =>
    cluster
      .option('--kubeconfig <file>', description)
      .option('--context <name>', 'context of the kubeconfig (default: its current context)'),
  );
  return addRequestRate(command);
}

/** `--kube-api-qps`. */
export function addRequestRate(command: Command): Command {
  return addOptionGroup(command, HEADINGS.cluster, (cluster) =>
    cluster.option('--kube-api-qps <number>', 'maximum number of requests per second to the API server (default: no limit)', readRate),
  );
}

function readRate(text: string): number {
  const rate = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (rate > 0) return rate;
  throw new InvalidArgumentError('must be a number greater than 0, for example 20');
}

/** The text of `--take-over`. */
export const TAKE_OVER = 'let a host join under the name of an existing Node that is not Ready (for example after a reinstallation)';

/** The text of `--kubelet-config-dir`. */
export const KUBELET_CONFIG_DIR =
  'write the KubeletConfiguration fields of this node to drop-in files in /etc/kubernetes/kubelet.conf.d instead of config.yaml (kubelets from 1.30 on)';

/** Settings declared for one node, in place of detected ones. */
export function addNodeOptions(command: Command): Command {
  return addOptionGroup(command, HEADINGS.node, (node) =>
    node
      .option('--config <file>', "kubeadm configuration documents; '-' for standard input")
      .option('--node-name <name>', 'name of the Node (default: the hostname)')
      .option('--cri-socket <socket>', 'CRI socket of the container runtime (default: detected)')
      .option('--patches <dir>', 'directory of patches named target[suffix][+patchtype].{yaml,json}')
      .option('--overlay <file>', 'file with KubeletConfiguration fields of this node, which override the fields of the cluster')
      .option('--set <field=value>', 'KubeletConfiguration field of this node, e.g. --set maxPods=50 (repeatable)', collect)
      .option('--kubelet-config-dir', KUBELET_CONFIG_DIR)
      .option('--resolv-conf <file>', 'resolvConf of the kubelet (default: detected from systemd-resolved)')
      .option('--cgroup-driver <driver>', 'cgroupDriver of the kubelet (default: detected from the container runtime)')
      .option(
        '--node-ip <address>',
        'node IP, or a subnet that contains exactly one address of the host (for dual-stack: two values, comma-separated)',
      )
      .option('--node-labels <key=value>', 'labels the node registers with (repeatable)', collectList)
      .option('--node-taints <key=value:effect>', 'taints of the node, in place of those of --config (repeatable)', collectList)
      .option('--cloud-provider <name>', "'external', or an in-tree provider that the kubelet version supports")
      .option('--cloud-config <file>', 'configuration file of an in-tree cloud provider, as a path on the host')
      .option(
        '--kubelet-extra-args <name=value>',
        'kubelet flag; the last value of a flag wins; NAME- does not keep this flag of a unit that kubeletadm replaces (repeatable)',
        collect,
      ),
  );
}

const CONTROL_PLANE_VERSION =
  'control plane version (default, in this order: version of the API server if the cluster exists, version in --config, version of the kubelet)';

/** The settings of a cluster that are stored in kubeadm-config. */
export function addClusterSettings(command: Command, version = CONTROL_PLANE_VERSION): Command {
  return addOptionGroup(command, HEADINGS.controlPlane, (cluster) =>
    cluster
      .option('--kubernetes-version <version>', version)
      .option(
        '--service-cidr <cidr>',
        'IP range of Services; the tenth address of the range is the clusterDNS of all nodes (default: 10.96.0.0/12)',
      )
      .option('--service-dns-domain <domain>', 'DNS domain of Services (default: cluster.local)')
      .option('--pod-network-cidr <cidr>', 'IP range of pods')
      .option('--control-plane-endpoint <host:port>', 'stable address shared by all control planes')
      .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
      .option('--image-repository <repository>', 'registry of the control plane images (default: registry.k8s.io)')
      .option('--feature-gates <name=bool>', 'feature gates of kubeadm, comma-separated'),
  );
}

/** The bootstrap token of init and cluster adopt. */
export function addTokenOptions(command: Command, otherwise = 'an existing usable token, otherwise a new one'): Command {
  return addOptionGroup(command, HEADINGS.token, (token) =>
    token
      .option('--token <token>', `bootstrap token (default: ${otherwise})`)
      .option('--token-ttl <duration>', 'TTL of the token; 0: never expires (default: 24h0m0s)')
      .option('--skip-token-print', 'omit the token from the printed join command'),
  );
}

/** Listen address of a control plane's API server. */
export function addApiServerOptions(command: Command, condition = ''): Command {
  return addOptionGroup(command, HEADINGS.controlPlane, (cluster) =>
    cluster
      .option('--apiserver-advertise-address <address>', `${condition}IP address the API server advertises (default: detected)`)
      .option('--apiserver-bind-port <port>', `${condition}port of the API server (default: 6443)`),
  );
}

/** The configuration that decides the images of a control plane. */
export function addImagesOptions(command: Command): Command {
  return command
    .option('--config <file>', "kubeadm configuration documents; '-' for standard input")
    .option('--kubernetes-version <version>', 'control plane version (default: the newest known)')
    .option('--image-repository <repository>', 'registry of the images (default: registry.k8s.io)')
    .option('--feature-gates <name=bool>', 'feature gates of kubeadm, comma-separated');
}
