/** The agent checks a kubelet in a trial; a command over SSH checks it before it confirms a change. */
type HealthUser = 'agent' | 'ssh';

/**
 * When a signal ends a change.
 *
 * - `ms`: when it has lasted for this time. `shown`: the text in place of that time, for the documentation
 * - `until`: another wait ends the change, which is named
 * - `notChecked`: the reason
 */
export type SignalLimit = { readonly ms: number; readonly shown?: string } | { readonly until: string } | { readonly notChecked: string };

export interface SignalRow {
  /** What shows the failure, for docs/health.md. */
  readonly observation: string;
  readonly source: string;
  readonly limits: Readonly<Record<HealthUser, SignalLimit>>;
  /** The cause of a failure, as a clause. @param seen what was observed, as a clause */
  readonly message: (seen: string) => string;
}

/** Time in which a restarted kubelet starts containers and creates mirror pods again. */
const RETURN: SignalRow['limits'] = { agent: { ms: 10_000 }, ssh: { ms: 10_000 } };
const AT_ONCE: SignalRow['limits'] = { agent: { ms: 0 }, ssh: { ms: 0 } };
const CONFIRM: SignalLimit = { until: '`--confirm-timeout`' };
const BY_API_SERVER: SignalLimit = { notChecked: 'commands do not use the credential of the node: see `not-reached`' };

/**
 * Exits of a kubelet that end a wait over SSH: for a cause that a restart cannot fix, and in a row for the same cause, known
 * or not. With the 10 s between two starts that the packages' unit sets, these take a minute: longer than a restart of the
 * container runtime or an API server, and well below the five minutes after which pods are deleted from an unreachable node.
 * Units without RestartSec start the kubelet again after 100 ms.
 */
export const CRASHES = { fatal: 2, equal: 6, equalMs: 30_000 };
/**
 * A kubelet must stay healthy this long. Kubelet 1.36 exits 50 to 100 ms after the first answer of healthz if its
 * managers do not start; if its runtime is not ready at once, it starts them in a check that it repeats every five
 * seconds (`updateRuntimeUp`). The time covers two of these checks.
 */
export const STAY_MS = 10_000;
/**
 * A restarted kubelet admits its pods again, and reports rejected ones about two seconds after it reports itself
 * (measured with kubelet 1.36). A probe pod that started is the better evidence: it is admitted last.
 */
export const ADMISSION_MS = 6_000;
/** A probe pod that has not started after this time counts as failed; its image is normally on the node. */
export const PROBE_MS = { agent: 20_000, ssh: 25_000 } satisfies Record<HealthUser, number>;
/** A kubelet tries a failed sandbox again after about ten seconds. */
const PROBE_FAILED_MS = { agent: 15_000, ssh: 5_000 } satisfies Record<HealthUser, number>;
/** For this time the agent does not compare the CPU time of a kubelet: a start, and pods that start with it, need some. */
export const CPU_PERIOD_MS = 180_000;

const asSeen = (seen: string): string => seen;
const seconds = (ms: number): string => `${ms / 1000} s`;

/**
 * The signals of a configuration with which a kubelet fails, in the order of docs/health.md, whose table `npm run reference`
 * writes. Most limits are at most a minute.
 */
