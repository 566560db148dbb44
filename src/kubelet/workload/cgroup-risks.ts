import type { JsonObject } from '../../base/json.ts';
import { combineFacts, defineFact, type Fact, mapFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { listAt, textAt, valueAt } from '../documents/values.ts';
import { type CgroupDriver, runtimeCgroupDriver } from '../facts/cgroup-driver.ts';
import { affects, exit, type PodRisk } from './pod-risk.ts';
import type { CgroupFacts, RiskInput } from './risk-input.ts';

const ROOT = '/sys/fs/cgroup';
const ENFORCE = 'enforceNodeAllocatable';
const OWNERS = ['system', 'kube'] as const;

/** The fields on which `reservedCgroupRisks` depends. */
export const CGROUP_FIELDS = [ENFORCE, 'systemReservedCgroup', 'kubeReservedCgroup', 'cgroupRoot', 'cgroupDriver'] as const;

/**
 * The controllers in which the kubelet looks for a cgroup, if the host has them.
 * @see kubernetes/kubernetes pkg/kubelet/cm/cgroup_v1_manager_linux.go Validate, cgroup_v2_manager_linux.go
 *   getSupportedUnifiedControllers (1.36)
 */
const CONTROLLERS = {
  1: ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids', 'hugetlb'],
  2: ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'],
} as const;

/** Cgroups that a kubelet does not create, by the field that names them. */
function requiredCgroups(config: JsonObject): readonly { readonly field: string; readonly name: string; readonly why: string }[] {
  const enforced = listAt(config, ENFORCE).map(String);
  const reserved = OWNERS.flatMap((owner) => {
    const kind = enforced.find((one) => one === `${owner}-reserved` || one === `${owner}-reserved-compressible`);
    const field = `${owner}ReservedCgroup`;
    return kind === undefined ? [] : [{ field, name: textAt(config, field), why: `${ENFORCE} has ${kind}` }];
  });
  const root = { field: 'cgroupRoot', name: textAt(config, 'cgroupRoot'), why: 'all pods belong below it' };
  return [...reserved, ...(valueAt(config, 'cgroupsPerQOS') === false ? [] : [root])].filter(({ name }) => name !== '');
}

/**
 * The path of a cgroup below /sys/fs/cgroup; null: the kubelet panics with this name. The systemd driver takes only the
 * last part of a path, as the name of a slice: `/system.slice/kubelet.service` means `/kubelet.service.slice`.
 * @see kubernetes/kubernetes pkg/kubelet/cm/cgroup_manager_linux.go ParseSystemdToCgroupName, ToSystemd;
 *   opencontainers/cgroups systemd ExpandSlice (kubelet 1.20 to 1.36)
 */
export function cgroupPath(name: string, driver: CgroupDriver, field = ''): string | null {
  const parts = name.split('/').filter((part) => part !== '');
  if (driver === 'cgroupfs') return `/${parts.join('/')}`;
  // Unlike the other names, the root is always read as a path.
  if (field === 'cgroupRoot') return expandSlice(parts.map((part) => part.replaceAll('-', '_')).join('-'));
  const last = parts.at(-1) ?? '/';
  return expandSlice(last.endsWith('.slice') ? last.slice(0, -'.slice'.length) : last);
}

function expandSlice(name: string): string | null {
  if (name === '' || name === '-') return '/';
  const parts = name.split('-');
  if (name === '/' || parts.includes('')) return null;
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join('-')}.slice`).join('');
}

/** Reads the cgroups that a kubelet with this configuration would need, for both drivers. */
export function requiredCgroupFacts(config: JsonObject): Fact<CgroupFacts | null> {
  const names = requiredCgroups(config);
  if (names.length === 0) return defineFact({}, () => null);
  const drivers: readonly CgroupDriver[] = ['systemd', 'cgroupfs'];
  const found = names.flatMap(({ name, field }) => drivers.flatMap((driver) => cgroupPath(name, driver, field) ?? []));
  const paths = [...new Set(['/', ...found])].map((path) => (path === '/' ? '' : path));
  const all = combineFacts({
    v2: fileFacts(paths.map((path) => `${ROOT}${path}/cgroup.controllers`)),
    v1: fileFacts(CONTROLLERS[1].flatMap((controller) => paths.map((path) => `${ROOT}/${controller}${path}`))),
    driver: runtimeCgroupDriver(textAt(config, 'containerRuntimeEndpoint')),
  });
  return mapFact(all, ({ v1, v2, driver }) => {
    const version = v2.get(`${ROOT}/cgroup.controllers`) == null ? 1 : 2;
    const controllersOf = (path: string): readonly string[] | null => {
      const unified = v2.get(`${ROOT}${path}/cgroup.controllers`)?.content?.trim().split(/\s+/);
      if (version === 2) return unified === undefined ? null : CONTROLLERS[2].filter((one) => unified.includes(one));
      const present = CONTROLLERS[1].filter((one) => v1.get(`${ROOT}/${one}${path}`) != null);
      return present.length === 0 ? null : present;
    };
    const controllers = Object.fromEntries(paths.map((path) => [path === '' ? '/' : path, controllersOf(path)]));
    return controllers['/'] === null ? null : { version, driver: driver?.driver ?? null, controllers };
  });
}

/**
 * Cgroups that a kubelet would look for in vain: it exits some seconds after its first healthy answer.
 * @see kubernetes/kubernetes pkg/kubelet/cm/node_container_manager_linux.go enforceExistingCgroup,
 *   container_manager_linux.go NewContainerManager (1.20 to 1.36)
 */
export function reservedCgroupRisks(input: RiskInput): readonly PodRisk[] {
  const { after, host } = input;
  if (host?.cgroups == null) return [];
  const driver = host.cgroups.driver ?? (textAt(after, 'cgroupDriver') === 'systemd' ? 'systemd' : 'cgroupfs');
  const facts = { ...host.cgroups, driver };
  return requiredCgroups(after).flatMap(({ field, name, why }): readonly PodRisk[] => {
    if (!affects(input, [field, 'cgroupDriver', ...(field === 'cgroupRoot' ? [] : [ENFORCE])])) return [];
    const path = cgroupPath(name, driver, field);
    if (path === null) return [exit(field, `${field} ${name} is not a valid name of a systemd slice: the kubelet would exit`)];
    const found = facts.controllers[path];
    const missing = (facts.controllers['/'] ?? []).filter((one) => found?.includes(one) !== true);
    if (path === '/' || found === undefined || missing.length === 0) return [];
    // Before it looks for them, a kubelet with cgroup v2 gives all controllers to the cgroups next to its own.
    if (facts.version === 2 && found !== null && field !== 'cgroupRoot' && isTop(path)) return [];
    const lacks =
      found === null
        ? 'does not exist on the host'
        : `lacks the ${missing.length === 1 ? 'controller' : 'controllers'} ${missing.join(', ')}`;
    const about = `${field} ${name}: the cgroup ${path} (cgroup driver ${driver}) ${lacks}, but ${why}: the kubelet would exit`;
    const start = driver === 'systemd' && found === null ? [`systemctl start ${path.slice(path.lastIndexOf('/') + 1)}`] : [];
    return [exit(field, about, `run after each boot before the kubelet: ${[...start, ...commands(path, facts, missing)].join(' && ')}`)];
  });
}

/** What creates a cgroup with these controllers, after the start of its slice. */
function commands(path: string, { version, controllers, driver }: CgroupFacts, missing: readonly string[]): readonly string[] {
  if (version === 1) return [`mkdir -p ${ROOT}/${missing.length === 1 ? missing[0] : `{${missing.join(',')}}`}${path}`];
  const create = controllers[path] === null && driver !== 'systemd' ? [`mkdir -p ${ROOT}${path}`] : [];
  const names = missing.map((one) => `+${one}`).join(' ');
  return isTop(path) ? create : [...create, `echo '${names}' > ${ROOT}${path.slice(0, path.lastIndexOf('/'))}/cgroup.subtree_control`];
}

function isTop(path: string): boolean {
  return path.lastIndexOf('/') === 0;
}
