import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { compareQuantities, formatQuantity, parseQuantity, type Quantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { defaultEvictionHard } from '../catalogue/conditional-defaults.ts';
import { entriesAt, listAt, textAt, valueAt } from '../documents/values.ts';
import { unknownEnumValue } from './enum-rules.ts';
import type { Finding, Rule, RuleFacts } from './rule.ts';

const RESOURCES = ['cpu', 'memory', 'ephemeral-storage', 'pid'];

/**
 * Reservations that the kubelet cannot parse or that are inconsistent: it exits at startup.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go, pkg/kubelet/cm (1.20 to 1.36)
 */
export const RESERVATION_STARTUP_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_START_RESERVATION',
    check: ({ given }) =>
      ['kubeReserved', 'systemReserved'].flatMap((field) =>
        entriesAt(given, field).flatMap(([resource, value]): Finding[] => {
          const path = `${field}[${resource}]`;
          if (!RESOURCES.includes(resource)) return [{ path, ...unknownEnumValue(resource, RESOURCES) }];
          const quantity = parseQuantity(String(value));
          if (quantity === null) return [{ path, message: `${quoteValue(String(value))} is not a quantity` }];
          return quantitySign(quantity) === -1 ? [{ path, message: `${quoteValue(String(value))} is negative` }] : [];
        }),
      ),
  },
  {
    id: 'KUBELET_START_QOS_RESERVED',
    check: ({ given }) =>
      entriesAt(given, 'qosReserved').flatMap(([resource, value]): Finding[] => {
        const path = `qosReserved[${resource}]`;
        if (resource !== 'memory') return [{ path, ...unknownEnumValue(resource, ['memory']) }];
        const percentage = /^[+-]?[0-9]{1,18}%+$/.test(String(value)) ? Number.parseInt(String(value), 10) : null;
        if (percentage !== null && percentage >= 0 && percentage <= 100) return [];
        return [{ path, message: `${quoteValue(String(value))} is not an integer percentage from 0% to 100%` }];
      }),
  },
  { id: 'KUBELET_START_RESERVATION', check: checkEnforcedReservations },
  { id: 'KUBELET_START_MEMORY_MANAGER', since: 21, check: checkMemoryManager },
];

/** The kubelet cannot limit a cgroup to an empty reservation: `cgroup is not configured properly`. */
function checkEnforcedReservations({ config }: RuleFacts): readonly Finding[] {
  const kinds = listAt(config, 'enforceNodeAllocatable').map(String);
  return ['system', 'kube'].flatMap((owner): readonly Finding[] => {
    const [path, cgroup] = [`${owner}Reserved`, textAt(config, `${owner}ReservedCgroup`)];
    const index = kinds.findIndex((kind) => kind === `${owner}-reserved` || kind === `${owner}-reserved-compressible`);
    if (index === -1 || cgroup === '' || entriesAt(config, path).length > 0) return [];
    const message = `must not be empty when enforceNodeAllocatable has ${kinds[index]}`;
    return [{ path, near: [`enforceNodeAllocatable[${index}]`], message, hint: `Reserve an amount, or remove ${kinds[index]}` }];
  });
}

/** The static memory manager needs the reservation per NUMA node. */
function checkMemoryManager(facts: RuleFacts): readonly Finding[] {
  const path = 'memoryManagerPolicy';
  const policy = textAt(facts.config, path);
  const known = ['None', 'Static'];
  if (!known.includes(policy)) return policy === '' ? [] : [{ path, ...unknownEnumValue(policy, known) }];
  if (policy !== 'Static') return [];
  const blocks = listAt(facts.config, 'reservedMemory').filter(isJsonObject);
  if (blocks.length === 0)
    return [{ path, near: ['reservedMemory'], message: 'Static needs reservedMemory', hint: 'Set the reserved memory of each NUMA node' }];
  const desired = reservedForNode(facts);
  const given = sumOf(blocks.flatMap((block) => quantitiesAt(block, 'limits', 'memory')));
  if (desired === null || compareQuantities(desired, given) === 0) return [];
  const message = `the memory reserved on all NUMA nodes (${formatQuantity(given)}) must equal the sum of kubeReserved, systemReserved and evictionHard (${formatQuantity(desired)})`;
  return [{ path: 'reservedMemory', near: ['kubeReserved', 'systemReserved', 'evictionHard'], message }];
}

/** Null if the value depends on the memory of the host. */
function reservedForNode({ config, minor }: RuleFacts): Quantity | null {
  const threshold = valueAt(config, 'evictionHard') === undefined ? defaultEvictionHard(minor)['memory.available'] : evictionOf(config);
  if (threshold?.endsWith('%') && threshold !== '0%' && threshold !== '100%') return null;
  const hard = threshold === undefined || threshold.endsWith('%') ? [] : [parseQuantity(threshold)];
  const all = [...hard, ...quantitiesAt(config, 'kubeReserved', 'memory'), ...quantitiesAt(config, 'systemReserved', 'memory')];
  return all.includes(null) ? null : sumOf(all);
}

function evictionOf(config: JsonObject): string | undefined {
  const value = entriesAt(config, 'evictionHard').find(([signal]) => signal === 'memory.available')?.[1];
  return value === undefined ? undefined : String(value);
}

function quantitiesAt(config: JsonObject, path: string, name: string): readonly (Quantity | null)[] {
  return entriesAt(config, path)
    .filter(([key]) => key === name)
    .map(([, value]) => parseQuantity(String(value)));
}

/** Extremely large or small parts, whose sum would take long, count as zero. */
function sumOf(quantities: readonly (Quantity | null)[]): Quantity {
  const parts = quantities.filter((quantity) => quantity !== null && Math.abs(quantity.scale) <= 100) as readonly Quantity[];
  const scale = Math.max(0, ...parts.map((part) => part.scale));
  const unscaled = parts.reduce((sum, part) => sum + part.unscaled * 10n ** BigInt(scale - part.scale), 0n);
  const sum = { unscaled, scale, format: 'BinarySI' } as const;
  return { ...sum, text: formatQuantity(sum) };
}
