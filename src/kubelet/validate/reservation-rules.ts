import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { compareQuantities, formatQuantity, parseQuantity, type Quantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { defaultEvictionHard } from '../catalogue/conditional-defaults.ts';
import { entriesAt, listAt, textAt, valueAt } from '../documents/values.ts';
import { type Finding, type Rule, type RuleFacts, unknownEnumValue } from './rule.ts';

const ENFORCE = 'enforceNodeAllocatable';
/** The first minor with the compressible values. */
const COMPRESSIBLE_SINCE = 32;

/** Reserved resources of the node and their enforcement. */
export const ALLOCATABLE_RULES: readonly Rule[] = [
  { id: 'KUBELET_CGROUPS_PER_QOS', until: 30, check: (facts) => checkCgroups(facts, listAt(facts.config, ENFORCE).length > 0) },
  {
    id: 'KUBELET_CGROUPS_PER_QOS',
    since: 31,
    check: (facts) =>
      checkCgroups(
        facts,
        listAt(facts.config, ENFORCE).some((item) => kindsOf(facts).includes(String(item)) && item !== 'none'),
      ),
  },
  { id: 'KUBELET_UNKNOWN_WORD', check: checkKinds },
  {
    id: 'KUBELET_ENFORCE_NONE',
    check: ({ config }) => {
      const items = listAt(config, ENFORCE);
      const index = items.indexOf('none');
      return index === -1 || items.length === 1 ? [] : [{ path: `${ENFORCE}[${index}]`, message: 'none must be the only entry' }];
    },
  },
  {
    id: 'KUBELET_ENFORCE_TWICE',
    since: 31,
    check: ({ config }) => {
      const seen = new Set<string>();
      return listAt(config, ENFORCE).flatMap((item, index): Finding[] => {
        const kind = String(item);
        if (seen.size === seen.add(kind).size) return [{ path: `${ENFORCE}[${index}]`, message: `${quoteValue(kind)} is listed twice` }];
        return [];
      });
    },
  },
  {
    id: 'KUBELET_ENFORCE_EITHER',
    since: COMPRESSIBLE_SINCE,
    check: ({ config }) =>
      ['system-reserved', 'kube-reserved'].flatMap((kind): Finding[] => {
        const items = listAt(config, ENFORCE);
        const index = items.indexOf(`${kind}-compressible`);
        if (index === -1 || !items.includes(kind)) return [];
        return [{ path: `${ENFORCE}[${index}]`, message: `cannot be combined with ${kind}`, hint: 'Keep only one of them' }];
      }),
  },
  { id: 'KUBELET_RESERVED_CGROUP', since: 15, check: (facts) => [...checkReserved('system', facts), ...checkReserved('kube', facts)] },
  {
    id: 'KUBELET_CGROUP_ROOT',
    check: ({ config }) => {
      if (textAt(config, 'systemCgroups') === '' || textAt(config, 'cgroupRoot') !== '') return [];
      return [{ path: 'systemCgroups', near: ['cgroupRoot'], message: 'needs cgroupRoot', hint: 'Set cgroupRoot, for example to /' }];
    },
  },
];

function checkCgroups({ config, given }: RuleFacts, isEnforced: boolean): readonly Finding[] {
  if (!isEnforced || config.cgroupsPerQOS !== false) return [];
  const hint = `Set cgroupsPerQOS to true, or ${ENFORCE} to []`;
  if (ENFORCE in given) return [{ path: ENFORCE, near: ['cgroupsPerQOS'], message: 'needs cgroupsPerQOS: true', hint }];
  return [{ path: 'cgroupsPerQOS', near: [ENFORCE], message: `false contradicts ${ENFORCE}, which is [pods] by default`, hint }];
}

function kindsOf({ minor }: RuleFacts): readonly string[] {
  const kinds = ['pods', 'system-reserved', 'kube-reserved', 'none'];
  return minor >= COMPRESSIBLE_SINCE ? [...kinds, 'system-reserved-compressible', 'kube-reserved-compressible'] : kinds;
}

function checkKinds(facts: RuleFacts): readonly Finding[] {
  const kinds = kindsOf(facts);
  return listAt(facts.config, ENFORCE).flatMap((item, index): Finding[] =>
    kinds.includes(String(item)) ? [] : [{ path: `${ENFORCE}[${index}]`, ...unknownEnumValue(String(item), kinds) }],
  );
}

function checkReserved(owner: 'system' | 'kube', facts: RuleFacts): readonly Finding[] {
  const path = `${owner}ReservedCgroup`;
  if (textAt(facts.config, path) !== '') return [];
  const items = listAt(facts.config, ENFORCE);
  const index = items.findIndex((item) => String(item).startsWith(`${owner}-reserved`) && kindsOf(facts).includes(String(item)));
  if (index === -1) return [];
  const message = `must be set when ${ENFORCE} has ${items[index]}`;
  return [{ path, near: [`${ENFORCE}[${index}]`], message, hint: `Name the control group, or remove ${items[index]}` }];
}

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
  const given = sumOf(blocks.flatMap((block) => memoryAt(block, 'limits')));
  if (desired === null || compareQuantities(desired, given) === 0) return [];
  const message = `the memory reserved on all NUMA nodes (${formatQuantity(given)}) must equal the sum of kubeReserved, systemReserved and evictionHard (${formatQuantity(desired)})`;
  return [{ path: 'reservedMemory', near: ['kubeReserved', 'systemReserved', 'evictionHard'], message }];
}

/** Null if the value depends on the memory of the host. */
function reservedForNode({ config, minor }: RuleFacts): Quantity | null {
  const threshold = valueAt(config, 'evictionHard') === undefined ? defaultEvictionHard(minor)['memory.available'] : evictionOf(config);
  if (threshold?.endsWith('%') && threshold !== '0%' && threshold !== '100%') return null;
  const hard = threshold === undefined || threshold.endsWith('%') ? [] : [parseQuantity(threshold)];
  const all = [...hard, ...memoryAt(config, 'kubeReserved'), ...memoryAt(config, 'systemReserved')];
  return all.includes(null) ? null : sumOf(all);
}

function evictionOf(config: JsonObject): string | undefined {
  const value = entriesAt(config, 'evictionHard').find(([signal]) => signal === 'memory.available')?.[1];
  return value === undefined ? undefined : String(value);
}

function memoryAt(config: JsonObject, path: string): readonly (Quantity | null)[] {
  return entriesAt(config, path)
    .filter(([key]) => key === 'memory')
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
