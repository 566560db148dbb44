import { formatIp, type IpAddress, isSameAddress } from '../../base/text/ip.ts';
import { revealText } from '../../base/text/secret.ts';
import type { ListeningPorts } from '../../host/facts/listening-ports.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { isTaken } from '../control-plane/listen-addresses.ts';
import type { ControlPlaneHost } from '../facts/control-plane-host.ts';
import { type Check, error, type Finding, runChecks, warning } from './check.ts';
import { clockFindings } from './host-clock.ts';

export interface ControlPlaneCheckInput {
  readonly host: ControlPlaneHost;
  /** TCP ports in use; null: not known. */
  readonly ports: ListeningPorts | null;
  /**
   * The addresses on which ports must be free, of `listenAddresses`; a port that is missing must be free on all addresses.
   * Before kubeadm 1.37: none.
   */
  readonly listenAddresses: ReadonlyMap<number, readonly IpAddress[]>;
  readonly addresses: readonly string[] | null;
  readonly advertiseAddress: string;
  readonly bindPort: number;
  /** Data directory of local etcd; null with external etcd. */
  readonly etcdDataDir: string | null;
  /** The desired static Pod manifests. */
  readonly manifests: readonly DesiredFile[];
  /** Required client files for external etcd. */
  readonly etcdClientFiles: readonly string[];
  /** Unix milliseconds on the local host. */
  readonly now: number;
}

const CPUS = 2;
const MEMORY_MB = 1700;

/**
 * The preflight checks of kubeadm 1.36 for control planes (init and join --control-plane), with kubeadm's
 * ids, and the additional checks `AdvertiseAddress` and `HostClock`. Manifests, ports and data of an
 * interrupted earlier run are accepted.
 * @see kubeadm 1.36 preflight InitNodeChecks; the addresses of ports: release notes of 1.37 (#138250)
 */
export function controlPlaneFindings(input: ControlPlaneCheckInput): readonly Finding[] {
  return runChecks(CHECKS, input);
}

/**
 * Whether the existing static Pod manifest equals the desired one: then its ports are in use by the component itself.
 */
function isOurs({ host, manifests }: ControlPlaneCheckInput, name: string): boolean {
  const desired = manifests.find(({ path }) => path.endsWith(`/${name}.yaml`));
  const found = desired === undefined ? null : (host.manifests.get(desired.path) ?? null);
  return desired !== undefined && found?.content === revealText(desired.content);
}

const size: Check<ControlPlaneCheckInput> = ({ host: { size: found } }) => [
  found.cpus === null || found.cpus >= CPUS
    ? null
    : error(
        'NumCPU',
        `the host has ${found.cpus} CPU${found.cpus === 1 ? '' : 's'}; a control plane needs ${CPUS}`,
        'Add CPUs, or use another host',
      ),
  found.memoryBytes === null || found.memoryBytes >= MEMORY_MB * 1024 * 1024
    ? null
    : error(
        'Mem',
        `the host has ${Math.floor(found.memoryBytes / 1024 / 1024)} MB of memory; a control plane needs ${MEMORY_MB} MB`,
        'Add memory, or use another host',
      ),
];

const firewall: Check<ControlPlaneCheckInput> = ({ host, bindPort }) => [
  host.firewalldActive
    ? warning('Firewalld', `firewalld is active: open ports ${bindPort} and 10250, and 2379-2380 (etcd) between control planes`)
    : null,
];

/** Required ports, and the manifest of the component that uses each. */
const listeners = ({ bindPort, etcdDataDir }: ControlPlaneCheckInput): readonly (readonly [number, string])[] => [
  [bindPort, 'kube-apiserver'],
  [10259, 'kube-scheduler'],
  [10257, 'kube-controller-manager'],
  ...(etcdDataDir === null
    ? []
    : ([
        [2379, 'etcd'],
        [2380, 'etcd'],
      ] as const)),
];

const ports: Check<ControlPlaneCheckInput> = (input) =>
  listeners(input).map(([port, name]) => {
    const wanted = input.listenAddresses.get(port);
    if (!isTaken(input.ports?.get(port) ?? [], wanted) || isOurs(input, name)) return null;
    const at = wanted === undefined ? '' : ` on ${wanted.map(formatIp).join(' and ')}`;
    return error(
      `Port-${port}`,
      `port ${port}${at}, which ${name} needs, is in use`,
      `Stop the process that listens on this port (ss -ltnp 'sport = :${port}'), or run kubeletadm reset first`,
    );
  });

const manifests: Check<ControlPlaneCheckInput> = (input) =>
  [...input.host.manifests].map(([path, found]) => {
    const name = path.replace(/^.*\/|\.yaml$/g, '');
    if (found === null || isOurs(input, name)) return null;
    const isDesired = input.manifests.some((desired) => desired.path === path);
    if (!isDesired && name !== 'etcd') return null;
    const message = isDesired ? `${path} exists and differs from the desired manifest` : `${path} exists, but external etcd is configured`;
    return error(`FileAvailable-${path.replaceAll('/', '-')}`, message, 'Run kubeletadm reset first');
  });

const etcdData: Check<ControlPlaneCheckInput> = (input) => {
  const { host, etcdDataDir } = input;
  if (etcdDataDir === null || host.etcdData === null || host.etcdData.length === 0 || isOurs(input, 'etcd')) return [];
  const id = `DirAvailable-${etcdDataDir.replaceAll('/', '-')}` as const;
  const hasManifest = [...host.manifests].some(([path, found]) => path.endsWith('/etcd.yaml') && found !== null);
  if (hasManifest || input.ports === null || input.ports.has(2379))
    return [
      error(
        id,
        `${etcdDataDir} contains the data of an etcd member of this host, which may be running`,
        'Keep the data. To remove this host from its cluster, run kubeletadm reset',
      ),
    ];
  return [
    error(
      id,
      `${etcdDataDir} is not empty: it contains the data of another etcd member`,
      `Run kubeletadm reset first, or remove the content of the directory (rm -r ${etcdDataDir}/*)`,
    ),
  ];
};

const etcdClient: Check<ControlPlaneCheckInput> = ({ host, etcdClientFiles }) =>
  etcdClientFiles.map((path) =>
    (host.files.get(path) ?? null) === null
      ? error('ExternalEtcdClientCertificates', `${path} does not exist`, 'Copy the client certificate of the external etcd to the host')
      : null,
  );

const address: Check<ControlPlaneCheckInput> = ({ addresses, advertiseAddress }) => [
  addresses === null || addresses.some((each) => isSameAddress(each, advertiseAddress))
    ? null
    : warning(
        'AdvertiseAddress',
        `the advertise address ${advertiseAddress} is not an address of this host (its addresses: ${addresses.join(', ') || 'none'})`,
      ),
];

const clock: Check<ControlPlaneCheckInput> = ({ host, now }) => clockFindings(host.clock, now);

const CHECKS: readonly Check<ControlPlaneCheckInput>[] = [size, firewall, ports, manifests, etcdData, etcdClient, address, clock];
