import { type Command, InvalidArgumentError, Option } from 'commander';

/** A repeatable option whose values may also be separated by commas, as kubeadm's lists are. */
export function collectList(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), ...value.split(',').filter((item) => item !== '')];
}

/** A repeatable option whose values may hold commas. */
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

/** `-o`, the first choice being the default. */
export function outputOption(choices: readonly [string, ...string[]]): Option {
  return new Option('-o, --output <format>', 'how it is printed').choices(choices).default(choices[0]);
}

/** `-v`, which every command has. */
export function addVerbosity(command: Command): Command {
  return command.option(
    '-v, --v <level>',
    'log verbosity from 0 to 10: 1 facts, 2 commands, 5 stack traces',
    integerBetween(0, MAX_VERBOSITY),
    0,
  );
}

/** `--dry-run`, `-o`, `--exit-code`, `--show-origin`: for commands that make a plan. */
export function addPlanOptions(command: Command): Command {
  return command
    .option('--dry-run', 'print the plan with a diff and change nothing')
    .addOption(new Option('-o, --output <format>', 'how the plan is printed').choices(['text', 'json', 'yaml']).default('text'))
    .option('--exit-code', 'with --dry-run: exit with 6 when changes are pending')
    .option('--show-origin', 'say of each field which layer it comes from')
    .option('--skip-phases <phases>', 'phases to leave out, by name or parent/child', collectList)
    .option('--ignore-preflight-errors <checks>', "preflight checks whose errors become warnings; 'all' ignores all", collectList);
}

/** Which host to work on. */
export function addHostOptions(command: Command): Command {
  return addSshOptions(
    command
      .option('--host <[user@]address[:port]>', 'work on this host over SSH (repeatable); default: this machine', collect)
      .option('--rootfs <dir>', 'stage all files into this directory in place of /; nothing is started'),
  );
}

/** How a host is reached over SSH. */
export function addSshOptions(command: Command): Command {
  return command
    .option('--ssh-config <file>', 'OpenSSH client configuration (default: ~/.ssh/config and /etc/ssh/ssh_config)')
    .option('-i, --ssh-identity <file>', 'private key (repeatable)', collect)
    .option('--ssh-known-hosts <file>', 'known_hosts file to judge host keys by')
    .option('--ssh-accept-new', 'accept and record the key of a host that is not known yet; a changed key is always refused')
    .option('--ssh-password-stdin', 'read the SSH password from the first line of standard input (or KUBELETADM_SSH_PASSWORD)')
    .addOption(
      new Option('--ssh-transport <client>', "who speaks SSH: the built-in client, or the system's ssh")
        .choices(['builtin', 'openssh'])
        .default('builtin'),
    )
    .addOption(new Option('--become <how>', 'how to be root on the host').choices(['auto', 'sudo', 'none']).default('auto'))
    .option('--sudo-password-stdin', 'read the sudo password from the next line of standard input (or KUBELETADM_SUDO_PASSWORD)')
    .option('--connect-timeout <seconds>', 'time limit for the connection to a host', integerBetween(1, SECONDS_OF_A_DAY), 10)
    .option(
      '--command-timeout <duration>',
      'maximum time for one command on a host (default: ssh.commandTimeout of the fleet file, else 1m0s)',
    );
}

/** Which fleet file. */
export function addFleetFileOption(command: Command): Command {
  return command.option('-f, --file <file>', "the fleet file; '-' is standard input (default: fleet.yaml)");
}

/** Which hosts of a fleet. */
export function addFleetSelectionOptions(command: Command): Command {
  return command
    .option(
      '--limit <hosts>',
      'only these hosts: names with * and ?, ranges like edge-[001:020], or groups; ! in front leaves out (repeatable)',
      collectList,
    )
    .option('--group <groups>', 'only hosts in one of these groups (repeatable)', collectList);
}

/** Which API server, and as whom. */
export function addClusterOptions(
  command: Command,
  elsewhere = 'default: KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf',
): Command {
  return command
    .option('--kubeconfig <file>', `credentials of an administrator (${elsewhere})`)
    .option('--context <name>', 'context of the kubeconfig');
}

/** What is declared for one node, in place of what is detected. */
export function addNodeOptions(command: Command): Command {
  return command
    .option('--config <file>', "kubeadm configuration documents; '-' is standard input")
    .option('--node-name <name>', 'name of the node (default: the host name)')
    .option('--cri-socket <socket>', 'socket of the container runtime (default: detected)')
    .option('--patches <dir>', 'directory of patches: target[suffix][+patchtype].{yaml,json}')
    .option('--overlay <file>', 'KubeletConfiguration for this node, merged over the one of the cluster')
    .option('--set <field=value>', 'set one KubeletConfiguration field of this node, e.g. --set maxPods=50 (repeatable)', collect)
    .option('--resolv-conf <file>', 'resolvConf of this node (default: detected from systemd-resolved)')
    .option('--cgroup-driver <driver>', 'cgroupDriver of this node (default: asked of the container runtime)')
    .option('--node-ip <address>', 'IP address of the node, or a subnet it has one address in; of both families with a comma between')
    .option('--node-labels <key=value>', 'labels the node registers with', collectList)
    .option('--cloud-provider <name>', "'external', or an in-tree provider where this kubelet still has it")
    .option('--cloud-config <file>', 'configuration of an in-tree cloud provider, on the host')
    .option('--kubelet-extra-args <name=value>', 'flag for the kubelet (repeatable); of a name given twice the last wins', collect);
}

/** What init says of the cluster. */
export function addInitOptions(command: Command): Command {
  return addClusterOptions(command, 'default: none, a new control plane is bootstrapped; KUBECONFIG is ignored')
    .option('--kubernetes-version <version>', 'version of the control plane (default: that of the API server, else of the kubelet)')
    .option('--service-cidr <cidr>', 'addresses of services; the tenth is the clusterDNS of all nodes (default: 10.96.0.0/12)')
    .option('--service-dns-domain <domain>', 'domain of services (default: cluster.local)')
    .option('--pod-network-cidr <cidr>', 'addresses of pods')
    .option('--control-plane-endpoint <host:port>', 'address of all control planes together')
    .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
    .option('--image-repository <repository>', 'where control plane images come from')
    .option('--feature-gates <name=bool>', "kubeadm's feature gates")
    .option('--token <token>', 'bootstrap token (default: one that is there and nodes can join by, else a new one)')
    .option('--token-ttl <duration>', 'TTL of the token (default: 24h0m0s; 0: the token never expires)')
    .option('--skip-token-print', 'leave the token out of the join command that is printed')
    .option('--apiserver-advertise-address <address>', 'address the API server tells others')
    .option('--apiserver-bind-port <port>', 'port of the API server')
    .option('--apiserver-cert-extra-sans <names>', 'more names for the certificate of the API server', collectList)
    .option('--upload-certs', 'upload the certificates that control planes share, for two hours (Secret kubeadm-certs)')
    .option('--certificate-key <key>', 'to encrypt them with: 64 hexadecimal digits (default: a new one)')
    .option('--skip-certificate-key-print', 'leave the key out of the join command that is printed')
    .option('--force-upload', 'replace a kubelet-config that was edited by hand, and the address in cluster-info');
}
