import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { parseQuantity } from '../../base/text/quantity.ts';
import type { Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { KUBELET_DIR } from '../../kube/well-known.ts';
import { textAt, valueAt } from '../documents/values.ts';
import { isCorruptState } from './state-checksum.ts';

/** State files of managers below the kubelet's root directory, by the field of their policy. */
export const MANAGER_STATES = { cpuManagerPolicy: 'cpu_manager_state', memoryManagerPolicy: 'memory_manager_state' } as const;

type PolicyField = keyof typeof MANAGER_STATES;

/** The root directory of a kubelet with these flags. */
export function rootDirOf(flags: readonly { readonly name: string; readonly value: string }[]): string {
  return flags.findLast(({ name }) => name === 'root-dir')?.value ?? KUBELET_DIR;
}

/** The paths of the state files. */
export function managerStatePaths(rootDir: string): readonly string[] {
  return Object.values(MANAGER_STATES).map((file) => `${rootDir}/${file}`);
}

/** The content of the existing state files by path. */
export function managerStateTexts(rootDir: string): Fact<ReadonlyMap<string, string>> {
  const { queries, parse } = fileFacts(managerStatePaths(rootDir));
  return {
    queries,
    parse: (answers, parseText) =>
      new Map(
        [...parse(answers, parseText)].flatMap(([path, file]) => (file?.content === undefined ? [] : [[path, file.content] as const])),
      ),
  };
}

/** A state file with which the kubelet would exit. */
interface OutdatedState {
  readonly path: string;
  readonly content: string;
  /** A clause. */
  readonly reason: string;
}

/**
 * The state files that contradict a new configuration: the kubelet exits until the file is deleted. It then creates
 * the file again, and assigns CPUs and memory to its pods again.
 * @param before the effective configuration of the kubelet that wrote the files, with defaults; null: unknown
 * @param after the effective configuration of the next kubelet
 * @param found the content of the existing state files by path; others are not checked
 * @see kubernetes/kubernetes pkg/kubelet/cm/cpumanager/state/state_checkpoint.go restoreState, policy_static.go
 *   validateState; pkg/kubelet/cm/memorymanager/state/state_checkpoint.go, policy_static.go (1.36)
 */
export function outdatedManagerStates(
  { before, after }: { readonly before: JsonObject | null; readonly after: JsonObject },
  rootDir: string,
  found: ReadonlyMap<string, string>,
): readonly OutdatedState[] {
  return (Object.entries(MANAGER_STATES) as [PolicyField, string][]).flatMap(([field, file]) => {
    const path = `${rootDir}/${file}`;
    const content = found.get(path);
    const stored = content === undefined ? null : storedPolicy(content);
    if (content === undefined || stored === null) return [];
    const policy = textAt(after, field);
    if (policy !== '' && policy !== stored) return [{ path, content, reason: `written with ${field} ${stored}, not ${policy}` }];
    const changed = before === null ? undefined : RESERVATIONS[field].find(({ read }) => !jsonEqual(read(before), read(after)));
    return policy.toLowerCase() !== 'static' || changed === undefined
      ? []
      : [{ path, content, reason: `written with another ${changed.name}` }];
  });
}

/** A state file with which the next kubelet would exit, also after a rollback. */
export interface UnusableState {
  /** A sentence without its full stop. */
  readonly message: string;
  readonly hint: string;
}

/**
 * The state files with which the next kubelet exits, and which no plan removes because containers may run on the CPUs
 * that they assign: corrupt files, and outdated files for a program that may not remove them.
 * @param change as of `outdatedManagerStates`
 */
export function unusableManagerStates(
  change: Parameters<typeof outdatedManagerStates>[0],
  rootDir: string,
  found: ReadonlyMap<string, string>,
  { removesOutdated }: { readonly removesOutdated: boolean },
): readonly UnusableState[] {
  const { after } = change;
  const outdated = outdatedManagerStates(change, rootDir, found);
  // The checksum of a file with assignments of pods is unknown.
  const isKnown = valueAt(after, 'featureGates.PodLevelResourceManagers') !== true && valueAt(after, 'featureGates.AllAlpha') !== true;
  return [...found].flatMap(([path, content]): readonly UnusableState[] => {
    const reason = outdated.find((one) => one.path === path)?.reason;
    if (reason === undefined ? !(isKnown && isCorruptState(content)) : removesOutdated) return [];
    return [
      {
        message: `the state file ${path} ${reason === undefined ? 'is corrupt' : `was ${reason}`}: the kubelet would exit at its next start`,
        hint: `Drain the node if containers have exclusive CPUs or memory, then run systemctl stop kubelet, rm ${path} and systemctl start kubelet`,
      },
    ];
  });
}

/** The policy in a state file; null: unreadable. */
export function storedPolicy(content: string): string | null {
  try {
    const state: unknown = JSON.parse(content);
    return isJsonObject(state) && typeof state.policyName === 'string' ? state.policyName : null;
  } catch {
    return null;
  }
}

interface Reservation {
  readonly name: string;
  read(config: JsonObject): Json;
}

/** Parts of a configuration that a static policy compares with its state file. */
const RESERVATIONS: Readonly<Record<PolicyField, readonly Reservation[]>> = {
  cpuManagerPolicy: [
    { name: 'reservedSystemCPUs', read: (config) => textAt(config, 'reservedSystemCPUs') },
    { name: 'CPU reservation (kubeReserved, systemReserved)', read: reservedCpus },
    { name: 'strict-cpu-reservation', read: (config) => valueAt(config, 'cpuManagerPolicyOptions.strict-cpu-reservation') === 'true' },
  ],
  memoryManagerPolicy: [{ name: 'reservedMemory', read: (config) => valueAt(config, 'reservedMemory') ?? [] }],
};

/** The number of reserved CPUs without reservedSystemCPUs, which replaces it: rounded up, as the policy does. */
function reservedCpus(config: JsonObject): number {
  if (textAt(config, 'reservedSystemCPUs') !== '') return 0;
  const amounts = ['kubeReserved', 'systemReserved'].map((field) => {
    const reserved = valueAt(config, field);
    const quantity = isJsonObject(reserved) && reserved.cpu !== undefined ? parseQuantity(String(reserved.cpu)) : null;
    return quantity === null ? 0 : Number(quantity.unscaled) * 10 ** -quantity.scale;
  });
  // Sums of milli-CPUs, as of 100m and 200m, are not exact.
  return Math.ceil(Number(amounts.reduce((sum, amount) => sum + amount, 0).toFixed(6)));
}
