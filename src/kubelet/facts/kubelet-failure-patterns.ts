import { upTo } from '../../base/text/up-to.ts';

/** A message of the kubelet, and the failure that it shows. */
export interface Pattern {
  /**
   * Expressions searched one after the other; the pattern applies to the rest. None contains repetitions, so
   * that a long line takes linear time.
   */
  readonly after?: readonly RegExp[];
  /** Default: the whole text. */
  readonly pattern?: RegExp;
  /** Required in the same run: the first message alone is not the reason of an exit. */
  readonly needs?: RegExp;
  readonly cause: (match: RegExpExecArray) => string;
  readonly hint: string;
  /** False: the cause may resolve by waiting. */
  readonly fatal?: false;
}

/** Specific patterns before general ones: a failing run often logs several errors. */
export const PATTERNS: readonly Pattern[] = [
  {
    after: [/part of the existing bootstrap client certificate in /],
    pattern: /^(\S+) is expired: (\S+)/,
    needs: /unable to load bootstrap kubeconfig/,
    cause: (match) => `the kubelet's client certificate in ${match[1]} expired on ${match[2]}`,
    hint: 'Renew the certificate with kubeletadm certs renew-kubelet, or join the host again with a new token',
  },
  {
    after: [/unable to read existing bootstrap client config from /],
    pattern: /^(\S+): (?:invalid configuration: )?(.+)$/,
    needs: /unable to load bootstrap kubeconfig/,
    cause: (match) => `the kubelet cannot use ${match[1]}: ${match[2]}`,
    hint: 'Join the host again',
  },
  {
    after: [/unable to load bootstrap kubeconfig: /],
    cause: ([reported]) => `the kubelet has no credentials: ${upTo(reported, JSON_ERROR)}`,
    hint: 'Join the host, or provide /etc/kubernetes/kubelet.conf',
  },
  {
    after: [/(?:invalid kubeconfig|unable to load kubeconfig): (?:invalid configuration: )?/],
    cause: ([reported]) => `the kubelet has no usable kubeconfig: ${upTo(reported, JSON_ERROR)}`,
    hint: 'Join the host again',
  },
  {
    pattern: /no client provided, cannot use webhook/,
    cause: () => 'the kubelet has no kubeconfig, and its authorization mode Webhook needs one',
    hint: 'Join the host, or provide /etc/kubernetes/kubelet.conf',
  },
  {
    pattern: /failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1/,
    cause: () => 'the host uses cgroup v1, which this kubelet refuses',
    hint: 'Boot the host with cgroup v2, or set failCgroupV1: false',
  },
  {
    after: [/failed to load kubelet config file/i, /failed to decode: /i],
    cause: ([reported]) => `the kubelet cannot read its configuration: ${reported.replace(/ in scheme "[^"]*"$/, '')}`,
    hint: 'Fix the field in the configuration',
  },
  {
    after: [/failed to load kubelet config file/i, /open (?=\/)/i],
    pattern: /^(\S+): no such file/i,
    cause: (match) => `${match[1]} does not exist`,
    hint: 'Restore the file',
  },
  {
    after: [/kubelet config file "?/],
    pattern: /^([^"\s]+)"? was empty/,
    cause: (match) => `${match[1]} is empty`,
    hint: 'Restore the content of the file',
  },
  {
    after: [/cannot set feature gate /],
    pattern: /^(\S+) to (\S+), feature is locked to (\S+)/,
    cause: (match) => `feature gate ${match[1]} is locked to ${match[3]}`,
    hint: 'Remove the gate from featureGates',
  },
  {
    after: [/unrecognized feature gate: /],
    pattern: /^(\S+)/,
    cause: (match) => `this kubelet does not know the feature gate ${match[1]}`,
    hint: 'Remove the gate from featureGates',
  },
  {
    pattern: /the (\w{1,100}) feature gate must be enabled in order to use the (--\S{1,100}) flag/,
    cause: (match) => `the kubelet is started with ${match[2]}, but the feature gate ${match[1]} of this flag is off`,
    hint: 'Enable the gate with the flag --feature-gates and remove the gate from configuration files. Or remove the flag that needs the gate',
  },
  {
    after: [/unknown (?:shorthand )?flag: /],
    cause: (match) => `this kubelet does not know the flag ${match[1]}`,
    hint: 'Remove the flag from kubeletExtraArgs or KUBELET_EXTRA_ARGS',
  },
  {
    after: [/invalid argument /],
    pattern: /^("(?:[^"\\]|\\.)*") for ("[^"]*") flag: (.+)$/,
    cause: (match) => `flag ${match[2]} has the invalid value ${match[1]}: ${match[3]}`,
    hint: 'Change the value in kubeletExtraArgs or KUBELET_EXTRA_ARGS',
  },
  {
    after: [/(?=\[?invalid configuration: )/],
    cause: ([reported]) => `the kubelet refuses its configuration: ${listOf(upTo(reported, ', path: &TypeMeta'))}`,
    hint: 'Change the fields named in the message',
  },
  {
    after: [/kubelet cgroup driver: /],
    pattern: /^"?(\w+)"? is different from (\w+) cgroup driver: "?(\w+)"?/,
    cause: (match) => `cgroup driver mismatch: the kubelet uses ${match[1]}, ${match[2]} uses ${match[3]}`,
    hint: 'Set cgroupDriver to the driver of the runtime',
  },
  {
    pattern: /running with swap on is not supported/i,
    cause: () => 'swap is on',
    hint: 'Disable swap (swapoff -a, /etc/fstab), or set failSwapOn: false',
  },
  {
    after: [/Cipher suite /],
    pattern: /^(\S+) not supported/,
    cause: (match) => `tlsCipherSuites: ${match[1]} is not a cipher suite of this kubelet`,
    hint: 'Remove or replace that entry of tlsCipherSuites',
  },
  {
    after: [/unknown tls version "?/],
    pattern: /^([^"\s]+)/,
    cause: (match) => `tlsMinVersion: ${match[1]} is not a TLS version of this kubelet`,
    hint: 'Set tlsMinVersion to a TLS version of this kubelet',
  },
  {
    after: [/failed to run Kubelet: /],
    pattern: /^((?:--\S+ value )?failed to parse.*|quantities must match.*)$/,
    cause: (match) => `the kubelet cannot read a quantity of its configuration: ${match[1]}`,
    hint: 'Fix the quantity in systemReserved, kubeReserved or the eviction thresholds',
  },
  {
    after: [/initialize logging: /],
    cause: (match) => `the kubelet refuses its configuration: ${match[1]}`,
    hint: 'Fix the fields of logging',
  },
  {
    after: [/listen tcp /],
    pattern: /^\S*?:(\d+): bind: address already in use/,
    cause: (match) => `port ${match[1]} is in use by another process`,
    hint: 'Find the process with ss -ltnp and stop it',
  },
  {
    after: [/validate CRI v1 (?:runtime|image) API for endpoint "/],
    pattern: /^([^"]+)".*(?:no such file|connection refused)/,
    cause: (match) => `no container runtime responds at ${match[1]}`,
    hint: 'Start the container runtime, or set criSocket',
    fatal: false,
  },
  {
    after: [/validate CRI v1 (?:runtime|image) API for endpoint "/],
    pattern: /^([^"]+)".*(?:DeadlineExceeded|deadline exceeded)/,
    cause: (match) => `the container runtime at ${match[1]} does not answer`,
    hint: 'Restart the container runtime, and see its journal',
    fatal: false,
  },
  {
    pattern: /unknown service runtime\.v1\.(?:Runtime|Image)Service/,
    cause: () => 'the CRI plugin of the container runtime is disabled, or the runtime is too old',
    hint: 'Check disabled_plugins in /etc/containerd/config.toml',
    fatal: false,
  },
  {
    after: [/(?:failed to run Kubelet|failed to construct kubelet dependencies|Failed to listen and serve): open /],
    pattern: /^(\S+): no such file or directory/,
    cause: (match) => `${match[1]} does not exist`,
    hint: 'Create the file, or change the field that names it',
  },
  {
    after: [/Failed to start ContainerManager: /],
    pattern: /^invalid Node Allocatable configuration\. Resource "([^"]+)"/,
    cause: (match) => `kubeReserved and systemReserved reserve more ${match[1]} than the host has`,
    hint: 'Reserve less in kubeReserved and systemReserved',
  },
  {
    after: [/could not restore state from checkpoint: /],
    pattern: /^(.+), please drain this node and delete the (CPU|memory) manager checkpoint file "([^"]+)"/,
    cause: (match) => `the state file ${match[3]} of the ${match[2]} manager does not fit: ${match[1]}`,
    hint: 'Drain the node, stop the kubelet and delete that file',
  },
  {
    after: [/Failed to start ContainerManager: Failed to enforce (?=System|Kube)/],
    pattern: /^(System|Kube) Reserved (?:Compressible )?Cgroup Limits on "([^"]*)": (.+)$/,
    cause: (match) => `${match[1]?.toLowerCase()}ReservedCgroup: the limits of cgroup ${match[2]} cannot be set: ${match[3]}`,
    hint: 'Create the cgroup before the kubelet starts, or change the field and enforceNodeAllocatable',
  },
  {
    after: [/Failed to start ContainerManager: /],
    cause: (match) => `the kubelet cannot start its managers and cgroups: ${match[1]}`,
    hint: 'Check cgroupDriver and the cgroups of the host',
    fatal: false,
  },
  {
    after: [/Failed to register CRI auth plugins: /],
    cause: (match) => `the image credential providers cannot be used: ${match[1]}`,
    hint: 'Correct the flags image-credential-provider-config and image-credential-provider-bin-dir, or the files that they name',
  },
  {
    pattern: /^No valid client certificate is found and the server is responsive/,
    cause: () => 'the kubelet has had no valid client certificate for five minutes',
    hint: 'See kubectl get csr, or join the host again',
  },
  {
    pattern: /^The currently active client certificate has expired and the server is responsive/,
    cause: () => "the kubelet's client certificate has expired",
    hint: 'Renew the certificate with kubeletadm certs renew-kubelet, or join the host again',
  },
  {
    after: [/bad --node-ip /],
    pattern: /^("[^"]*"): (.+)$/,
    cause: (match) => `--node-ip ${match[1]} is refused: ${match[2]}`,
    hint: 'Pass one address, or one of each IP family, with --node-ip',
  },
  {
    after: [/failed to run Kubelet: reserved-cpus: /],
    cause: (match) => `reservedSystemCPUs: ${match[1]}`,
    hint: 'Reserve CPUs that the host has',
  },
  {
    after: [/failed to validate kubelet flags: /],
    cause: (match) => `the kubelet refuses its flags: ${match[1]}`,
    hint: 'Change the flags in kubeletExtraArgs or KUBELET_EXTRA_ARGS',
  },
  {
    after: [/(?:command failed|^Error): unknown command /],
    cause: (match) => `the kubelet is started with the unknown word ${match[1]}`,
    hint: 'Remove the word from KUBELET_EXTRA_ARGS or the unit of the kubelet',
  },
  {
    after: [/failed to merge kubelet configs: /],
    pattern: /^(?:failed to walk through kubelet dropin directory "[^"]*": )?(.+)$/,
    cause: (match) => `the kubelet cannot read its drop-in files: ${match[1]}`,
    hint: 'Correct the file in the directory of --config-dir',
  },
  {
    pattern: /^Failed to start cAdvisor: .*too many open files/,
    cause: () => 'the host has no inotify instances left',
    hint: 'Raise fs.inotify.max_user_instances',
    fatal: false,
  },
  { pattern: /no space left on device/i, cause: () => 'the disk is full', hint: 'Free disk space', fatal: false },
];

const JSON_ERROR = '; json parse error: ';

/** `[invalid configuration: a, invalid configuration: b]` as `a; b`. */
function listOf(text: string): string {
  return text
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/^invalid configuration: /, '')
    .replace(/, (?:invalid configuration: |(?=kubelet is configured to not run on a host using cgroup v1))/g, '; ');
}
