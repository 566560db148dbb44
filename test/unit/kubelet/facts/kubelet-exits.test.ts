import { describe, expect, it } from 'vitest';
import { explainKubeletFailure, lastKubeletError } from '../../../../src/kubelet/facts/kubelet-failure.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const STARTED = 'Started kubelet.service - kubelet: The Kubernetes Node Agent.\n';
const line = (pid: number, text: string): string => `E1128 11:20:00.000000   ${pid} x.go:1] ${text}\n`;
const commandFailed = (error: string): string => `"command failed" err=${JSON.stringify(error)}`;
const EXITED = "kubelet.service: Main process exited, code=exited, status=1/FAILURE\nkubelet.service: Failed with result 'exit-code'.\n";
/** One run of a kubelet that logs these errors and exits. */
const run = (pid: number, ...errors: readonly string[]): string =>
  `${STARTED}${errors.map((text) => line(pid, text)).join('')}${EXITED}kubelet.service: Scheduled restart job, restart counter is at ${pid}.\n`;

const CRI =
  'failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint "unix:///run/containerd/containerd.sock": rpc error: code =';
/** Every bootstrap prints this until the kubelet has its first certificate. */
const BOOTSTRAP =
  '"Unhandled Error" err="unable to read existing bootstrap client config from /etc/kubernetes/kubelet.conf: invalid configuration: [unable to read client-cert /var/lib/kubelet/pki/kubelet-client-current.pem for default-auth due to open /var/lib/kubelet/pki/kubelet-client-current.pem: no such file or directory, unable to read client-key /var/lib/kubelet/pki/kubelet-client-current.pem for default-auth due to open /var/lib/kubelet/pki/kubelet-client-current.pem: no such file or directory]" logger="UnhandledError"';
/** A kubelet with containerd 1.x prints this at each start. */
const OLD_RUNTIME =
  '"RuntimeConfig from runtime service failed" err="rpc error: code = Unimplemented desc = unknown method RuntimeConfig for service runtime.v1.RuntimeService"';

/**
 * One sentence for each place where kubelet 1.36 exits: os.Exit in cmd/kubelet/app/server.go, component-base/cli/run.go,
 * pkg/kubelet/{kubelet,server/server,certificate/transport,kuberuntime/kuberuntime_manager}.go, and panics; "command
 * failed" with the errors that cmd/kubelet/app/server.go, pkg/kubelet/cm and cri-client return.
 */