export const SIGNALS = {
  crash: {
    observation: 'the kubelet exited',
    source: 'systemd, journal',
    limits: {
      agent: { ms: 0 },
      ssh: {
        until: `${CRASHES.fatal} exits, if the journal shows a cause that a restart cannot fix; ${CRASHES.equal} exits in a row for the same cause, known or not, within ${seconds(CRASHES.equalMs)} or longer; otherwise as \`start\``,
      },
    },
    message: (seen) => `the kubelet exited: ${seen}`,
  },
  start: {
    observation: 'the kubelet does not become healthy',
    source: 'systemd, healthz',
    limits: { agent: { ms: 45_000 }, ssh: { until: '`timeouts.kubeletHealthCheck` (4 min)' } },
    message: asSeen,
  },
  healthz: {
    observation: 'healthz fails after it succeeded with this configuration',
    source: 'healthz',
    limits: { agent: { ms: 5_000 }, ssh: { until: `as \`start\`, because the same process must stay healthy for ${seconds(STAY_MS)}` } },
    message: (seen) => `healthz: ${seen}`,
  },
  configz: {
    observation: 'the kubelet shows a value that differs from the new configuration',
    source: 'configz',
    limits: { agent: { ms: 0 }, ssh: { until: '`--confirm-timeout` (5 min)' } },
    message: (seen) => `the kubelet does not use the new ${seen.includes(', ') ? 'values' : 'value'} of ${seen}`,
  },
  'wrong-payload': {
    observation: 'the kubelet process was started with a different configuration file',
    source: 'command line of the process',
    limits: { agent: { ms: 10_000 }, ssh: { notChecked: 'commands compare the values: see `configz`' } },
    message: (seen) => `the kubelet runs with ${seen}`,
  },
  'not-ready': {
    observation: 'the Node was Ready before and is not Ready now',
    source: 'Node',
    limits: { agent: { ms: 30_000 }, ssh: CONFIRM },
    message: (seen) => `the Node is not Ready: ${seen}`,
  },
  pressure: {
    observation: 'the Node has a pressure condition that it did not have before',
    source: 'Node',
    limits: { agent: { ms: 20_000 }, ssh: { ms: 20_000 } },
    message: (seen) => `the Node has ${seen}`,
  },
  cpu: {
    observation:
      'the kubelet uses on average more than 40% of a CPU since its start, and more than three times as much as before the change, for example with `fileCheckFrequency: 1µs`; not compared in the first three minutes',
    source: '`/proc/PID/stat` (the process and its ended children)',
    // The average since the start of the process is compared.
    limits: { agent: { ms: 0, shown: '3 min' }, ssh: { notChecked: 'commands would have to wait for three minutes' } },
    message: (seen) => `the kubelet uses ${seen}`,
  },
  shutdown: {
    observation:
      'the change set another `shutdownGracePeriod` or `shutdownGracePeriodByPodPriority`, and the kubelet holds no lock of systemd-logind that delays a shutdown; with `--allow-pod-loss` a warning over SSH, and not checked by the agent',
    source: 'systemd-logind, journal',
    // The kubelet takes its lock when it starts its managers, seconds after healthz returns 200.
    limits: { agent: { ms: 30_000 }, ssh: { ms: 30_000 } },
    message: asSeen,
  },
  'locked-out': {
    observation: "the kubelet's API accepted the credential of this node before, and now rejects it",
    source: 'kubelet API',
    // Two answers of the kubelet: a client certificate is checked without the API server.
    limits: { agent: { ms: 5_000 }, ssh: BY_API_SERVER },
    message: (seen) => `the kubelet API no longer accepts the credential of this node: ${seen}`,
  },
  'not-serving': {
    observation:
      "the kubelet's API answered this node before, and now refuses connections, fails the TLS handshake, returns no valid answer or listens only on a loopback address (`address`). An error of the authorization, for which the kubelet needs the API server, is no failure",
    source: 'kubelet API',
    limits: { agent: { ms: 45_000 }, ssh: BY_API_SERVER },
    message: (seen) => `the kubelet API no longer answers: ${seen}`,
  },
  'not-signed': {
    observation:
      "the kubelet's API answered this node before, and now has no signed serving certificate, because the CSR of the kubelet was not approved (`serverTLSBootstrap: true`). The condition `KubeletConfigOk` names the command, `kubeletadm csr approve`; the trial begins after the approval",
    source: 'files of the kubelet',
    // A person approves the CSR for the serving certificate. The trial begins after that.
    limits: { agent: { ms: 300_000 }, ssh: BY_API_SERVER },
    message: (seen) => `the kubelet has no serving certificate: ${seen}`,
  },
  'not-reached': {
    observation:
      'the API server reached the kubelet before (a GET of `nodes/NAME/proxy/configz`), and now does not: the kubelet listens on loopback or on another port, has no signed serving certificate, or rejects the API server. Not required if the credential of the operator may not `get` `nodes/proxy`',
    source: 'API server',
    limits: { agent: { notChecked: 'a node may not use the proxy of the API server: see `not-serving` and `not-signed`' }, ssh: CONFIRM },
    message: (seen) => `the API server no longer reaches the kubelet, so kubectl logs, kubectl exec and metrics fail: ${seen}`,
  },
  'pod-rejected': {
    observation: `the kubelet rejects a pod that ran before (\`OutOfpods\`, \`OutOfcpu\`, \`NodeAffinity\`, ...). Without a probe pod, SSH watches the pods for at least ${seconds(ADMISSION_MS)}`,
    source: 'pod status',
    limits: AT_ONCE,
    message: (seen) => `the kubelet rejected ${seen}`,
  },
  'pod-evicted': {
    observation: 'the kubelet evicts a pod because the node is low on a resource, and had no pressure condition before',
    source: 'pod status',
    limits: AT_ONCE,
    message: (seen) => `the kubelet evicted ${seen}`,
  },
  'static-pod-gone': {
    observation: 'a static pod that ran before is gone; the agent ignores it if the manifest was removed as well',
    source: 'mirror pod, previous `staticPodPath` (agent)',
    limits: RETURN,
    message: (seen) => `the kubelet stopped ${seen}`,
  },
  'pod-not-started': {
    observation:
      'a container of a pod that ran before waits with `RunContainerError`, `CreateContainerError` or a similar reason; checked only if no probe pod is used',
    source: 'pod status',
    limits: RETURN,
    message: (seen) => `the kubelet cannot restart containers of ${seen}`,
  },
  'probe-pod': {
    observation: 'a probe pod cannot be started',
    source: 'pod status, journal (agent)',
    limits: {
      agent: {
        ms: PROBE_FAILED_MS.agent,
        shown: `${seconds(PROBE_FAILED_MS.agent)} after an error; without an error, if the pod does not run ${seconds(PROBE_MS.agent + PROBE_FAILED_MS.agent)} after its creation`,
      },
      ssh: {
        ms: PROBE_FAILED_MS.ssh,
        shown: `${seconds(PROBE_FAILED_MS.ssh)} after its status shows an error; ${seconds(PROBE_MS.ssh + PROBE_FAILED_MS.ssh)} after its creation if it shows none`,
      },
    },
    message: (seen) => `a probe pod cannot be started: ${seen}`,
  },
} satisfies Readonly<Record<string, SignalRow>>;

/** A signal that a kubelet fails with its configuration. */
export type Signal = keyof typeof SIGNALS;

export const SIGNAL_NAMES = Object.keys(SIGNALS) as readonly Signal[];

/** The time that each signal may last; `Infinity`: another wait ends the change, or the signal is not checked. */
export type SignalLimits = Readonly<Record<Signal, number>>;

/** The limits of a user of the table. */
export function limitsOf(user: HealthUser): SignalLimits {
  const limitOf = (name: Signal): number => {
    const limit: SignalLimit = SIGNALS[name].limits[user];
    return 'ms' in limit ? limit.ms : Number.POSITIVE_INFINITY;
  };
  return Object.fromEntries(SIGNAL_NAMES.map((name) => [name, limitOf(name)])) as SignalLimits;
}
