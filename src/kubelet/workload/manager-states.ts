import { isJsonObject, type Json, type JsonObject, jsonEqual, parseJsonObject } from '../../base/json.ts';
import { parseQuantity } from '../../base/text/quantity.ts';
import { type Fact, mapFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { KUBELET_DIR } from '../../kube/well-known.ts';
import { textAt, valueAt } from '../documents/values.ts';
import type { RiskChange } from './risk-input.ts';

/** State files of managers below the kubelet's root directory, by the field of their policy. */
export const MANAGER_STATES = { cpuManagerPolicy: 'cpu_manager_state', memoryManagerPolicy: 'memory_manager_state' } as const;

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
  return mapFact(
    fileFacts(managerStatePaths(rootDir)),
    (files) => new Map([...files].flatMap(([path, file]) => (file?.content === undefined ? [] : [[path, file.content] as const]))),
  );
}

/**
 * The state files that contradict a new configuration: the kubelet exits until the file is deleted. It then creates
 * the file again, and assigns CPUs and memory to its pods again.
 * @param before the effective configuration of the kubelet that wrote the files, with defaults; null: unknown
 * @param after the effective configuration of the next kubelet
 * @param found the content of the existing state files by path; others are not checked
 * @returns `reason`: a clause
 * @see kubernetes/kubernetes pkg/kubelet/cm/cpumanager/state/state_checkpoint.go restoreState, policy_static.go
 *   validateState; pkg/kubelet/cm/memorymanager/state/state_checkpoint.go, policy_static.go (1.36)
 */
