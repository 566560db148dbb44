import { formatProblem } from '../../../src/base/errors.ts';
import type { ImportedInventory } from '../../../src/fleet/file/entries.ts';
import { loadFleet } from '../../../src/fleet/file/load.ts';
import type { ResolvedFleet, ResolvedHost } from '../../../src/fleet/file/model.ts';
import { resolveFleet } from '../../../src/fleet/file/resolve.ts';

/** Two lines: the body of a test begins on line 3. */
export const HEADER = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n';

/** The resolved fleet of a file without its header, with the problems. */
export function resolve(body: string, imports: readonly ImportedInventory[] = []): { fleet: ResolvedFleet; problems: readonly string[] } {
  const { fleet, problems } = resolveFleet(loadFleet(`${HEADER}${body}`, 'fleet.yaml'), imports);
  return { fleet, problems: problems.map(formatProblem) };
}

/** The resolved fleet of a file without problems. */
export function resolved(body: string, imports: readonly ImportedInventory[] = []): ResolvedFleet {
  const { fleet, problems } = resolve(body, imports);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return fleet;
}

/** A host of the fleet by name. */
export function hostOf(fleet: ResolvedFleet, name: string): ResolvedHost {
  const host = fleet.hosts.find((each) => each.name === name);
  if (host === undefined) throw new Error(`host ${name} does not exist`);
  return host;
}
