import { isJsonObject } from '../../base/json.ts';
import { formatGoDuration } from '../../base/text/go-duration.ts';
import { parseQuantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { faultOfCpuList } from './cpu-list.ts';
import type { Finding, Rule } from './rule.ts';
import { durationAt, entriesAt, isTrue, listAt, textAt, valueAt } from './values.ts';

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
      const fault = faultOfCpuList(textAt(config, CPUS), minor);
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
