import { isJsonObject, type Json, type JsonObject, parseJsonObject } from '../../base/json.ts';

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
