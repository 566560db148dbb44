import { numberAt, textAt } from '../documents/values.ts';
import { type Finding, type Rule, type RuleFacts, unknownEnumValue } from './rule.ts';

const PORT = 'must be a port from 1 to 65535';
const PORT_OR_OFF = 'must be a port from 1 to 65535, or 0 to disable it';
const NOT_NEGATIVE = 'must be 0 or more';
const PERCENT = 'must be a percentage from 0 to 100';
const BIT = 'must be a bit from 0 to 31';

/** Integers and their bounds, the same in every minor with the field unless a rule below differs. */
const BOUNDS: readonly { readonly path: string; readonly min?: number; readonly max?: number; readonly words: string }[] = [
  { path: 'nodeLeaseDurationSeconds', min: 1, words: 'must be greater than 0' },
  { path: 'eventBurst', min: 0, words: NOT_NEGATIVE },
  { path: 'eventRecordQPS', min: 0, words: NOT_NEGATIVE },
  { path: 'healthzPort', min: 0, max: 65535, words: PORT_OR_OFF },
  { path: 'port', min: 1, max: 65535, words: PORT },
  { path: 'readOnlyPort', min: 0, max: 65535, words: PORT_OR_OFF },
  { path: 'imageGCHighThresholdPercent', min: 0, max: 100, words: PERCENT },
  { path: 'imageGCLowThresholdPercent', min: 0, max: 100, words: PERCENT },
  { path: 'iptablesDropBit', min: 0, max: 31, words: BIT },
  { path: 'iptablesMasqueradeBit', min: 0, max: 31, words: BIT },
  { path: 'kubeAPIBurst', min: 0, words: NOT_NEGATIVE },
  { path: 'kubeAPIQPS', min: 0, words: NOT_NEGATIVE },
  { path: 'nodeStatusMaxImages', min: -1, words: 'must be 0 or more, or -1 for all' },
  { path: 'maxOpenFiles', min: 0, words: NOT_NEGATIVE },
  { path: 'maxPods', min: 0, words: NOT_NEGATIVE },
  { path: 'podsPerCore', min: 0, words: NOT_NEGATIVE },
  { path: 'oomScoreAdj', min: -1000, max: 1000, words: 'must be from -1000 to 1000' },
  { path: 'registryBurst', min: 0, words: NOT_NEGATIVE },
  { path: 'registryPullQPS', min: 0, words: NOT_NEGATIVE },
  { path: 'maxParallelImagePulls', min: 1, words: 'must be 1 or more' },
  { path: 'containerLogMaxWorkers', min: 1, words: 'must be 1 or more' },
  { path: 'logging.verbosity', max: 2 ** 31 - 1, words: `must be at most ${2 ** 31 - 1}` },
  { path: 'tracing.samplingRatePerMillion', min: 0, max: 1_000_000, words: 'must be from 0 to 1000000' },
];

export const NUMBER_RULES: readonly Rule[] = [
  { id: 'KUBELET_OUT_OF_RANGE', check: (facts) => BOUNDS.flatMap((bound) => checkBound(bound, facts)) },
  {
    id: 'KUBELET_OUT_OF_RANGE',
    since: 33,
    check: (facts) => checkBound({ path: 'containerLogMaxFiles', min: 2, words: 'must be 2 or more' }, facts),
  },
  { id: 'KUBELET_OUT_OF_RANGE', since: 22, check: checkThrottling },
  { id: 'KUBELET_OUT_OF_RANGE', since: 33, check: checkIdsPerPod },
];

function checkBound({ path, min, max, words }: (typeof BOUNDS)[number], { config }: RuleFacts): readonly Finding[] {
  const value = numberAt(config, path);
  if (value === undefined || (value >= (min ?? value) && value <= (max ?? value))) return [];
  return [{ path, message: `${words}, not ${value}` }];
}

function checkThrottling({ config }: RuleFacts): readonly Finding[] {
  const value = numberAt(config, 'memoryThrottlingFactor');
  if (value === undefined || (value > 0 && value <= 1)) return [];
  return [{ path: 'memoryThrottlingFactor', message: `must be greater than 0 and at most 1, not ${value}` }];
}

/** IDs are allocated in blocks of this size. */
const ID_BLOCK = 65536;

function checkIdsPerPod({ config }: RuleFacts): readonly Finding[] {
  const path = 'userNamespaces.idsPerPod';
  const value = numberAt(config, path);
  if (value === undefined || (value >= ID_BLOCK && value % ID_BLOCK === 0 && value <= 2 ** 32 - 1)) return [];
  return [{ path, message: `must be a multiple of ${ID_BLOCK}, from ${ID_BLOCK} to ${2 ** 32 - ID_BLOCK}, not ${value}` }];
}

/** Enumerations; letter case matters. */
export const ENUM_RULES: readonly Rule[] = [
  words('hairpinMode', ['promiscuous-bridge', 'hairpin-veth', 'none']),
  { ...words('topologyManagerPolicy', ['none', 'best-effort', 'restricted', 'single-numa-node']), since: 20 },
  words('topologyManagerScope', ['container', 'pod']),
  { ...words('logging.format', ['text', 'json']), id: 'KUBELET_LOGGING_FORMAT' },
  { ...words('memoryReservationPolicy', ['None', 'TieredReservation']), since: 36 },
  { ...words('memorySwap.swapBehavior', ['LimitedSwap', 'UnlimitedSwap'], 'NodeSwap'), since: 22, until: 29 },
  { ...words('memorySwap.swapBehavior', ['LimitedSwap', 'NoSwap'], 'NodeSwap'), since: 30 },
  {
    ...words(
      'imagePullCredentialsVerificationPolicy',
      ['NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'],
      'KubeletEnsureSecretPulledImages',
    ),
    since: 33,
  },
];

/** The empty string is valid: a default that was not filled in. @param gate without it, all words are valid */
function words(path: string, known: readonly string[], gate?: string): Rule {
  return {
    id: 'KUBELET_UNKNOWN_WORD',
    check: ({ config, gates }) => {
      const word = textAt(config, path);
      const isValid = word === '' || known.includes(word) || (gate !== undefined && !gates.isEnabled(gate));
      return isValid ? [] : [{ path, ...unknownEnumValue(word, known) }];
    },
  };
}
