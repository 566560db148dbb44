import { isJsonObject } from '../../base/json.ts';
import { formatGoDuration } from '../../base/text/go-duration.ts';
import { parseQuantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { durationAt, entriesAt, isTrue, listAt, textAt, valueAt } from '../documents/values.ts';
import type { Finding, Rule } from './rule.ts';

const QUOTA = 'cpuCFSQuotaPeriod';
const CPUS = 'reservedSystemCPUs';
const MICROSECOND = 1000n;
const MILLISECOND = 1_000_000n;

/** CPUs, memory, cgroups. */
export const RESOURCE_RULES: readonly Rule[] = [
  quotaPeriod({ until: 25, min: MICROSECOND }),
  quotaPeriod({ since: 26, min: MILLISECOND }),
  {
    id: 'KUBELET_CPU_LIST',
    check: ({ config, minor }) => {
      const fault = cpuListError(textAt(config, CPUS), minor);
      return fault === null ? [] : [{ path: CPUS, message: fault, hint: 'Write a list such as 0-3,8' }];
    },
  },
  {
    id: 'KUBELET_RESERVED_CPUS_OR_CGROUPS',
    check: ({ config }) => {
      const others = ['systemReservedCgroup', 'kubeReservedCgroup'].filter((path) => textAt(config, path) !== '');
      if (textAt(config, CPUS) === '' || others.length === 0) return [];
      return [{ path: CPUS, near: others, message: `cannot be combined with ${others.join(' and ')}` }];
    },
  },
  { id: 'KUBELET_RESERVED_MEMORY', since: 21, check: ({ config }) => checkReservedMemory(listAt(config, 'reservedMemory')) },
  {
    id: 'KUBELET_CGROUP_V1',
    since: 31,
    check: ({ config, cgroupVersion }) => {
      if (cgroupVersion === 2 || !isTrue(config, 'failCgroupV1')) return [];
      return [
        {
          path: 'failCgroupV1',
          message: 'true is rejected on a host with cgroup v1',
          hint: 'Set the field to false, or boot the host with cgroup v2',
        },
      ];
    },
  },
  {
    id: 'KUBELET_CGROUP_V1',
    since: 32,
    check: ({ config, cgroupVersion }) => {
      if (cgroupVersion === 2 || valueAt(config, 'singleProcessOOMKill') !== false) return [];
      return [{ path: 'singleProcessOOMKill', message: 'false is rejected on a host with cgroup v1', hint: 'Remove the field' }];
    },
  },
];

/** While its gate is off, the period is fixed by the rule of the gate. */
function quotaPeriod({ min, ...minors }: { readonly since?: number; readonly until?: number; readonly min: bigint }): Rule {
  return {
    id: 'KUBELET_OUT_OF_RANGE',
    ...minors,
    check: ({ config, gates }) => {
      const period = durationAt(config, QUOTA);
      if (period === undefined || !gates.isEnabled('CustomCPUCFSQuotaPeriod') || (period >= min && period <= 1000n * MILLISECOND))
        return [];
      return [{ path: QUOTA, message: `must be from ${formatGoDuration(min)} to 1s, not ${formatGoDuration(period)}` }];
    },
  };
}

function checkReservedMemory(blocks: readonly unknown[]): readonly Finding[] {
  const seen = new Set<string>();
  return blocks.flatMap((block, index): Finding[] => {
    if (!isJsonObject(block)) return [];
    const node = Number(block.numaNode ?? 0);
    return entriesAt(block, 'limits').flatMap(([type, size]): Finding[] => {
      const path = `reservedMemory[${index}].limits[${type}]`;
      const findings: Finding[] = [];
      if (type !== 'memory' && !type.startsWith('hugepages-'))
        findings.push({ path, message: `unknown type of memory ${quoteValue(type)}`, hint: 'Use memory, or hugepages-SIZE' });
      const quantity = parseQuantity(String(size));
      if (quantity !== null && quantitySign(quantity) === 0) findings.push({ path, message: 'must not be zero' });
      const key = `${node} ${type}`;
      if (seen.has(key)) findings.push({ path, message: `${quoteValue(type)} is listed twice for NUMA node ${node}` });
      seen.add(key);
      return findings;
    });
  });
}

/** The first minor with strict ranges: before, `5-3` was empty and `1-2-3` was ignored. */
const STRICT_SINCE: Minor = 22;

const MAX_INT = 2n ** 63n - 1n;

/**
 * The reason why the kubelet of a minor cannot parse a CPU list such as `0-3,8`: a clause, or null if valid.
 * @see k8s.io/utils/cpuset Parse, and before 1.26 kubernetes/kubernetes pkg/kubelet/cm/cpuset
 */
function cpuListError(text: string, minor: Minor): string | null {
  if (text === '') return null;
  for (const part of text.split(',')) {
    const fault = faultOfPart(part, minor >= STRICT_SINCE);
    if (fault !== null) return `${quoteValue(part)} ${fault}`;
  }
  return null;
}

function faultOfPart(part: string, strict: boolean): string | null {
  const dash = part.indexOf('-');
  if (dash === -1) return parseInteger(part) === null ? 'is not a CPU number' : null;
  if (!strict && part.indexOf('-', dash + 1) !== -1) return null;
  const [start, end] = [parseInteger(part.slice(0, dash)), parseInteger(part.slice(dash + 1))];
  if (start === null || end === null) return 'is not a range of CPUs';
  return strict && start > end ? 'is a range whose end is below its start' : null;
}

/** Like Go's Atoi: a sign is allowed. */
function parseInteger(text: string): bigint | null {
  if (!/^[+-]?[0-9]+$/.test(text) || text.length > 1000) return null;
  const value = BigInt(text.replace(/^\+/, ''));
  return value <= MAX_INT && value >= -MAX_INT - 1n ? value : null;
}
