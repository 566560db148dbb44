import type { Json } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { parseQuantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Minor } from '../catalogue.ts';
import type { Finding, Rule } from './rule.ts';
import { entriesAt } from './values.ts';
import { unknownWord } from './word-rules.ts';

/** The last minor that may know the signal allocatableNodeFs.available: the source names no exact minor before 1.20. */
const ALLOCATABLE_NODE_FS_UNTIL: Minor = 19;
/** The first minor that knows the file system of containers apart from that of images. */
const CONTAINER_FS_SINCE: Minor = 29;

const FIELDS = ['evictionHard', 'evictionSoft', 'evictionSoftGracePeriod', 'evictionMinimumReclaim'] as const;

/**
 * Eviction thresholds the kubelet cannot read: it exits when it starts.
 * @see kubernetes/kubernetes pkg/kubelet/eviction/helpers.go (1.20 to 1.36)
 */
export const EVICTION_STARTUP_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_START_EVICTION_SIGNAL',
    check: ({ given, minor }) =>
      FIELDS.flatMap((field) =>
        entriesAt(given, field).flatMap(([signal]): Finding[] => {
          const known = signalsOf(minor);
          return known.includes(signal) ? [] : [{ path: `${field}[${signal}]`, ...unknownWord(signal, known) }];
        }),
      ),
  },
  {
    id: 'KUBELET_START_EVICTION_VALUE',
    check: ({ given }) => [
      ...members(given, 'evictionHard', faultOfThreshold),
      ...members(given, 'evictionSoft', faultOfThreshold),
      ...members(given, 'evictionSoftGracePeriod', faultOfGracePeriod),
      ...members(given, 'evictionMinimumReclaim', faultOfReclaim),
    ],
  },
  {
    id: 'KUBELET_START_EVICTION_GRACE',
    check: ({ given }) => {
      const graced = new Set(entriesAt(given, 'evictionSoftGracePeriod').map(([signal]) => signal));
      return entriesAt(given, 'evictionSoft')
        .filter(([signal, value]) => !graced.has(signal) && !isIgnored(String(value)))
        .map(([signal]) => ({
          path: `evictionSoft[${signal}]`,
          near: ['evictionSoftGracePeriod'],
          message: 'a soft threshold needs a grace period',
          hint: `Set evictionSoftGracePeriod for ${signal}`,
        }));
    },
  },
];

function signalsOf(minor: Minor): readonly string[] {
  const signals = [
    'memory.available',
    'nodefs.available',
    'nodefs.inodesFree',
    'imagefs.available',
    'imagefs.inodesFree',
    'pid.available',
    'allocatableMemory.available',
  ];
  if (minor <= ALLOCATABLE_NODE_FS_UNTIL) return [...signals, 'allocatableNodeFs.available'];
  return minor >= CONTAINER_FS_SINCE ? [...signals, 'containerfs.available', 'containerfs.inodesFree'] : signals;
}

function members(config: Parameters<typeof entriesAt>[0], field: string, faultOf: (text: string) => string | null): readonly Finding[] {
  return entriesAt(config, field).flatMap(([name, value]: readonly [string, Json]): Finding[] => {
    const fault = faultOf(String(value));
    return fault === null ? [] : [{ path: `${field}[${name}]`, message: `${quoteValue(String(value))} ${fault}` }];
  });
}

/** A percentage that switches a threshold off. */
function isIgnored(text: string): boolean {
  return text === '0%' || text === '100%';
}

function faultOfThreshold(text: string): string | null {
  if (isIgnored(text)) return null;
  if (text.endsWith('%')) {
    const percentage = parsePercentage(text);
    if (percentage === null) return 'is no percentage';
    return percentage < 0 || percentage > 100 ? 'is not between 0% and 100%' : null;
  }
  const quantity = parseQuantity(text);
  if (quantity === null)
    return text.startsWith('<') ? 'is no quantity: the field takes the value alone, without <' : 'is no quantity and no percentage';
  return quantitySign(quantity) === 1 ? null : 'is not above zero';
}

function faultOfGracePeriod(text: string): string | null {
  const period = parseGoDuration(text);
  if (period === null) return 'is no duration';
  return period < 0n ? 'is negative' : null;
}

function faultOfReclaim(text: string): string | null {
  if (text.endsWith('%')) {
    const percentage = parsePercentage(text);
    if (percentage === null) return 'is no percentage';
    return percentage > 0 ? null : 'is not above zero';
  }
  const quantity = parseQuantity(text);
  if (quantity === null) return 'is no quantity and no percentage';
  return quantitySign(quantity) === -1 ? 'is negative' : null;
}

/** Any number of percent signs may stand at the end. Numbers have 32 bits; the words Go takes for numbers (`NaN`) are nobody's percentage. */
function parsePercentage(text: string): number | null {
  const match = /^([+-]?(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9]+)?)%+$/.exec(text);
  const percentage = Math.fround(Number(match?.[1]?.replaceAll('_', '') ?? Number.NaN));
  return Number.isFinite(percentage) ? percentage : null;
}
