import type { JsonObject } from '../../../src/base/json.ts';

/**
 * Documents (without header) and their decoded values in the kubelet of each minor. Every verdict, strict and lenient, was compared with the
 * real decoder of that minor.
 */
export interface DecodeCase {
  readonly rule: string;
  readonly yaml: string;
  readonly minors: readonly number[];
  /** The decoded value; omitted if nothing was decoded. */
  readonly value?: JsonObject;
  /** `path CODE` of each problem, in order. */
  readonly problems?: readonly string[];
}

const OLD = [21];
const NEW = [36];
const BOTH = [21, 36];

const UNKNOWN = 'CONFIG_UNKNOWN_FIELD';
const DUPLICATE = 'CONFIG_DUPLICATE_FIELD';
const WRONG = 'CONFIG_WRONG_TYPE';
const RANGE = 'CONFIG_OUT_OF_RANGE';
const DURATION = 'CONFIG_INVALID_DURATION';
const QUANTITY = 'CONFIG_INVALID_QUANTITY';
const TIME = 'CONFIG_INVALID_TIMESTAMP';

function accepts(rule: string, minors: readonly number[], rows: readonly (readonly [yaml: string, value: JsonObject])[]): DecodeCase[] {
  return rows.map(([yaml, value]) => ({ rule, yaml, minors, value }));
}

function refuses(rule: string, minors: readonly number[], rows: readonly (readonly [yaml: string, ...problems: string[]])[]): DecodeCase[] {
  return rows.map(([yaml, ...problems]) => ({ rule, yaml, minors, problems }));
}

