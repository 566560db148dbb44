import { localAddresses } from '../../host/facts/addresses.ts';
import { combineFacts, defineFact, type Fact, mapFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { listeningPorts } from '../../host/facts/listening-ports.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import { unitActive, unitState } from '../../host/facts/unit.ts';
import { UNIT_FILE_PATHS } from '../../host/systemd/kubelet-unit-paths.ts';
import { BOOTSTRAP_CONF, CA_CERT, KUBELET_CONF } from '../../kube/well-known.ts';
import { CGROUP_VERSION, cgroupVersionOf, type RuntimeCgroupDriver, runtimeCgroupDriver, runtimeConfigSupport } from './cgroup-driver.ts';
import { type CriState, criSockets, criState, KNOWN_CRI_SOCKETS } from './cri-socket.ts';
import { clientIdentity } from './kubelet-identity.ts';
import { kubeletCommandLine } from './kubelet-process.ts';
import { kubeletBinary } from './kubelet-version.ts';
import { CONFIG_DROP_IN_NAMES } from './own-config-drop-ins.ts';

/** Commands required by kubeadm 1.36 on every node; conntrack only up to 1.31. */
const REQUIRED_COMMANDS = ['losetup', 'mount', 'cp', 'conntrack'] as const;

/** Facts for kubeadm's node preflight checks, in addition to files. Null: unknown (an image, another system). */
export const nodeChecks = defineFact(
  {
    swaps: { kind: 'file', path: '/proc/swaps' },
    cgroup: CGROUP_VERSION,
    kernel: { kind: 'command', argv: ['uname', '-r'] },
    forward4: { kind: 'file', path: '/proc/sys/net/ipv4/ip_forward' },
    forward6: { kind: 'file', path: '/proc/sys/net/ipv6/conf/default/forwarding' },
    commands: {
      kind: 'command',
      argv: ['sh', '-c', `for c in ${REQUIRED_COMMANDS.join(' ')}; do command -v $c >/dev/null || echo $c; done`],
    },
  },
  ({ swaps, cgroup, kernel, forward4, forward6, commands }) => ({
    swaps: swaps?.content === undefined ? null : parseSwaps(swaps.content),
    cgroupVersion: cgroupVersionOf(cgroup),
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

/** All facts about a host. `criStates`, `cgroupDrivers` and `runtimeConfig` are keyed by CRI socket. */
export type HostFacts = ReturnType<(typeof BASE)['parse']> & {
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
  const bySocket = <T>(factOf: (socket: string) => Fact<T>): Fact<ReadonlyMap<string, T>> =>
    mapFact(
      combineFacts(Object.fromEntries(candidates.map((socket) => [socket, factOf(socket)]))),
      (found) => new Map(Object.entries(found)),
    );
  const all = combineFacts({
    base: BASE,
    sockets: criSockets(criSocket),
    criStates: bySocket(criState),
    cgroupDrivers: bySocket(runtimeCgroupDriver),
    runtimeConfig: bySocket(runtimeConfigSupport),
    next: NEXT_QUERIES,
  });
  return mapFact(all, ({ base, next: _, ...ofSockets }) => ({ ...base, ...ofSockets }));
}
