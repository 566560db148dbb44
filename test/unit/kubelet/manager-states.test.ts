import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { managerStatePaths, outdatedManagerStates, storedPolicy } from '../../../src/kubelet/workload/manager-states.ts';

const ROOT = '/var/lib/kubelet';
const CPU = `${ROOT}/cpu_manager_state`;
const MEMORY = `${ROOT}/memory_manager_state`;
const DEFAULTS: JsonObject = { cpuManagerPolicy: 'none', memoryManagerPolicy: 'None' };
const STATIC: JsonObject = { cpuManagerPolicy: 'static', memoryManagerPolicy: 'Static', kubeReserved: { cpu: '500m' } };

const state = (policyName: string): string => JSON.stringify({ policyName, defaultCpuSet: '0-3', entries: {}, checksum: 1 });

function outdated(before: JsonObject | null, after: JsonObject, { cpu = 'none', memory = 'None' } = {}): readonly string[] {
  const found = new Map([
    [CPU, state(cpu)],
    [MEMORY, state(memory)],
  ]);
  return outdatedManagerStates({ before, after }, ROOT, found).map(({ path, reason }) => `${path.replace(`${ROOT}/`, '')}: ${reason}`);
}

describe('outdatedManagerStates', () => {
  it('names the file of another policy, with its content', () => {
    const found = new Map([[CPU, state('none')]]);
    expect(outdatedManagerStates({ before: DEFAULTS, after: { ...DEFAULTS, cpuManagerPolicy: 'static' } }, ROOT, found)).toEqual([
      { path: CPU, content: state('none'), reason: 'written with cpuManagerPolicy none, not static' },
    ]);
  });

  it('compares with the file, so that an interrupted change is continued', () => {
    expect(outdated(STATIC, STATIC)).toEqual([
      'cpu_manager_state: written with cpuManagerPolicy none, not static',
      'memory_manager_state: written with memoryManagerPolicy None, not Static',
    ]);
    expect(outdated(null, DEFAULTS, { cpu: 'static', memory: 'Static' })).toHaveLength(2);
  });

  it.each<[string, JsonObject, readonly string[]]>([
    ['maxPods', { maxPods: 20 }, []],
    ['the same number of reserved CPUs', { kubeReserved: { cpu: '800m' }, systemReserved: { cpu: '200m' } }, []],
    [
      'more reserved CPUs',
      { kubeReserved: { cpu: '900m' }, systemReserved: { cpu: '200m' } },
      ['CPU reservation (kubeReserved, systemReserved)'],
    ],
    ['fewer reserved CPUs', { kubeReserved: {} }, ['CPU reservation (kubeReserved, systemReserved)']],
    ['named CPUs', { reservedSystemCPUs: '0' }, ['reservedSystemCPUs']],
    ['strict reservation', { cpuManagerPolicyOptions: { 'strict-cpu-reservation': 'true' } }, ['strict-cpu-reservation']],
    ['another option', { cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' } }, []],
    ['reserved memory', { reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }] }, ['reservedMemory']],
  ])('with static policies, %s', (_, change, names) => {
    const found = outdated(STATIC, { ...STATIC, ...change }, { cpu: 'static', memory: 'Static' });
    expect(found.map((line) => line.replace(/^.*another /, ''))).toEqual(names);
  });

  it('keeps the files of other policies when reservations change', () => {
    expect(outdated(DEFAULTS, { ...DEFAULTS, kubeReserved: { cpu: '2' }, reservedSystemCPUs: '0-1' })).toEqual([]);
  });

  it('keeps files that it cannot read, or that do not exist', () => {
    const change = { before: DEFAULTS, after: STATIC };
    expect(outdatedManagerStates(change, ROOT, new Map([[CPU, 'not JSON']]))).toEqual([]);
    expect(outdatedManagerStates(change, ROOT, new Map([[CPU, '[]']]))).toEqual([]);
    expect(outdatedManagerStates(change, ROOT, new Map())).toEqual([]);
  });
});

describe('state files', () => {
  it('are below the root directory of the kubelet', () => {
    expect(managerStatePaths('/data/kubelet')).toEqual(['/data/kubelet/cpu_manager_state', '/data/kubelet/memory_manager_state']);
  });

  it('name their policy', () => {
    expect(storedPolicy(state('static'))).toBe('static');
    expect(storedPolicy('{}')).toBeNull();
  });
});
