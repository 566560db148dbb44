/** What became of a flag that is no more. */
export interface FlagEnd {
  /** A clause for people. */
  readonly message: string;
  /** Nothing is lost where the value was this, or whatever it was. */
  readonly harmless: (value: string, others: ReadonlyMap<string, string>) => boolean;
  /** The flag that took its place. */
  readonly renamed?: string;
}

const always = (): boolean => true;
const is =
  (...values: readonly string[]) =>
  (value: string): boolean =>
    values.includes(value);

/** With a runtime of its own, whatever was said to dockershim had no effect. */
const withRemoteRuntime = (_: string, others: ReadonlyMap<string, string>): boolean => others.get('container-runtime') === 'remote';
const DOCKERSHIM: FlagEnd = {
  message: 'only dockershim read it, which is gone since 1.24: networks and images are the container runtime’s',
  harmless: withRemoteRuntime,
};
const KLOG: FlagEnd = { message: 'the kubelet logs to standard error alone since 1.26', harmless: always };
const CADVISOR: FlagEnd = { message: 'it had no effect any more', harmless: always };

/**
 * Flags that were removed between 1.20 and 1.36 and have no field.
 * @see Kubernetes changelogs 1.21 to 1.36
 */
export const FLAG_ENDS: ReadonlyMap<string, FlagEnd> = new Map<string, FlagEnd>([
  ['container-runtime', { message: 'all runtimes are remote since 1.24', harmless: is('remote') }],
  ['pod-infra-container-image', { message: 'the container runtime has the sandbox image in its own configuration', harmless: always }],
  [
    'dynamic-config-dir',
    { message: 'dynamic configuration is gone since 1.24: make its payload the configuration file', harmless: is('') },
  ],
  ['experimental-bootstrap-kubeconfig', { message: 'it was renamed', harmless: always, renamed: 'bootstrap-kubeconfig' }],
  ['cloud-config', { message: 'in-tree cloud providers are gone: a cloud controller manager reads it', harmless: is('') }],
  ['azure-container-registry-config', { message: 'a credential provider does it: --image-credential-provider-config', harmless: is('') }],
  ['keep-terminated-pod-volumes', { message: 'volumes of ended pods are always unmounted', harmless: is('false') }],
  ['register-schedulable', { message: 'taints took its place: registerWithTaints', harmless: is('true') }],
  ['master-service-namespace', { message: 'it had no effect any more', harmless: always }],
  ['seccomp-profile-root', { message: 'profiles are below seccomp in --root-dir', harmless: is('', '/var/lib/kubelet/seccomp') }],
  ['redirect-container-streaming', { message: 'streams always go through the kubelet', harmless: is('false') }],
  ['experimental-check-node-capabilities-before-mount', { message: 'mounts are no longer checked so', harmless: is('false') }],
  ['experimental-kernel-memcg-notification', { message: 'it was renamed', harmless: always, renamed: 'kernel-memcg-notification' }],
  ['chaos-chance', { message: 'it was for tests', harmless: always }],
  ['really-crash-for-testing', { message: 'it was for tests', harmless: always }],
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
  ].map((name): [string, FlagEnd] => [name, DOCKERSHIM]),
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
  ].map((name): [string, FlagEnd] => [name, CADVISOR]),
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
  ].map((name): [string, FlagEnd] => [name, KLOG]),
]);

/** What became of a flag nothing more is known of. */
export const UNKNOWN_END: Pick<FlagEnd, 'message'> = { message: 'nothing took its place' };
