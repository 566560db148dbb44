import type { Problem } from '../../base/errors.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { ImportedInventory } from '../file/entries.ts';
import { groupWithoutRole, noControlPlane } from '../file/fleet-problems.ts';
import type { ResolvedFleet } from '../file/model.ts';

/** Words of Kubernetes in front of a role: `kube_`, `k8s-`. */
const PREFIX = /^(?:kube(?:rnetes)?|k8s|k3s|k0s|rke2?)(?:cluster)?/;
const ORDER = '(?:first|initial|primary|main|other|secondary|additional|extra|remaining)?';
const MACHINE = '(?:node|host|machine|instance|vm)?s?';
const CONTROL_PLANE = new RegExp(`^${ORDER}(?:controlplane|controller|master|cp)s?${ORDER}(?:server)?${MACHINE}$`);
const SERVER = new RegExp(`^${ORDER}servers?${ORDER}${MACHINE}$`);
const WORKER = new RegExp(`^(?:agent|worker|node|minion)s?${MACHINE}$`);
const BASTION = /^(?:ssh)?(?:bastion|jumphost|jumpbox|jumpserver)s?(?:host|node|server)?s?$/;
const ALL_NODES = /^(?:kube(?:rnetes)?|k8s|k3s|k0s|rke2?)cluster$/;

/**
 * The role of the hosts of a group by its name, regardless of case, separators, plural and prefix. `server` and `servers`
 * without a prefix mean control planes only if another group has the workers.
 * @returns null: the name means no role
 */
export function roleOfGroup(group: string, { groups, hosts }: ImportedInventory): 'control-plane' | 'bastion' | null {
  const name = plainName(group);
  if (BASTION.test(name)) return 'bastion';
  const role = name.replace(PREFIX, '');
  const hasPrefix = role !== name;
  if (CONTROL_PLANE.test(role) || (hasPrefix && /^control(?:node)?s?$/.test(role))) return 'control-plane';
  if (!SERVER.test(role)) return null;
  if (hasPrefix) return 'control-plane';
  const workers = groups.filter((one) => WORKER.test(plainName(one).replace(PREFIX, '')));
  const isShared = hosts.some((host) => host.groups.includes(group) && host.groups.some((one) => workers.includes(one)));
  return workers.length > 0 && !isShared ? 'control-plane' : null;
}

/** Whether a reader may take the hosts of a group for control planes, e.g. `ha_masters_and_etcd`. */
function resemblesControlPlanes(group: string): boolean {
  const name = plainName(group);
  return /master|control/.test(name) || CONTROL_PLANE.test(name.replace(PREFIX, ''));
}

/** Groups of all nodes: other hosts are not nodes, for example dedicated etcd members. */
export function isGroupOfAllNodes(group: string): boolean {
  return ALL_NODES.test(plainName(group));
}

function plainName(group: string): string {
  return group.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Warnings about imported hosts that may be control planes, but are workers: `apply` would treat them as such. */
export function doubtfulRoles({ hosts, groups }: ResolvedFleet): readonly Problem[] {
  const doubtful = groups.filter(resemblesControlPlanes).flatMap((group) => {
    const workers = hosts.filter(({ role, groups: own }) => role === 'worker' && own.includes(group)).map(({ name }) => name);
    if (workers.length === 0) return [];
    const named = workers.length === 1 ? `host ${workers[0]} is a worker` : `hosts ${namesText(workers)} are workers`;
    return [groupWithoutRole(group, named)];
  });
  const hasNone = hosts.length > 0 && hosts.every(({ role }) => role === 'worker');
  return [...(hasNone ? [noControlPlane(hosts.length, groups)] : []), ...doubtful];
}