export const DECODE_CASES: readonly DecodeCase[] = [
  ...accepts('booleans: YAML 1.1 words', BOTH, [
    ['failSwapOn: true', { failSwapOn: true }],
    ['failSwapOn: TRUE', { failSwapOn: true }],
    ['failSwapOn: yes', { failSwapOn: true }],
    ['failSwapOn: On', { failSwapOn: true }],
    ['failSwapOn: y', { failSwapOn: true }],
    ['failSwapOn: off', { failSwapOn: false }],
    ['failSwapOn: No', { failSwapOn: false }],
    ['featureGates: {A: yes, B: off}', { featureGates: { A: true, B: false } }],
  ]),
  ...refuses('booleans: quoted words, 0 and 1', BOTH, [
    ['failSwapOn: "true"', `failSwapOn ${WRONG}`],
    ["failSwapOn: 'yes'", `failSwapOn ${WRONG}`],
    ['failSwapOn: 1', `failSwapOn ${WRONG}`],
    ['failSwapOn: 0', `failSwapOn ${WRONG}`],
    ['failSwapOn: maybe', `failSwapOn ${WRONG}`],
    ['failSwapOn: [true]', `failSwapOn ${WRONG}`],
    ['featureGates: {A: "true"}', `featureGates[A] ${WRONG}`],
  ]),
  ...accepts('integers: Go notations', BOTH, [
    ['maxPods: 50', { maxPods: 50 }],
    ['maxPods: 50.0', { maxPods: 50 }],
    ['maxPods: 1e2', { maxPods: 100 }],
    ['maxPods: 1.5e1', { maxPods: 15 }],
    ['maxPods: 0x32', { maxPods: 50 }],
    ['maxPods: 062', { maxPods: 50 }],
    ['maxPods: 0o62', { maxPods: 50 }],
    // A float, not an octal number.
    ['maxPods: 08', { maxPods: 8 }],
    ['maxPods: 0b11', { maxPods: 3 }],
    ['maxPods: 1_000', { maxPods: 1000 }],
    ['maxPods: +7', { maxPods: 7 }],
    ['maxPods: -0', { maxPods: 0 }],
    ['maxPods: -0.0', { maxPods: 0 }],
    ['oomScoreAdj: -999', { oomScoreAdj: -999 }],
    ['maxPods: 2147483647', { maxPods: 2147483647 }],
    ['maxPods: -2147483648', { maxPods: -2147483648 }],
    ['maxOpenFiles: 9007199254740991', { maxOpenFiles: 9007199254740991 }],
    ['maxOpenFiles: 9007199254740993', { maxOpenFiles: '9007199254740993' }],
    ['maxOpenFiles: 9223372036854775807', { maxOpenFiles: '9223372036854775807' }],
    ['podPidsLimit: -9223372036854775808', { podPidsLimit: '-9223372036854775808' }],
  ]),
  ...refuses('integers: fractions, quotes, other types', BOTH, [
    ['maxPods: 50.5', `maxPods ${WRONG}`],
    ['maxPods: "50"', `maxPods ${WRONG}`],
    ['maxPods: fifty', `maxPods ${WRONG}`],
    ['maxPods: true', `maxPods ${WRONG}`],
    ['maxPods: [50]', `maxPods ${WRONG}`],
    ['maxPods: {a: 50}', `maxPods ${WRONG}`],
    ['maxPods: 2001-01-01', `maxPods ${WRONG}`],
    ['maxPods: 1:30', `maxPods ${WRONG}`],
  ]),
  ...refuses('integers: the range of the Go type', BOTH, [
    ['maxPods: 2147483648', `maxPods ${RANGE}`],
    ['maxPods: -2147483649', `maxPods ${RANGE}`],
    ['maxPods: 18446744073709551615', `maxPods ${RANGE}`],
    ['maxPods: 1e30', `maxPods ${RANGE}`],
    ['maxOpenFiles: 9223372036854775808', `maxOpenFiles ${RANGE}`],
    ['maxOpenFiles: -1e19', `maxOpenFiles ${RANGE}`],
  ]),
  ...accepts('unsigned integers', NEW, [
    ['logging: {verbosity: 4294967295}', { logging: { verbosity: 4294967295 } }],
    ['logging: {verbosity: 3.0}', { logging: { verbosity: 3 } }],
    ['logging: {verbosity: -0}', { logging: { verbosity: 0 } }],
  ]),
  ...refuses('unsigned integers', NEW, [
    ['logging: {verbosity: -1}', `logging.verbosity ${RANGE}`],
    ['logging: {verbosity: 4294967296}', `logging.verbosity ${RANGE}`],
    ['logging: {verbosity: -0.0}', `logging.verbosity ${RANGE}`],
  ]),
  ...accepts('floats', NEW, [
    ['memoryThrottlingFactor: 0.8', { memoryThrottlingFactor: 0.8 }],
    ['memoryThrottlingFactor: 1', { memoryThrottlingFactor: 1 }],
    ['memoryThrottlingFactor: .5', { memoryThrottlingFactor: 0.5 }],
    ['memoryThrottlingFactor: 1e-7', { memoryThrottlingFactor: 1e-7 }],
  ]),
  ...refuses('floats', NEW, [['memoryThrottlingFactor: "0.8"', `memoryThrottlingFactor ${WRONG}`]]),
  ...accepts('strings: dates, addresses and words with a colon are text', BOTH, [
    ['clusterDomain: cluster.local', { clusterDomain: 'cluster.local' }],
    ['address: 10.0.0.1', { address: '10.0.0.1' }],
    ['clusterDomain: 2001-01-01', { clusterDomain: '2001-01-01' }],
    ['clusterDomain: 2001-01-01T00:00:00Z', { clusterDomain: '2001-01-01T00:00:00Z' }],
    ['clusterDomain: 1:30', { clusterDomain: '1:30' }],
    ['clusterDomain: "5"', { clusterDomain: '5' }],
    ['clusterDomain: ""', { clusterDomain: '' }],
    ['clusterDomain: !!str 5', { clusterDomain: '5' }],
    ['clusterDomain: fd00::1', { clusterDomain: 'fd00::1' }],
  ]),
  ...refuses('strings: unquoted numbers and booleans', BOTH, [
    ['clusterDomain: 5', `clusterDomain ${WRONG}`],
    ['clusterDomain: 1.5', `clusterDomain ${WRONG}`],
    ['clusterDomain: yes', `clusterDomain ${WRONG}`],
    ['clusterDomain: 1_000', `clusterDomain ${WRONG}`],
    ['clusterDomain: [a]', `clusterDomain ${WRONG}`],
    ['clusterDomain: {a: b}', `clusterDomain ${WRONG}`],
  ]),
  ...accepts('enumerations are plain strings to the decoder', BOTH, [
    ['cgroupDriver: sytemd', { cgroupDriver: 'sytemd' }],
    ['authorization: {mode: ""}', { authorization: { mode: '' } }],
  ]),
  ...accepts('string maps', BOTH, [
    ['kubeReserved: {cpu: "1", memory: 1Gi}', { kubeReserved: { cpu: '1', memory: '1Gi' } }],
    ['kubeReserved: {cpu: null}', { kubeReserved: { cpu: '' } }],
    ['kubeReserved: {}', { kubeReserved: {} }],
    ['kubeReserved: {1: "x", yes: "y"}', { kubeReserved: { '1': 'x', true: 'y' } }],
    ['evictionHard: {memory.available: 5%}', { evictionHard: { 'memory.available': '5%' } }],
    ['staticPodURLHeader: {X: [a, b], Z: null}', { staticPodURLHeader: { X: ['a', 'b'], Z: null } }],
  ]),
  ...refuses('string maps: values must be strings', BOTH, [
    ['kubeReserved: {cpu: 1}', `kubeReserved[cpu] ${WRONG}`],
    ['kubeReserved: {cpu: true}', `kubeReserved[cpu] ${WRONG}`],
    ['kubeReserved: {cpu: [a]}', `kubeReserved[cpu] ${WRONG}`],
    ['kubeReserved: [a]', `kubeReserved ${WRONG}`],
    ['kubeReserved: cpu', `kubeReserved ${WRONG}`],
    ['staticPodURLHeader: {X: a}', `staticPodURLHeader[X] ${WRONG}`],
    ['staticPodURLHeader: {X: [5]}', `staticPodURLHeader[X][0] ${WRONG}`],
  ]),
  ...accepts('lists', BOTH, [
    ['clusterDNS: [10.0.0.1, 10.0.0.2]', { clusterDNS: ['10.0.0.1', '10.0.0.2'] }],
    ['clusterDNS: []', { clusterDNS: [] }],
    ['clusterDNS: [a, null, ~]', { clusterDNS: ['a', '', ''] }],
    ['clusterDNS:\n- a\n- b', { clusterDNS: ['a', 'b'] }],
  ]),
  ...refuses('lists: a scalar or an object in place of a list', BOTH, [
    ['clusterDNS: 10.0.0.1', `clusterDNS ${WRONG}`],
    ['clusterDNS: ""', `clusterDNS ${WRONG}`],
    ['clusterDNS: {a: b}', `clusterDNS ${WRONG}`],
    ['clusterDNS: [1]', `clusterDNS[0] ${WRONG}`],
    ['clusterDNS: [a, [b]]', `clusterDNS[1] ${WRONG}`],
  ]),
  ...accepts('lists of objects', NEW, [
    ['registerWithTaints:\n- key: a\n  effect: NoSchedule\n- null', { registerWithTaints: [{ key: 'a', effect: 'NoSchedule' }, {}] }],
    ['tlsCurvePreferences: [23, null, 0x18]', { tlsCurvePreferences: [23, 0, 24] }],
  ]),
  ...refuses('lists of objects', NEW, [
    ['registerWithTaints: {key: a}', `registerWithTaints ${WRONG}`],
    ['registerWithTaints: ["a=b:NoSchedule"]', `registerWithTaints[0] ${WRONG}`],
    ['registerWithTaints: [{kye: a}]', `registerWithTaints[0].kye ${UNKNOWN}`],
  ]),
  ...accepts('objects', BOTH, [
    ['authentication: {anonymous: {enabled: false}}', { authentication: { anonymous: { enabled: false } } }],
    ['authentication: {}', { authentication: {} }],
  ]),
  ...refuses('objects: any other type', BOTH, [
    ['authentication: []', `authentication ${WRONG}`],
    ['authentication: x509', `authentication ${WRONG}`],
    ['authentication: {x509: true}', `authentication.x509 ${WRONG}`],
  ]),
  ...accepts('null is equal to omitting the field', BOTH, [
    ['maxPods: null', {}],
    ['maxPods: ~', {}],
    ['maxPods:', {}],
    ['clusterDomain: null', {}],
    ['failSwapOn: Null', {}],
    ['authentication: null', {}],
    ['clusterDNS: null', {}],
    ['kubeReserved: null', {}],
    ['resolvConf: null', {}],
    ['cpuCFSQuotaPeriod: null', {}],
  ]),
  ...refuses('null for a duration that is not a pointer', BOTH, [
    ['syncFrequency: null', `syncFrequency ${DURATION}`],
    ['syncFrequency:', `syncFrequency ${DURATION}`],
    ['authentication: {webhook: {cacheTTL: ~}}', `authentication.webhook.cacheTTL ${DURATION}`],
  ]),
  ...accepts('durations: Go syntax', BOTH, [
    ['syncFrequency: 1m0s', { syncFrequency: '1m0s' }],
    ['syncFrequency: 60s', { syncFrequency: '1m0s' }],
    ['syncFrequency: .5m', { syncFrequency: '30s' }],
    ['syncFrequency: +10s', { syncFrequency: '10s' }],
    ['syncFrequency: -10s', { syncFrequency: '-10s' }],
    ['syncFrequency: 1.5µs', { syncFrequency: '1.5µs' }],
    ['syncFrequency: 1500us', { syncFrequency: '1.5ms' }],
    ['syncFrequency: 1h1ns', { syncFrequency: '1h0m0.000000001s' }],
    ['syncFrequency: "0"', { syncFrequency: '0s' }],
    ['syncFrequency: 2562047h47m16s', { syncFrequency: '2562047h47m16s' }],
    ['cpuCFSQuotaPeriod: 0s', { cpuCFSQuotaPeriod: '0s' }],
  ]),
  ...refuses('durations: any other notation', BOTH, [
    ['syncFrequency: 0', `syncFrequency ${DURATION}`],
    ['syncFrequency: 10', `syncFrequency ${DURATION}`],
    ['syncFrequency: "10"', `syncFrequency ${DURATION}`],
    ['syncFrequency: ""', `syncFrequency ${DURATION}`],
    ['syncFrequency: 1d', `syncFrequency ${DURATION}`],
    ['syncFrequency: PT10S', `syncFrequency ${DURATION}`],
    ['syncFrequency: 1m 30s', `syncFrequency ${DURATION}`],
    ['syncFrequency: " 1m"', `syncFrequency ${DURATION}`],
    ['syncFrequency: 2562047h47m17s', `syncFrequency ${DURATION}`],
    ['syncFrequency: true', `syncFrequency ${DURATION}`],
    ['syncFrequency: [1m]', `syncFrequency ${WRONG}`],
    ['cpuCFSQuotaPeriod: 100', `cpuCFSQuotaPeriod ${DURATION}`],
  ]),
  ...accepts(
    'logging.flushFrequency: nanoseconds up to 1.27',
    [23, 27],
    [
      ['logging: {flushFrequency: 5000000000}', { logging: { flushFrequency: 5000000000 } }],
      ['logging: {flushFrequency: null}', { logging: {} }],
    ],
  ),
  ...refuses(
    'logging.flushFrequency: no text up to 1.27',
    [23, 27],
    [
      ['logging: {flushFrequency: 5s}', `logging.flushFrequency ${WRONG}`],
      ['logging: {flushFrequency: 1.5}', `logging.flushFrequency ${WRONG}`],
    ],
  ),
  ...accepts(
    'logging.flushFrequency: nanoseconds or a duration from 1.28',
    [28, 36],
    [
      ['logging: {flushFrequency: 5000000000}', { logging: { flushFrequency: 5000000000 } }],
      ['logging: {flushFrequency: 5s}', { logging: { flushFrequency: '5s' } }],
      ['logging: {flushFrequency: 60s}', { logging: { flushFrequency: '1m0s' } }],
      ['logging: {flushFrequency: null}', { logging: {} }],
    ],
  ),
  ...refuses(
    'logging.flushFrequency from 1.28',
    [28, 36],
    [
      ['logging: {flushFrequency: 1.5}', `logging.flushFrequency ${WRONG}`],
      ['logging: {flushFrequency: five}', `logging.flushFrequency ${DURATION}`],
      ['logging: {flushFrequency: 9223372036854775808}', `logging.flushFrequency ${RANGE}`],
    ],
  ),
  ...accepts('quantities', BOTH, [
    ['reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]', { reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }] }],
    ['reservedMemory: [{limits: {memory: 1024Mi}}]', { reservedMemory: [{ limits: { memory: '1Gi' } }] }],
    ['reservedMemory: [{limits: {memory: 100}}]', { reservedMemory: [{ limits: { memory: '100' } }] }],
    ['reservedMemory: [{limits: {memory: 1.5}}]', { reservedMemory: [{ limits: { memory: '1500m' } }] }],
    ['reservedMemory: [{limits: {memory: " 5Mi "}}]', { reservedMemory: [{ limits: { memory: '5Mi' } }] }],
    ['reservedMemory: [{limits: {memory: null}}]', { reservedMemory: [{ limits: { memory: '0' } }] }],
    ['reservedMemory: [{limits: {memory: 1e3}}]', { reservedMemory: [{ limits: { memory: '1k' } }] }],
  ]),
  ...refuses('quantities', BOTH, [
    ['reservedMemory: [{limits: {memory: lots}}]', `reservedMemory[0].limits[memory] ${QUANTITY}`],
    ['reservedMemory: [{limits: {memory: ""}}]', `reservedMemory[0].limits[memory] ${QUANTITY}`],
    ['reservedMemory: [{limits: {memory: 1GB}}]', `reservedMemory[0].limits[memory] ${QUANTITY}`],
    ['reservedMemory: [{limits: {memory: true}}]', `reservedMemory[0].limits[memory] ${WRONG}`],
    ['reservedMemory: [{limits: {memory: [1]}}]', `reservedMemory[0].limits[memory] ${WRONG}`],
  ]),
  ...accepts('quantities that are only texts to the decoder', BOTH, [['containerLogMaxSize: lots', { containerLogMaxSize: 'lots' }]]),
  ...accepts('times', NEW, [
    ['registerWithTaints: [{timeAdded: 2026-01-02T03:04:05Z}]', { registerWithTaints: [{ timeAdded: '2026-01-02T03:04:05Z' }] }],
    ['registerWithTaints: [{timeAdded: "2026-01-01T00:30:00.5+01:00"}]', { registerWithTaints: [{ timeAdded: '2025-12-31T23:30:00Z' }] }],
    ['registerWithTaints: [{timeAdded: null}]', { registerWithTaints: [{}] }],
  ]),
  ...refuses('times', NEW, [
    ['registerWithTaints: [{timeAdded: 2026-01-02}]', `registerWithTaints[0].timeAdded ${TIME}`],
    ['registerWithTaints: [{timeAdded: 2026-02-30T00:00:00Z}]', `registerWithTaints[0].timeAdded ${TIME}`],
    ['registerWithTaints: [{timeAdded: 5}]', `registerWithTaints[0].timeAdded ${WRONG}`],
  ]),
  ...refuses('names are case-sensitive', BOTH, [
    ['MaxPods: 5', `MaxPods ${UNKNOWN}`],
    ['authentication: {X509: {}}', `authentication.X509 ${UNKNOWN}`],
  ]),
  ...refuses('fields of later minors', OLD, [
    ['memorySwap: {}', `memorySwap ${UNKNOWN}`],
    ['registerNode: false', `registerNode ${UNKNOWN}`],
    ['containerRuntimeEndpoint: unix:///x', `containerRuntimeEndpoint ${UNKNOWN}`],
    ['logging: {verbosity: 5}', `logging.verbosity ${UNKNOWN}`],
    ['tracing: null', `tracing ${UNKNOWN}`],
  ]),
  ...accepts('fields of later minors', NEW, [
    ['memorySwap: {}', { memorySwap: {} }],
    ['registerNode: false', { registerNode: false }],
    ['containerRuntimeEndpoint: unix:///x', { containerRuntimeEndpoint: 'unix:///x' }],
    ['logging: {verbosity: 5}', { logging: { verbosity: 5 } }],
  ]),
  ...accepts('fields that went', [20, 23], [['logging: {sanitization: true}', { logging: { sanitization: true } }]]),
  ...refuses('fields that went', [24, 36], [['logging: {sanitization: true}', `logging.sanitization ${UNKNOWN}`]]),
  ...refuses('metadata and status are not part of the type', BOTH, [
    ['metadata: {name: x}', `metadata ${UNKNOWN}`],
    ['status: {}', `status ${UNKNOWN}`],
  ]),
  ...refuses('names of built-in JavaScript properties', BOTH, [
    ['__proto__: {maxPods: 5}', `__proto__ ${UNKNOWN}`],
    ['constructor: 5', `constructor ${UNKNOWN}`],
    ['toString: 5', `toString ${UNKNOWN}`],
  ]),
  ...accepts('anchors, aliases and merge keys', BOTH, [
    ['kubeReserved: &r {cpu: "1"}\nsystemReserved: *r', { kubeReserved: { cpu: '1' }, systemReserved: { cpu: '1' } }],
    [
      'kubeReserved: &r {cpu: "1"}\nsystemReserved: {<<: *r, memory: 1Gi}',
      { kubeReserved: { cpu: '1' }, systemReserved: { cpu: '1', memory: '1Gi' } },
    ],
  ]),
  {
    rule: 'duplicate keys: the last one is used',
    minors: BOTH,
    yaml: 'maxPods: 5\nmaxPods: 6',
    value: { maxPods: 6 },
    problems: [`maxPods ${DUPLICATE}`],
  },
  {
    rule: 'duplicate keys: overridden values are not validated',
    minors: BOTH,
    yaml: 'maxPods: many\nmaxPods: 6',
    value: { maxPods: 6 },
    problems: [`maxPods ${DUPLICATE}`],
  },
  {
    rule: 'duplicate keys in maps',
    minors: BOTH,
    yaml: 'kubeReserved: {cpu: "1", cpu: "2"}',
    value: { kubeReserved: { cpu: '2' } },
    problems: [`kubeReserved[cpu] ${DUPLICATE}`],
  },
  {
    rule: 'a wrong value does not hide the rest',
    minors: BOTH,
    yaml: 'maxPods: x\nclusterDNS: [a, 5]\nauthentication: {webhook: {cacheTTL: 1, enabled: true}}\nport: 10250',
    value: { clusterDNS: ['a'], authentication: { webhook: { enabled: true } }, port: 10250 },
    problems: [`maxPods ${WRONG}`, `clusterDNS[1] ${WRONG}`, `authentication.webhook.cacheTTL ${DURATION}`],
  },
];
