/** Replacement of a removed flag. */
interface RemovedFlag {
  /** A clause for display. */
  readonly message: string;
  /** Whether no behaviour is lost for this value. */
  readonly harmless: (value: string, others: ReadonlyMap<string, string>) => boolean;
  /** The replacing flag. */
  readonly renamed?: string;
}

const always = (): boolean => true;
const is =
  (...values: readonly string[]) =>
  (value: string): boolean =>
    values.includes(value);

/** With another runtime, dockershim flags had no effect. */
const withRemoteRuntime = (_: string, others: ReadonlyMap<string, string>): boolean => others.get('container-runtime') === 'remote';
const DOCKERSHIM: RemovedFlag = {
  message: 'used only by dockershim, removed in 1.24: networks and images are configured in the container runtime',
  harmless: withRemoteRuntime,
};
const KLOG: RemovedFlag = { message: 'the kubelet logs only to standard error since 1.26', harmless: always };
const CADVISOR: RemovedFlag = { message: 'had no effect', harmless: always };
/** The default of such a flag had no effect of its own. */
const cadvisorOption = (byDefault: string): RemovedFlag => ({
  message: 'an option of cAdvisor; kubelets from 1.37 on do not start with this flag',
  harmless: is(byDefault),
});

/**
 * Flags that were removed between 1.20 and 1.37 and have no field.
 * @see Kubernetes changelogs 1.21 to 1.37
 */
export const REMOVED_FLAGS: ReadonlyMap<string, RemovedFlag> = new Map<string, RemovedFlag>([
  ['container-runtime', { message: 'all runtimes are remote since 1.24', harmless: is('remote') }],
  ['pod-infra-container-image', { message: 'the sandbox image is configured in the container runtime', harmless: always }],
  [
    'dynamic-config-dir',
    { message: 'dynamic configuration was removed in 1.24: use the content of the ConfigMap as configuration file', harmless: is('') },
  ],
  ['experimental-bootstrap-kubeconfig', { message: 'renamed', harmless: always, renamed: 'bootstrap-kubeconfig' }],
  [
    'cloud-config',
    { message: 'in-tree cloud providers were removed; pass the file to the cloud controller manager instead', harmless: is('') },
  ],
  [
    'azure-container-registry-config',
    { message: 'replaced by a credential provider: --image-credential-provider-config', harmless: is('') },
  ],
  ['keep-terminated-pod-volumes', { message: 'volumes of terminated pods are always unmounted', harmless: is('false') }],
  ['register-schedulable', { message: 'replaced by taints: registerWithTaints', harmless: is('true') }],
  ['master-service-namespace', { message: 'had no effect', harmless: always }],
  ['seccomp-profile-root', { message: 'profiles are read from seccomp in --root-dir', harmless: is('', '/var/lib/kubelet/seccomp') }],
  ['redirect-container-streaming', { message: 'streams always go through the kubelet', harmless: is('false') }],
  ['experimental-check-node-capabilities-before-mount', { message: 'this check of mounts was removed', harmless: is('false') }],
  ['experimental-kernel-memcg-notification', { message: 'renamed', harmless: always, renamed: 'kernel-memcg-notification' }],
  ['chaos-chance', { message: 'only for tests', harmless: always }],
  ['really-crash-for-testing', { message: 'only for tests', harmless: always }],
  ['non-masquerade-cidr', DOCKERSHIM],
  ...[
    'cni-bin-dir',
    'cni-cache-dir',
    'cni-conf-dir',
    'docker-endpoint',
    'experimental-dockershim-root-directory',
    'image-pull-progress-deadline',
    'network-plugin',
    'network-plugin-mtu',
  ].map((name): [string, RemovedFlag] => [name, DOCKERSHIM]),
  ...[
    'docker',
    'docker-env-metadata-whitelist',
    'docker-only',
    'docker-root',
    'docker-tls',
    'docker-tls-ca',
    'docker-tls-cert',
    'docker-tls-key',
    'enable-cadvisor-json-endpoints',
  ].map((name): [string, RemovedFlag] => [name, CADVISOR]),
  ...Object.entries({
    'application-metrics-count-limit': '100',
    'boot-id-file': '/proc/sys/kernel/random/boot_id',
    'container-hints': '/etc/cadvisor/container_hints.json',
    containerd: '/run/containerd/containerd.sock',
    'containerd-namespace': 'k8s.io',
    'enable-load-reader': 'false',
    'event-storage-age-limit': 'default=24h',
    'event-storage-event-limit': 'default=100000',
    'global-housekeeping-interval': '1m0s',
    'log-cadvisor-usage': 'false',
    'machine-id-file': '/etc/machine-id,/var/lib/dbus/machine-id',
    'storage-driver-buffer-duration': '1m0s',
    'storage-driver-db': 'cadvisor',
    'storage-driver-host': 'localhost:8086',
    'storage-driver-password': 'root',
    'storage-driver-secure': 'false',
    'storage-driver-table': 'stats',
    'storage-driver-user': 'root',
  }).map(([name, byDefault]): [string, RemovedFlag] => [name, cadvisorOption(byDefault)]),
  ...[
    'add_dir_header',
    'alsologtostderr',
    'log_backtrace_at',
    'log_dir',
    'log_file',
    'log_file_max_size',
    'logtostderr',
    'one_output',
    'skip_headers',
    'skip_log_headers',
    'stderrthreshold',
  ].map((name): [string, RemovedFlag] => [name, KLOG]),
]);

/** Text for a flag without further information. */
export const UNKNOWN_REMOVAL: Pick<RemovedFlag, 'message'> = { message: 'no replacement' };
