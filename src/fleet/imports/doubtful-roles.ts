import type { Problem } from '../../base/errors.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import { groupWithoutRole, noControlPlane } from '../file/fleet-problems.ts';
import type { ResolvedFleet } from '../file/model.ts';
import { resemblesControlPlanes } from './group-roles.ts';

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
