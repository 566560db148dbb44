import { localAddresses } from '../../host/facts/addresses.ts';
import { combineFacts, defineFact, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { listeningPorts } from '../../host/facts/listening-ports.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import { unitActive, unitState } from '../../host/facts/unit.ts';
import { UNIT_FILE_PATHS } from '../../host/systemd/kubelet-unit-paths.ts';
import { BOOTSTRAP_CONF, CA_CERT, KUBELET_CONF } from '../../kube/well-known.ts';
import { type RuntimeCgroupDriver, runtimeCgroupDriver, runtimeConfigSupport } from './cgroup-driver.ts';
import { type CriState, criSockets, criState, KNOWN_CRI_SOCKETS } from './cri-socket.ts';
import { clientIdentity } from './kubelet-identity.ts';
import { kubeletCommandLine } from './kubelet-process.ts';
import { kubeletBinary } from './kubelet-version.ts';
import { CONFIG_DROP_IN_NAMES } from './own-config-drop-ins.ts';

/**
 * Facts for kubeadm's node preflight checks, in addition to files. Null: unknown (an image, another system).
 */
interface NodeChecks {
  /** Names of swap areas in use. */
  readonly swaps: readonly string[] | null;
  readonly cgroupVersion: 1 | 2 | null;
  readonly kernelRelease: string | null;
  readonly ipv4Forward: boolean | null;
  readonly ipv6Forward: boolean | null;
  /** Commands required by kubeadm that are missing on PATH. */
  readonly missingCommands: readonly string[] | null;
}

/** Commands required by kubeadm 1.36 on every node; conntrack only up to 1.31. */
const REQUIRED_COMMANDS = ['losetup', 'mount', 'cp', 'conntrack'] as const;

export const nodeChecks = defineFact(
  {
    swaps: { kind: 'file', path: '/proc/swaps' },
    cgroup: { kind: 'command', argv: ['stat', '-f', '-c', '%T', '/sys/fs/cgroup'] },
    kernel: { kind: 'command', argv: ['uname', '-r'] },
    forward4: { kind: 'file', path: '/proc/sys/net/ipv4/ip_forward' },
    forward6: { kind: 'file', path: '/proc/sys/net/ipv6/conf/default/forwarding' },
    commands: {
      kind: 'command',
      argv: ['sh', '-c', `for c in ${REQUIRED_COMMANDS.join(' ')}; do command -v $c >/dev/null || echo $c; done`],
    },
  },
  ({ swaps, cgroup, kernel, forward4, forward6, commands }): NodeChecks => ({
    swaps: swaps?.content === undefined ? null : parseSwaps(swaps.content),
    cgroupVersion: cgroup.exitCode === 0 ? (cgroup.stdout.trim() === 'cgroup2fs' ? 2 : 1) : null,
    kernelRelease: kernel.exitCode === 0 ? kernel.stdout.trim() : null,
    ipv4Forward: forward4?.content === undefined ? null : forward4.content.trim() === '1',
    ipv6Forward: forward6?.content === undefined ? null : forward6.content.trim() === '1',
    missingCommands: commands.exitCode === 0 ? commands.stdout.split('\n').filter(Boolean) : null,
  }),
);

/** Swap areas in /proc/swaps, without its header line. */
export function parseSwaps(text: string): readonly string[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.trim().split(/\s+/)[0] || []);
}

/** Files that an earlier run of kubeletadm or kubeadm may have left. */
const KUBERNETES_FILES = [KUBELET_CONF, BOOTSTRAP_CONF, CA_CERT];

const BASE = combineFacts({
  os: operatingSystem,
  init: initSystem,
  kubelet: kubeletBinary,
  unit: unitState('kubelet'),
  resolvedActive: unitActive('systemd-resolved'),
  addresses: localAddresses,
  ports: listeningPorts,
  checks: nodeChecks,
  unitFiles: fileFacts(UNIT_FILE_PATHS),
  kubernetesFiles: fileFacts(KUBERNETES_FILES),
  identity: clientIdentity,
});

type FactValue<F> = F extends Fact<infer T> ? T : never;

/** All facts about a host. `criStates`, `cgroupDrivers` and `runtimeConfig` are keyed by CRI socket. */
export type HostFacts = FactValue<typeof BASE> & {
  readonly sockets: readonly string[];
  /** Null: it cannot be asked. */
  readonly criStates: ReadonlyMap<string, CriState | null>;
  readonly cgroupDrivers: ReadonlyMap<string, RuntimeCgroupDriver | null>;
  /** Whether the runtime implements RuntimeConfig; null: unknown. */
  readonly runtimeConfig: ReadonlyMap<string, boolean | null>;
};

/**
 * Reads all facts about a host in one round trip.
 * @param criSocket the configured socket with its scheme; null: the cgroup driver of every socket known to
 *   kubeadm is read
 */
export function hostFacts(criSocket: string | null): Fact<HostFacts> {
  return criSocket === null ? FACTS_OF_KNOWN_SOCKETS : factsWith(criSocket);
}

/** Facts that every plan of a kubelet queries next: in the same round trip they cost nothing. */
const NEXT_QUERIES = combineFacts({ commandLine: kubeletCommandLine, configDropIns: CONFIG_DROP_IN_NAMES });

const FACTS_OF_KNOWN_SOCKETS = factsWith(null);

function factsWith(criSocket: string | null): Fact<HostFacts> {
  const candidates = [...new Set([...(criSocket === null ? [] : [criSocket]), ...KNOWN_CRI_SOCKETS])];
  const drivers = combineFacts(Object.fromEntries(candidates.map((socket) => [socket, runtimeCgroupDriver(socket)])));
  const support = combineFacts(Object.fromEntries(candidates.map((socket) => [socket, runtimeConfigSupport(socket)])));
  const states = combineFacts(Object.fromEntries(candidates.map((socket) => [socket, criState(socket)])));
  const all = combineFacts({ base: BASE, sockets: criSockets(criSocket), states, drivers, support, next: NEXT_QUERIES });
  return {
    queries: all.queries,
    areKeys: true,
    parse: (answers, parseText) => {
      const { base, sockets, states: answered, drivers: found, support: supported } = all.parse(answers, parseText);
      return {
        ...base,
        sockets,
        criStates: new Map(Object.entries(answered)),
        cgroupDrivers: new Map(Object.entries(found)),
        runtimeConfig: new Map(Object.entries(supported)),
      };
    },
  };
}
