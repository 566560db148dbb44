import { countPodProcesses, listPods } from '../../host/cri/runtime-commands.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';

/**
 * IDs of the pods known to a container runtime.
 * @returns null: the runtime does not respond
 */
export function podList(criSocket: string): Fact<readonly string[] | null> {
  return defineFact({ list: { kind: 'command', argv: listPods(criSocket) } }, ({ list }) =>
    list.exitCode === 0 ? list.stdout.split('\n').filter(Boolean) : null,
  );
}

/** Number of pod processes, from their cgroups; 0 also if unknown. */
export const podProcesses = defineFact({ count: { kind: 'command', argv: countPodProcesses() } }, ({ count }) =>
  count.exitCode === 0 && /^\d{1,9}$/.test(count.stdout.trim()) ? Number(count.stdout) : 0,
);
