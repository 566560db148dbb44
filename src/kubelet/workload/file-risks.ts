import { listAt, textAt } from '../documents/values.ts';
import { socketPath } from '../facts/cri-socket.ts';
import { exit, loss, namesOf, type PodRisk, presentPods, warning } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

/** Fields that name a file without which the kubelet exits. */
export const STARTUP_FILES = ['tlsCertFile', 'tlsPrivateKeyFile', 'authentication.x509.clientCAFile'] as const;
/** Fields that name a directory; the kubelet creates it if it does not exist. */
export const DIRECTORIES = ['volumePluginDir', 'podLogsDir'] as const;
/** Fields that name the socket of the container runtime. */
export const SOCKETS = ['containerRuntimeEndpoint', 'imageServiceEndpoint'] as const;

/** The path of `unix:///run/x.sock`; null: no path. */
export function endpointPath(endpoint: string): string | null {
  const path = socketPath(endpoint);
  return path.startsWith('/') ? path : null;
}

/** Files and directories that a configuration names and that the host does not have. */
export function fileRisks(input: RiskInput): readonly PodRisk[] {
  const { after, before, host } = input;
  const files = host?.files ?? {};
  const isNew = (path: string): boolean => before === null || textAt(before, path) !== textAt(after, path);
  const resolvConf = missing('resolvConf');
  return [
    ...(resolvConf === null ? [] : [loss('resolvConf', `${resolvConf}: no sandbox of a new pod could be created`)]),
    ...STARTUP_FILES.flatMap((path) => {
      const why = missing(path);
      return why === null ? [] : [exit(path, `${why}: the kubelet would exit`, 'create the file')];
    }),
    ...SOCKETS.flatMap((path) => {
      const socket = endpointPath(textAt(after, path));
      if (socket === null || !isNew(path) || files[socket] === undefined || files[socket]?.type === 'socket') return [];
      return [loss(path, `${path} ${socket} is not a socket on the host: the kubelet would exit`)];
    }),
    ...DIRECTORIES.flatMap((path) => {
      const type = files[textAt(after, path)]?.type;
      return isNew(path) && type !== undefined && type !== 'directory'
        ? [warning(path, `${path} ${textAt(after, path)} is not a directory`)]
        : [];
    }),
  ];

  /** Null: the file exists, is unknown, or the field is unchanged. */
  function missing(field: string): string | null {
    const path = textAt(after, field);
    const file = files[path];
    if (path === '' || !isNew(field) || file === undefined || file?.type === 'file') return null;
    return file === null ? `${field} ${path} does not exist on the host` : `${field} ${path} is not a file`;
  }
}

/**
 * Running static pods whose manifest the kubelet no longer reads: it stops them.
 * @see kubernetes/kubernetes pkg/kubelet/config/file.go (1.36): a path that does not exist means no pods
 */
export function staticPodRisks(input: RiskInput): readonly PodRisk[] {
  const { after, before, host, pods, nodeName } = input;
  const path = ['staticPodPath', 'staticPodURL'].find((field) => before === null || textAt(before, field) !== textAt(after, field));
  const directory = textAt(after, 'staticPodPath');
  if (path === undefined) return [];
  const manifests = directory === '' ? [] : host?.manifests[directory];
  if (manifests === undefined) return [];
  const kept = new Set((manifests ?? []).map(({ namespace, name }) => `${namespace}/${name}-${nodeName}`));
  const lost = staticPodsOf().filter((name) => !kept.has(name));
  if (lost.length === 0) return [];
  const why =
    path === 'staticPodURL'
      ? 'staticPodURL changes: the kubelet would stop its static pods'
      : directory === ''
        ? 'staticPodPath becomes empty: the kubelet would stop its static pods'
        : manifests === null
          ? `staticPodPath ${directory} does not exist on the host: the kubelet would stop its static pods`
          : `staticPodPath ${directory} has no manifest of running static pods: the kubelet would stop them`;
  return [loss(path, why, lost)];

  function staticPodsOf(): readonly string[] {
    if (pods !== null) return namesOf(presentPods(pods, ({ isStatic }) => isStatic));
    const known = host?.manifests[before === null ? '' : textAt(before, 'staticPodPath')] ?? [];
    return known.map(({ namespace, name }) => `${namespace}/${name}-${nodeName}`).toSorted();
  }
}

/**
 * Sysctls of running pods that the kubelet no longer allows: it rejects these pods at its start
 * (`SysctlForbidden`).
 * @see kubernetes/kubernetes pkg/kubelet/sysctl/allowlist.go (1.36)
 */
export function sysctlRisks({ before, after, pods }: RiskInput): readonly PodRisk[] {
  const path = 'allowedUnsafeSysctls';
  if (before === null) return [];
  const isLost = (name: string): boolean => !SAFE.has(name) && allows(before, name) && !allows(after, name);
  const lost = namesOf(presentPods(pods, ({ sysctls = [] }) => sysctls.some(isLost)));
  return lost.length === 0 ? [] : [loss(path, `${path} no longer allows the sysctls of running pods`, lost)];
}

/** Sysctls that every kubelet allows. */
const SAFE = new Set([
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
]);

function allows(config: RiskInput['after'], name: string): boolean {
  const dotted = name.replaceAll('/', '.');
  return listAt(config, 'allowedUnsafeSysctls').some((entry) => {
    const pattern = String(entry).replaceAll('/', '.');
    return pattern.endsWith('*') ? dotted.startsWith(pattern.slice(0, -1)) : dotted === pattern;
  });
}
