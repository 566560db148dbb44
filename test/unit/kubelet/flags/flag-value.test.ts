import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { fieldOfFlag, readFlagSettings, readFlagValue } from '../../../../src/kubelet/flags/flag-value.ts';

const catalogue = await loadCatalogue();

function read(name: string, texts: readonly string[], minor = 36): Json {
  const found = fieldOfFlag(name, { minor, catalogue });
  if (found === null) throw new Error(`--${name} has no field`);
  const result = readFlagValue(found.flag, texts, found.field);
  return 'value' in result ? result.value : `fault: ${result.fault}`;
}

describe('readFlagValue', () => {
  it.each<[string, readonly string[], Json]>([
    ['max-pods', ['50'], 50],
    ['max-pods', ['50', '60'], 60],
    ['max-pods', ['0x20'], 32],
    ['max-pods', ['010'], 8],
    ['max-pods', ['1_000'], 1000],
    ['oom-score-adj', ['-5'], -5],
    ['max-pods', ['5.5'], 'fault: must be an integer, not the string "5.5"'],
    ['max-pods', ['5000000000'], 'fault: must be an integer from -2147483648 to 2147483647, not 5000000000'],
    ['anonymous-auth', ['false'], false],
    ['anonymous-auth', ['T'], true],
    ['anonymous-auth', ['yes'], 'fault: must be true or false, not "yes"'],
    ['address', ['10.0.0.1'], '10.0.0.1'],
    ['sync-frequency', ['90s'], '1m30s'],
    ['sync-frequency', ['90'], 'fault: the string "90" is not a valid duration'],
    ['v', ['4'], 4],
    ['cluster-dns', ['10.0.0.10,10.0.0.11', 'fd00::a'], ['10.0.0.10', '10.0.0.11', 'fd00::a']],
    ['tls-cipher-suites', ['A,"B,""C"'], ['A', 'B,"C']],
    ['enforce-node-allocatable', [''], []],
    ['eviction-hard', ['memory.available<500Mi,nodefs.available<5%'], { 'memory.available': '500Mi', 'nodefs.available': '5%' }],
    ['eviction-hard', [''], {}],
    ['eviction-hard', ['memory.available=1Gi'], 'fault: "memory.available=1Gi" is not a pair name<value'],
    ['eviction-soft-grace-period', ['memory.available=1m30s'], { 'memory.available': '1m30s' }],
    ['kube-reserved', ['cpu=100m,memory=1Gi', 'cpu=200m'], { cpu: '200m', memory: '1Gi' }],
    ['cpu-manager-policy-options', ['a=b,c'], { a: 'b,c' }],
    ['feature-gates', ['A=true,B=0'], { A: true, B: false }],
    ['manifest-url-header', ['a:hello,b:again', 'b:beautiful'], { a: ['hello'], b: ['again', 'beautiful'] }],
    ['manifest-url-header', ['secret'], 'fault: contains an item that is not a pair name:value'],
    [
      'register-with-taints',
      ['a=b:NoSchedule,c:NoExecute'],
      [
        { key: 'a', value: 'b', effect: 'NoSchedule' },
        { key: 'c', effect: 'NoExecute' },
      ],
    ],
    ['register-with-taints', ['a=b'], 'fault: "a=b" is not a taint such as key=value:NoSchedule'],
    [
      'reserved-memory',
      ['0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=1024Mi', '2:memory=1'],
      [
        { numaNode: 0, limits: { memory: '1Gi', 'hugepages-1Gi': '2Gi' } },
        { numaNode: 1, limits: { memory: '1Gi' } },
        { numaNode: 2, limits: { memory: '1' } },
      ],
    ],
    [
      'vmodule',
      ['kubelet=4,pod*=5,'],
      [
        { filePattern: 'kubelet', verbosity: 4 },
        { filePattern: 'pod*', verbosity: 5 },
      ],
    ],
  ])('--%s %j is %j', (name, texts, value) => {
    expect(read(name, texts)).toEqual(value);
  });

  it('returns the flush frequency in the type of the minor', () => {
    expect(read('log-flush-frequency', ['10s'], 27)).toBe(10_000_000_000);
    expect(read('log-flush-frequency', ['10s'], 28)).toBe('10s');
  });

  it('reads the default of every flag with a field, in every minor', () => {
    const faults: string[] = [];
    for (let minor = 20; minor <= 36; minor++) {
      for (const name of catalogue.flags.keys()) {
        const found = fieldOfFlag(name, { minor, catalogue });
        if (found === null) continue;
        const text = found.flag.type === 'stringSlice' ? found.flag.default.replace(/^\[(.*)\]$/, '$1') : found.flag.default;
        const result = readFlagValue(found.flag, text === '' && found.field.type.startsWith('map') ? [] : [text], found.field);
        if ('fault' in result) faults.push(`1.${minor} --${name}=${text}: ${result.fault}`);
      }
    }
    expect(faults).toEqual([]);
  });
});

describe('readFlagSettings', () => {
  const settings = (flags: readonly [string, string][], config: JsonObject = {}, minor = 36): Json =>
    readFlagSettings(
      flags.map(([name, value]) => ({ name, value })),
      config,
      { minor, catalogue },
    ).settings.map(({ path, value }) => [path, value]);

  it('merges feature gates with those of the file, appends vmodule patterns, and replaces all other values', () => {
    const file = {
      featureGates: { A: true, B: true },
      logging: { vmodule: [{ filePattern: 'a', verbosity: 1 }] },
      kubeReserved: { cpu: '1', memory: '1Gi' },
    };
    expect(
      settings(
        [
          ['feature-gates', 'B=false,C=true'],
          ['vmodule', 'b=2'],
          ['kube-reserved', 'cpu=2'],
        ],
        file,
      ),
    ).toEqual([
      ['featureGates', { A: true, B: false, C: true }],
      [
        'logging.vmodule',
        [
          { filePattern: 'a', verbosity: 1 },
          { filePattern: 'b', verbosity: 2 },
        ],
      ],
      ['kubeReserved', { cpu: '2' }],
    ]);
  });

  it('ignores flags without a field in that minor', () => {
    expect(
      settings(
        [
          ['container-runtime-endpoint', 'unix:///x'],
          ['node-ip', '10.0.0.1'],
        ],
        {},
        26,
      ),
    ).toEqual([]);
    expect(settings([['container-runtime-endpoint', 'unix:///x']], {}, 27)).toEqual([['containerRuntimeEndpoint', 'unix:///x']]);
  });

  it('keeps the order of two flags for one field', () => {
    expect(
      settings(
        [
          ['kernel-memcg-notification', 'true'],
          ['experimental-kernel-memcg-notification', 'true'],
          ['kernel-memcg-notification', 'false'],
        ],
        {},
        21,
      ),
    ).toEqual([
      ['kernelMemcgNotification', true],
      ['kernelMemcgNotification', false],
    ]);
  });
});