const EXITS: readonly (readonly [logged: string, cause: string, fatal: boolean])[] = [
  [
    '"Failed to create a new kubelet configuration" err="no kind is registered"',
    'Failed to create a new kubelet configuration: no kind is registered',
    false,
  ],
  [
    '"Failed to listen and serve" err="listen tcp 10.0.0.9:10250: bind: cannot assign requested address"',
    'listen tcp 10.0.0.9:10250: bind: cannot assign requested address',
    false,
  ],
  [
    '"Failed to create listener for podResources endpoint" err="listen unix /var/lib/kubelet/pod-resources/kubelet.sock: bind: permission denied"',
    'Failed to create listener for podResources endpoint: listen unix',
    false,
  ],
  [
    '"Failed to create listener for pods API endpoint" err="failed to unlink socket file"',
    'Failed to create listener for pods API endpoint: failed to unlink',
    false,
  ],
  ['"Failed to serve" err="accept: too many open files"', 'Failed to serve: accept: too many open files', false],
  ['"Failed to start cAdvisor" err="inotify_init: too many open files"', 'no inotify instances left', false],
  [
    '"Failed to start cAdvisor" err="failed to get the root container"',
    'Failed to start cAdvisor: failed to get the root container',
    false,
  ],
  ['"Kubelet failed to get node info" err="node \\"a\\" not found"', 'Kubelet failed to get node info: node "a" not found', false],
  [
    '"Failed to initialize internal modules" err="mkdir /var/lib/kubelet: read-only file system"',
    'Failed to initialize internal modules: mkdir /var/lib/kubelet: read-only file system',
    false,
  ],
  [
    '"Failed to start ContainerManager" err="start cpu manager error: could not restore state from checkpoint: checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint file \\"/data/kubelet/cpu_manager_state\\" before restarting Kubelet"',
    'the state file /data/kubelet/cpu_manager_state of the CPU manager does not fit: checkpoint is corrupted',
    true,
  ],
  [
    '"Failed to start ContainerManager" err="start memory manager error: could not restore state from checkpoint: [memorymanager] configured policy \\"Static\\" differs from state checkpoint policy \\"None\\", please drain this node and delete the memory manager checkpoint file \\"/var/lib/kubelet/memory_manager_state\\" before restarting Kubelet"',
    'the state file /var/lib/kubelet/memory_manager_state of the memory manager does not fit: [memorymanager] configured policy "Static" differs',
    true,
  ],
  [
    '"Failed to start ContainerManager" err="Failed to enforce System Reserved Cgroup Limits on \\"/system.slice/x\\": [\\"system.slice\\" \\"x\\"] cgroup does not exist"',
    'systemReservedCgroup: the limits of cgroup /system.slice/x cannot be set: ["system.slice" "x"] cgroup does not exist',
    true,
  ],
  [
    '"Failed to start ContainerManager" err="Failed to enforce Kube Reserved Compressible Cgroup Limits on \\"/kube\\": no"',
    'kubeReservedCgroup: the limits of cgroup /kube cannot be set: no',
    true,
  ],
  [
    '"Failed to start ContainerManager" err="start dra manager error: x"',
    'the kubelet cannot start its managers and cgroups: start dra manager error: x',
    false,
  ],
  [
    '"Failed to start ContainerManager" err="system validation failed - Following Cgroup subsystem not mounted: [memory]"',
    'the kubelet cannot start its managers and cgroups: system validation failed',
    false,
  ],
  [
    '"No valid client certificate is found and the server is responsive, exiting." lastCertificateAvailabilityTime="2026-11-28" shutdownThreshold="5m0s"',
    'the kubelet has had no valid client certificate for five minutes',
    true,
  ],
  [
    '"The currently active client certificate has expired and the server is responsive, exiting."',
    "the kubelet's client certificate has expired",
    true,
  ],
  [
    '"Failed to register CRI auth plugins" err="plugin binary directory /usr/local/kubetlet/bin/ did not exist"',
    'the image credential providers cannot be used: plugin binary directory /usr/local/kubetlet/bin/ did not exist',
    true,
  ],
  [commandFailed('failed to parse kubelet flag: unknown flag: --nope'), 'this kubelet does not know the flag --nope', true],
  [commandFailed('unknown command extra'), 'the kubelet is started with the unknown word extra', true],
  [
    commandFailed(
      'failed to set feature gates from initial flags-based config: cannot set feature gate NodeSwap to false, feature is locked to true',
    ),
    'feature gate NodeSwap is locked',
    true,
  ],
  [
    commandFailed('failed to validate kubelet flags: the nodeStatusMaxImages must be at least -1'),
    'the kubelet refuses its flags: the nodeStatusMaxImages',
    true,
  ],
  [
    commandFailed('failed to load kubelet config file, path: /k.yaml, error: open /k.yaml: no such file or directory'),
    '/k.yaml does not exist',
    true,
  ],
  [
    commandFailed(
      'failed to merge kubelet configs: failed to walk through kubelet dropin directory "/etc/d": failed to load kubelet dropin file, path: /etc/d/1.conf, no apiVersion/kind',
    ),
    'failed to load kubelet dropin file, path: /etc/d/1.conf, no apiVersion/kind',
    true,
  ],
  [
    commandFailed('initialize logging: logging.format: Invalid value: "xml": Unsupported log format'),
    'logging.format: Invalid value',
    true,
  ],
  [
    commandFailed(
      'failed to validate kubelet configuration, error: invalid configuration: maxPods (--max-pods) -5 must not be a negative number, path: &TypeMeta{}',
    ),
    'maxPods (--max-pods) -5',
    true,
  ],
  [
    commandFailed('failed to construct kubelet dependencies: open /nope/ca.crt: no such file or directory'),
    '/nope/ca.crt does not exist',
    true,
  ],
  [
    commandFailed('failed to run Kubelet: create health checker: the watchdog is configured'),
    'create health checker: the watchdog is configured',
    false,
  ],
  [
    commandFailed('failed to run Kubelet: unable to acquire file lock on "/run/k.lock": permission denied'),
    'unable to acquire file lock',
    false,
  ],
  [
    commandFailed('failed to run Kubelet: bad --node-ip "10.0.0.1,10.0.0.2": must contain either a single IP or a dual-stack pair of IPs'),
    '--node-ip "10.0.0.1,10.0.0.2" is refused: must contain either',
    true,
  ],
  [
    commandFailed('failed to run Kubelet: reserved-cpus: 0-9 is not a subset of online-cpus: 0-1'),
    'reservedSystemCPUs: 0-9 is not a subset of online-cpus: 0-1',
    true,
  ],
  [
    commandFailed(`${CRI} Unimplemented desc = unknown service runtime.v1.RuntimeService`),
    'the CRI plugin of the container runtime is disabled',
    false,
  ],
  [
    commandFailed(
      `${CRI} Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"`,
    ),
    'no container runtime responds at unix:///run/containerd/containerd.sock',
    false,
  ],
  [
    commandFailed(`${CRI} DeadlineExceeded desc = context deadline exceeded`),
    'the container runtime at unix:///run/containerd/containerd.sock does not answer',
    false,
  ],
  [
    commandFailed('failed to run Kubelet: runtime returned an unknown cgroup driver 7'),
    'runtime returned an unknown cgroup driver 7',
    false,
  ],
  [
    commandFailed('failed to run Kubelet: failed to create kubelet: no serving certificate available for the kubelet'),
    'no serving certificate available',
    false,
  ],
];