export function outdatedManagerStates(
  { before, after }: RiskChange,
  rootDir: string,
  found: ReadonlyMap<string, string>,
): readonly { readonly path: string; readonly content: string; readonly reason: string }[] {
  return (Object.entries(MANAGER_STATES) as [keyof typeof MANAGER_STATES, string][]).flatMap(([field, file]) => {
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

/**
 * The state files with which the next kubelet exits, also after a rollback, and which no plan removes because containers may run on the CPUs
 * that they assign: corrupt files, and outdated files for a program that may not remove them.
 * @param change, rootDir, found as of `outdatedManagerStates`
 * @returns a message for each, as a sentence without its full stop, and its hint
 */
export function unusableManagerStates(
  change: RiskChange,
  rootDir: string,
  found: ReadonlyMap<string, string>,
  { removesOutdated }: { readonly removesOutdated: boolean },
): readonly { readonly message: string; readonly hint: string }[] {
  const { after } = change;
  const outdated = outdatedManagerStates(change, rootDir, found);
  // The checksum of a file with assignments of pods is unknown.
  const isKnown = valueAt(after, 'featureGates.PodLevelResourceManagers') !== true && valueAt(after, 'featureGates.AllAlpha') !== true;
  return [...found].flatMap(([path, content]): readonly { readonly message: string; readonly hint: string }[] => {
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
  const policy = parseJsonObject(content)?.policyName;
  return typeof policy === 'string' ? policy : null;
}

/** Parts of a configuration that a static policy compares with its state file. */
const RESERVATIONS: Readonly<Record<keyof typeof MANAGER_STATES, readonly { readonly name: string; read(config: JsonObject): Json }[]>> = {
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

/** The fields that a kubelet reads from the state file of its CPU manager; the names are case-insensitive. */
const CPU_FIELDS = ['policyName', 'defaultCpuSet', 'entries', 'checksum'];
/** The same of its memory manager, without the entries of pods. */
const MEMORY_FIELDS = ['policyName', 'machineState', 'entries', 'checksum'];

/**
 * Whether a kubelet refuses this state file of its CPU or memory manager as corrupt: it exits at each start ("checkpoint
 * is corrupted") until the file is deleted. The checksum is FNV-1a of the printed Go value, which is known for all files
 * without entries of pods.
 * @see kubernetes/kubernetes pkg/kubelet/checkpointmanager/checksum, pkg/kubelet/cm/cpumanager/state/checkpoint.go,
 *   pkg/kubelet/cm/memorymanager/state/checkpoint.go (1.36)
 */
export function isCorruptState(content: string): boolean {
  const state = parseJsonObject(content);
  if (state === null) return true;
  const checksum = Number(fieldOf(state, 'checksum') ?? 0);
  // Files of old kubelets have none.
  if (checksum === 0) return false;
  const known = 'machineState' in state ? memoryTexts(state) : cpuTexts(state);
  return known !== null && !known.some((text) => fnv1a(text) === checksum);
}

/** The printed values of the versions of a file; null: unknown. */
function cpuTexts(state: JsonObject): readonly string[] | null {
  if (Object.keys(state).some((name) => !CPU_FIELDS.some((field) => field.toLowerCase() === name.toLowerCase()))) return null;
  const entries = fieldOf(state, 'entries') ?? {};
  const pods = isJsonObject(entries) ? Object.entries(entries) : null;
  // Up to 1.17, entries are those of containers.
  if (pods === null || pods.some(([, containers]) => !isJsonObject(containers))) return null;
  const text = (type: string): string =>
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${String(fieldOf(state, 'policyName') ?? '')} DefaultCPUSet:(string)${String(fieldOf(state, 'defaultCpuSet') ?? '')} Entries:(${type})${cpuEntries(entries)} Checksum:(checksum.Checksum)0}`;
  return [text('map[string]map[string]string'), ...(pods.length === 0 ? [text('map[string]string')] : [])];
}

const cpuEntries: Print = (value) => (isJsonObject(value) ? mapText(value, cpuEntries) : String(value));

function memoryTexts(state: JsonObject): readonly string[] | null {
  if (Object.keys(state).some((name) => !MEMORY_FIELDS.includes(name))) return null;
  const { policyName, machineState, entries = {} } = state;
  const nodes = mapText(
    machineState,
    (node) => `<*>${structText(node, NODE_FIELDS)}`,
    (a, b) => Number(a) - Number(b),
  );
  const assigned = mapText(entries, (pod) => mapText(pod, (blocks) => listText(blocks, (block) => structText(block, BLOCK_FIELDS))));
  const maps = `MachineState:(state.NUMANodeMap)${nodes} Entries:(state.ContainerMemoryAssignments)${assigned}`;
  const text = `(*state.MemoryManagerCheckpoint){PolicyName:(string)${String(policyName)} ${maps} Checksum:(checksum.Checksum)0}`;
  return text.includes(UNKNOWN) ? null : [text];
}

/** In place of a value of another form than the kubelet writes. */
const UNKNOWN = '\0';

type Print = (value: Json | undefined) => string;

/** The fields of a Go struct in order: JSON name, Go name, printed type. */
type Fields = readonly (readonly [name: string, label: string, print: Print])[];

const numberText: Print = (value) => (Number.isSafeInteger(value) ? String(value) : UNKNOWN);
const TABLE_FIELDS: Fields = [
  ['total', 'TotalMemSize:(uint64)', numberText],
  ['systemReserved', 'SystemReserved:(uint64)', numberText],
  ['allocatable', 'Allocatable:(uint64)', numberText],
  ['reserved', 'Reserved:(uint64)', numberText],
  ['free', 'Free:(uint64)', numberText],
];
const NODE_FIELDS: Fields = [
  ['numberOfAssignments', 'NumberOfAssignments:(int)', numberText],
  [
    'memoryMap',
    'MemoryMap:(map[v1.ResourceName]*state.MemoryTable)',
    (value) => mapText(value, (table) => `<*>${structText(table, TABLE_FIELDS)}`),
  ],
  ['cells', 'Cells:([]int)', (value) => listText(value, numberText)],
];
const BLOCK_FIELDS: Fields = [
  ['numaAffinity', 'NUMAAffinity:([]int)', (value) => listText(value, numberText)],
  ['type', 'Type:(v1.ResourceName)', stringText],
  ['size', 'Size:(uint64)', numberText],
];

function structText(value: Json | undefined, fields: Fields): string {
  if (!isJsonObject(value) || Object.keys(value).length !== fields.length) return UNKNOWN;
  return `{${fields.map(([name, label, print]) => label + print(value[name])).join(' ')}}`;
}

function listText(value: Json | undefined, print: Print): string {
  return Array.isArray(value) ? `[${value.map(print).join(' ')}]` : UNKNOWN;
}

function stringText(value: Json | undefined): string {
  return typeof value === 'string' ? value : UNKNOWN;
}

function mapText(value: Json | undefined, print: Print, order: (a: string, b: string) => number = (a, b) => (a < b ? -1 : 1)): string {
  if (!isJsonObject(value)) return UNKNOWN;
  const names = Object.keys(value).toSorted(order);
  return `map[${names.map((name) => `${name}:${print(value[name])}`).join(' ')}]`;
}

function fieldOf(state: JsonObject, field: string) {
  return Object.entries(state).find(([name]) => name.toLowerCase() === field.toLowerCase())?.[1];
}

function fnv1a(text: string): number {
  return new TextEncoder().encode(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
}
