import type { Json, JsonObject } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { parseQuantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { defaultEvictionHard } from '../catalogue/conditional-defaults.ts';
import { entriesAt, isTrue } from '../documents/values.ts';
import { type Finding, type Rule, unknownEnumValue } from './rule.ts';

/** The last minor that may have the signal allocatableNodeFs.available: the source names no exact minor before 1.20. */
const ALLOCATABLE_NODE_FS_UNTIL: Minor = 19;
/** The first minor with a container file system separate from the image file system. */
const CONTAINER_FS_SINCE: Minor = 29;

const FIELDS = ['evictionHard', 'evictionSoft', 'evictionSoftGracePeriod', 'evictionMinimumReclaim'] as const;

/**
 * Eviction thresholds that the kubelet cannot parse: it exits at startup.
 * @see kubernetes/kubernetes pkg/kubelet/eviction/helpers.go (1.20 to 1.36)
 */
export const EVICTION_STARTUP_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_START_EVICTION_SIGNAL',
    check: ({ given, minor }) =>
      FIELDS.flatMap((field) =>
        entriesAt(given, field).flatMap(([signal]): Finding[] => {
          const known = signalsOf(minor);
          return known.includes(signal) ? [] : [{ path: `${field}[${signal}]`, ...unknownEnumValue(signal, known) }];
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

/**
 * A map of hard thresholds without some of the default signals: the kubelet replaces all defaults by the map, so that
 * for example a full disk evicts no pods.
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, pkg/kubelet/eviction/helpers.go
 *   mergeDefaultEvictionSettings (1.36)
 */
export const EVICTION_ADVICE_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_EVICTION_PARTIAL',
    check: ({ given, minor }) => partialEviction(given, minor),
  },
];

const MERGE_SINCE: Minor = 33;

/** The finding for a partial `evictionHard`; empty: none. */
export function partialEviction(config: JsonObject, minor: Minor): readonly Finding[] {
  const path = 'evictionHard';
  const entries = entriesAt(config, path);
  const named = entries.map(([signal]) => signal);
  const others = Object.keys(defaultEvictionHard(minor)).filter((signal) => !named.includes(signal));
  const isInvalid = ([signal, value]: readonly [string, Json]): boolean =>
    !signalsOf(minor).includes(signal) || faultOfThreshold(String(value)) !== null;
  if (named.length === 0 || entries.some(isInvalid) || others.length === 0 || isTrue(config, 'mergeDefaultEvictionSettings')) return [];
  const message = `replaces the default thresholds of all signals: ${others.join(', ')} evict${others.length === 1 ? 's' : ''} no pods`;
  const merge = minor >= MERGE_SINCE ? ', or set mergeDefaultEvictionSettings: true' : '';
  return [{ path, message, hint: `Name all signals (0% turns one off)${merge}` }];
}

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

/** Percentages that disable a threshold. */
function isIgnored(text: string): boolean {
  return text === '0%' || text === '100%';
}

function faultOfThreshold(text: string): string | null {
  if (isIgnored(text)) return null;
  if (text.endsWith('%')) {
    const percentage = parsePercentage(text);
    if (percentage === null) return 'is not a percentage';
    return percentage < 0 || percentage > 100 ? 'is not between 0% and 100%' : null;
  }
  const quantity = parseQuantity(text);
  if (quantity === null)
    return text.startsWith('<') ? 'is not a quantity: write the value without <' : 'is neither a quantity nor a percentage';
  return quantitySign(quantity) === 1 ? null : 'must be greater than zero';
}

function faultOfGracePeriod(text: string): string | null {
  const period = parseGoDuration(text);
  if (period === null) return 'is not a duration';
  return period < 0n ? 'is negative' : null;
}

function faultOfReclaim(text: string): string | null {
  if (text.endsWith('%')) {
    const percentage = parsePercentage(text);
    if (percentage === null) return 'is not a percentage';
    return percentage > 0 ? null : 'must be greater than zero';
  }
  const quantity = parseQuantity(text);
  if (quantity === null) return 'is neither a quantity nor a percentage';
  return quantitySign(quantity) === -1 ? 'is negative' : null;
}

/** Several trailing percent signs are accepted. Numbers have 32 bits; Go's words for numbers (`NaN`) are rejected. */
function parsePercentage(text: string): number | null {
  const match = /^([+-]?(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9]+)?)%+$/.exec(text);
  const percentage = Math.fround(Number(match?.[1]?.replaceAll('_', '') ?? Number.NaN));
  return Number.isFinite(percentage) ? percentage : null;
}
