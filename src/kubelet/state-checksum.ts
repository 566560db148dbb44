import { isJsonObject, type JsonObject, parseJsonObject } from '../base/json.ts';

/** The fields that a kubelet reads from the state file of its CPU manager; the names are case-insensitive. */
const CPU_FIELDS = ['policyName', 'defaultCpuSet', 'entries', 'checksum'];

/**
 * Whether a kubelet refuses this state file of its CPU or memory manager as corrupt: it exits at each start ("checkpoint
 * is corrupted") until the file is deleted. The checksum is FNV-1a of the printed Go value, which is known for all files
 * of the CPU manager without entries of pods, and for files of the memory manager without assignments.
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
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${String(fieldOf(state, 'policyName') ?? '')} DefaultCPUSet:(string)${String(fieldOf(state, 'defaultCpuSet') ?? '')} Entries:(${type})${mapText(entries)} Checksum:(checksum.Checksum)0}`;
  return [text('map[string]map[string]string'), ...(pods.length === 0 ? [text('map[string]string')] : [])];
}

function memoryTexts({ policyName, machineState, entries, podEntries }: JsonObject): readonly string[] | null {
  const isEmpty = [machineState, entries ?? {}].every((value) => isJsonObject(value) && Object.keys(value).length === 0);
  if (!isEmpty || podEntries !== undefined) return null;
  const maps = 'MachineState:(state.NUMANodeMap)map[] Entries:(state.ContainerMemoryAssignments)map[]';
  return [`(*state.MemoryManagerCheckpoint){PolicyName:(string)${String(policyName)} ${maps} Checksum:(checksum.Checksum)0}`];
}

function mapText(value: unknown): string {
  if (!isJsonObject(value)) return String(value);
  const names = Object.keys(value).toSorted((a, b) => (a < b ? -1 : 1));
  return `map[${names.map((name) => `${name}:${mapText(value[name])}`).join(' ')}]`;
}

function fieldOf(state: JsonObject, field: string) {
  return Object.entries(state).find(([name]) => name.toLowerCase() === field.toLowerCase())?.[1];
}

function fnv1a(text: string): number {
  return new TextEncoder().encode(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
}
