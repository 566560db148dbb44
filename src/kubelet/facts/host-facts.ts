import { localAddresses } from '../../host/facts/addresses.ts';
import { combineFacts, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { listeningPorts } from '../../host/facts/listening-ports.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import { unitActive, unitState } from '../../host/facts/unit.ts';
import { UNIT_FILE_PATHS } from '../../host/systemd/kubelet-unit-paths.ts';
import { BOOTSTRAP_CONF, CA_CERT, KUBELET_CONF } from '../../kube/well-known.ts';
import { type RuntimeCgroupDriver, runtimeCgroupDriver, runtimeConfigSupport } from './cgroup-driver.ts';
import { criSockets, KNOWN_CRI_SOCKETS } from './cri-socket.ts';
import { type CriState, criState } from './cri-state.ts';
import { clientIdentity } from './kubelet-identity.ts';
import { kubeletCommandLine } from './kubelet-process.ts';
import { kubeletBinary } from './kubelet-version.ts';
import { nodeChecks } from './node-checks.ts';
import { CONFIG_DROP_IN_NAMES } from './own-config-drop-ins.ts';

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
