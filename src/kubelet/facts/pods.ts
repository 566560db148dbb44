import { countPodProcesses, listPods } from '../../host/cri/runtime-commands.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';

/**
 * Ids of the pods that a container runtime knows.
 * @returns null: it cannot be asked
 */
export function podList(criSocket: string): Fact<readonly string[] | null> {
  return defineFact({ list: { kind: 'command', argv: listPods(criSocket) } }, ({ list }) =>
    list.exitCode === 0 ? list.stdout.split('\n').filter(Boolean) : null,
  );
}

/** How many processes of pods run, by their cgroups; 0 also where that is not known. */
export const podProcesses = defineFact({ count: { kind: 'command', argv: countPodProcesses() } }, ({ count }) =>
  count.exitCode === 0 && /^\d{1,9}$/.test(count.stdout.trim()) ? Number(count.stdout) : 0,
);
