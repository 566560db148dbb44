import { describe, expect, it } from 'vitest';
import { isCorruptState } from '../../../src/kubelet/workload/manager-states.ts';

/** Files of a kubelet 1.36.2, and files of the kubelet's own tests. */
const VALID: readonly (readonly [what: string, content: string])[] = [
  ['the CPU manager without policy', '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'],
  ['the static CPU manager', '{"policyName":"static","defaultCpuSet":"0-1","checksum":1636926438}'],
  ['the memory manager without policy', '{"policyName":"None","machineState":{},"checksum":4236770233}'],
  [
    'the static memory manager',
    '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"hugepages-1Gi":{"total":0,"systemReserved":0,"allocatable":0,"reserved":0,"free":0},"hugepages-2Mi":{"total":0,"systemReserved":0,"allocatable":0,"reserved":0,"free":0},"memory":{"total":24119562240,"systemReserved":209715200,"allocatable":23909847040,"reserved":0,"free":23909847040}},"cells":[0]}},"checksum":2337375102}',
  ],
  [
    'the memory manager with memory of containers',
    '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":2,"memoryMap":{"hugepages-1Gi":{"total":0,"systemReserved":0,"allocatable":0,"reserved":0,"free":0},"hugepages-2Mi":{"total":0,"systemReserved":0,"allocatable":0,"reserved":0,"free":0},"memory":{"total":24119562240,"systemReserved":209715200,"allocatable":23909847040,"reserved":134217728,"free":23775629312}},"cells":[0]}},"entries":{"33c8bf4a-8e6a-41c3-b4be-6e6e81870555":{"a":[{"numaAffinity":[0],"type":"memory","size":67108864}],"b":[{"numaAffinity":[0],"type":"memory","size":67108864}]}},"checksum":2019212024}',
  ],
  ['an empty list of entries', '{"policyName":"none","defaultCPUSet":"4-6","entries":{},"checksum":354655845}'],
  [
    'CPUs of containers',
    '{"policyName":"none","defaultCPUSet":"1-3","entries":{"pod":{"container2":"1-3","container1":"4-6"}},"checksum":3610638499}',
  ],
  ['a kubelet up to 1.17', '{"policyName":"none","defaultCPUSet":"1-3","checksum":1694838852}'],
];

describe('a state file of a manager', () => {
  it.each(VALID)('of %s is valid', (_, content) => expect(isCorruptState(content)).toBe(false));
  it.each(VALID)('of %s with another value is corrupt', (_, content) => {
    expect(isCorruptState(content.replace(/"(policyName)":"\w+"/, '"$1":"edited"'))).toBe(true);
  });

  it.each<[string, string]>([
    ['no JSON', '{"policyName":"none"'],
    ['an empty file', ''],
    ['another CPU', '{"policyName":"static","defaultCpuSet":"0-2","checksum":1636926438}'],
  ])('with %s is corrupt', (_, content) => expect(isCorruptState(content)).toBe(true));

  it.each<[string, string]>([
    ['no checksum', '{"policyName":"none","defaultCpuSet":"0-1"}'],
    ['entries of pods', '{"policyName":"none","defaultCPUSet":"1-3","podEntries":{"pod":{"cpuSet":"4-6"}},"checksum":1}'],
    ['NUMA nodes of another form', '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0}},"checksum":1}'],
  ])('with %s is not checked', (_, content) => expect(isCorruptState(content)).toBe(false));
});
