import { closestName } from '../../base/text/closest-name.ts';

/** Preflight checks with a fixed name: those of kubeadm 1.36 and of kubeletadm. */
export const FIXED_NAMES = [
  'AdvertiseAddress',
  'BootstrapRBAC',
  'CgroupDriver',
  'ComponentArguments',
  'ConfigOnHost',
  'ConfigOverridden',
  'ContainerRuntimeVersion',
  'ContainersRunning',
  'ControlPlaneNodesReady',
  'CoreDNSMigration',
  'CoreDNSUnsupportedPlugins',
  'CreateJob',
  'CRI',
  'EtcdMember',
  'ExternalEtcdClientCertificates',
  'ExternalEtcdVersion',
  'FieldNotInForce',
  'Firewalld',
  'HostClock',
  'HostKubeconfig',
  'Hostname',
  'HTTPProxy',
  'HTTPProxyCIDR',
  'ImagePull',
  'IsPrivilegedUser',
  'KubeletConfigAccepted',
  'KubeletFlags',
  'KubeletState',
  'KubeletVersion',
  'KubernetesVersion',
  'Mem',
  'NodeDeletable',
  'NodeExists',
  'NodeIP',
  'NodeName',
  'NumCPU',
  'StaticPodManifest',
  'Swap',
  'SystemVerification',
] as const;

/** Checks of earlier versions of kubeadm, whose names are accepted without an effect: kubeadm up to 1.23. */
const FORMER_NAMES: readonly string[] = ['IsDockerSystemdCheck'];

/** Prefixes of checks whose name ends with a path (slashes as dashes), a program, a port or a service. */
const NAME_PREFIXES = ['DirAvailable', 'FileAvailable', 'FileContent', 'FileExisting', 'Port', 'Service'] as const;

/** The name of a preflight check, e.g. `Swap` or `Port-6443`. */
export type CheckName = (typeof FIXED_NAMES)[number] | `${(typeof NAME_PREFIXES)[number]}-${string}`;

const FORMS: readonly string[] = [...FIXED_NAMES, ...NAME_PREFIXES.map((prefix) => `${prefix}-…`)];

/**
 * Validates an item of `--ignore-preflight-errors` or of its field. kubeadm accepts any text, so a
 * misspelled name has no effect.
 * @param name case-insensitive, as in kubeadm; `all` is a name
 * @returns null: a check has this name. Otherwise the message, and the likely name or the list of names
 * @see kubeadm 1.36 cmd/kubeadm/app/preflight, app/phases/upgrade, app/phases/addons/dns: the names of its checks
 */
export function unknownCheck(name: string): { readonly message: string; readonly hint: string } | null {
  const lower = name.toLowerCase();
  if (lower === 'all' || [...FIXED_NAMES, ...FORMER_NAMES].some((known) => known.toLowerCase() === lower)) return null;
  if (NAME_PREFIXES.some((prefix) => lower.startsWith(`${prefix.toLowerCase()}-`) && lower.length > prefix.length + 1)) return null;
  const likely = likelyName(name);
  const hint = likely === null ? `Valid names: all, ${FORMS.join(', ')}` : `Did you mean ${likely}?`;
  return { message: `no preflight check has the name ${JSON.stringify(name)}`, hint };
}

/** The misspelled part is the text before the first dash (`FileExistng-conntrack`) or the letters (`Port6443`). */
function likelyName(name: string): string | null {
  const fixed = closestName(name, ['all', ...FIXED_NAMES]);
  if (fixed !== null) return fixed;
  const [, start = '', rest = ''] = /^([A-Za-z]+)[-_:]?(.*)$/s.exec(name) ?? [];
  const prefix = closestName(start, NAME_PREFIXES);
  return prefix === null ? null : `${prefix}-${rest === '' ? '…' : rest}`;
}