describe('explainKubeletFailure: the exits of kubelet 1.36', () => {
  it.each(EXITS)('%s', (logged, cause, fatal) => {
    const failure = explainKubeletFailure(null, run(41, '"Failed to x" err="an earlier cause"') + run(42, BOOTSTRAP, OLD_RUNTIME, logged));
    expect(failure).toMatchObject({ cause: expect.stringContaining(cause), fatal });
  });

  it.each([
    ['panic: runtime error: invalid memory address or nil pointer dereference', 'runtime error: invalid memory address'],
    ['fatal error: concurrent map writes', 'concurrent map writes'],
  ])('finds the reason of a crash above its stack: %s', (reason, cause) => {
    const stack = 'goroutine 1 [running]:\nmain.main()\n\t/src/kubelet.go:38 +0x1d\ncreated by main in goroutine 1\n';
    expect(explainKubeletFailure(null, `${STARTED}${line(7, OLD_RUNTIME)}${reason}\n\n${stack}${EXITED}`).cause).toContain(cause);
  });
});

describe('explainKubeletFailure: the last run', () => {
  it('never takes what every bootstrap prints for the cause', () => {
    const text = run(7, BOOTSTRAP, commandFailed(`${CRI} Unimplemented desc = unknown service runtime.v1.RuntimeService`));
    expect(explainKubeletFailure(null, text)).toMatchObject({ cause: expect.stringContaining('CRI plugin'), fatal: false });
    expect(explainKubeletFailure(null, `${STARTED}${line(7, BOOTSTRAP)}${EXITED}`).cause).not.toContain('client-cert');
  });

  it('falls back to the last error line, of the run that ended last', () => {
    const text = `${run(7, commandFailed('failed to run Kubelet: running with swap on is not supported'))}${run(8, '"Something" err="odd"')}${STARTED}${line(9, BOOTSTRAP)}`;
    expect(explainKubeletFailure(null, text)).toMatchObject({ cause: 'Something: odd', fatal: false });
  });

  it('takes a message that arrives after the notice of systemd as part of its run', () => {
    const text = `${run(7, '"Something" err="odd"')}${STARTED}${EXITED}${line(8, commandFailed('failed to run Kubelet: x is y'))}`;
    expect(explainKubeletFailure(null, text).cause).toBe('failed to run Kubelet: x is y');
  });

  it('separates runs of a unit with another description', () => {
    const other = (text: string): string => text.replaceAll(STARTED, 'Started Node agent of ACME.\n');
    const json = (msg: string): string => `{"ts":1,"msg":"command failed","err":"failed to run Kubelet: ${msg}"}\n`;
    const next = 'kubelet.service: Scheduled restart job, restart counter is at 2.\n';
    expect(explainKubeletFailure(null, other(`${STARTED}${json('a')}${EXITED}${next}${STARTED}${json('b')}${EXITED}`)).cause).toContain(
      'b',
    );
  });

  it.each([
    [
      'by the OOM killer',
      "kubelet.service: A process of this unit has been killed by the OOM killer.\nkubelet.service: Main process exited, code=killed, status=9/KILL\nkubelet.service: Failed with result 'oom-kill'.\n",
      "the kubelet was killed by SIGKILL, by the kernel's OOM killer",
    ],
    [
      'by hand',
      'kubelet.service: Main process exited, code=killed, status=9/KILL\n',
      "the kubelet was killed by SIGKILL, by the kernel's OOM killer or by another process",
    ],
    ['by a fault', 'kubelet.service: Main process exited, code=dumped, status=11/SEGV\n', 'the kubelet was killed by SIGSEGV'],
    [
      'by the watchdog',
      'kubelet.service: Watchdog timeout (limit 30s)!\nkubelet.service: Killing process 7 (kubelet) with signal SIGABRT.\nkubelet.service: Main process exited, code=killed, status=6/ABRT\n',
      'the kubelet did not answer the watchdog of systemd',
    ],
  ])('distinguishes a signal from an exit code: killed %s', (_, end, cause) => {
    const failure = explainKubeletFailure(
      null,
      `${run(6, commandFailed('failed to run Kubelet: swap'))}${STARTED}${line(7, BOOTSTRAP)}${end}`,
    );
    expect(failure.cause).toContain(cause);
    expect(failure.cause).not.toContain('exit code');
  });

  it.each([
    [{ execMainCode: 2, execMainStatus: 9, result: 'signal' }, "killed by SIGKILL, by the kernel's OOM killer or by another process"],
    [{ execMainCode: 2, execMainStatus: 9, result: 'oom-kill' }, "killed by SIGKILL, by the kernel's OOM killer"],
    [{ execMainCode: 3, execMainStatus: 6, result: 'core-dump' }, 'killed by SIGABRT'],
    [{ execMainCode: 1, execMainStatus: 9, result: 'exit-code' }, 'last exit code 9'],
    [{ execMainCode: 1, execMainStatus: 1, result: 'start-limit-hit' }, 'last exit code 1'],
  ])('reads it from the unit without a journal: %j', (state, cause) => {
    const { state: unit } = fakeUnit({ activeState: 'activating', subState: 'auto-restart', ...state });
    expect(explainKubeletFailure(unit, null).cause).toContain(cause);
  });
});

describe('lastKubeletError', () => {
  it.each([
    ['the error of the last run', run(7, '"A" err="1"') + run(8, '"B" err="2"'), 'B: 2'],
    ['of the run before, if the last one has logged none', run(7, '"A" err="1"') + STARTED, 'A: 1'],
    ['no message that every start prints', run(8, BOOTSTRAP, OLD_RUNTIME), null],
    ['none in an empty journal', '', null],
  ])('%s', (_, journal, error) => {
    expect(lastKubeletError(journal)).toBe(error);
  });
});
