import { quoteValue } from '../../codec/document-problems.ts';
import { textAt } from '../documents/values.ts';
import type { Finding, Rule, RuleFacts } from './rule.ts';

/** Enumerations; letter case matters. */
export const ENUM_RULES: readonly Rule[] = [
  words('hairpinMode', ['promiscuous-bridge', 'hairpin-veth', 'none']),
  { ...words('topologyManagerPolicy', ['none', 'best-effort', 'restricted', 'single-numa-node']), since: 20 },
  words('topologyManagerScope', ['container', 'pod']),
  { ...words('logging.format', ['text', 'json']), id: 'KUBELET_LOGGING_FORMAT' },
  { ...words('memoryReservationPolicy', ['None', 'TieredReservation']), since: 36 },
  {
    id: 'KUBELET_UNKNOWN_WORD',
    since: 22,
    until: 29,
    check: (facts) => (facts.gates.isEnabled('NodeSwap') ? checkWord(SWAP, ['LimitedSwap', 'UnlimitedSwap'], facts) : []),
  },
  {
    id: 'KUBELET_UNKNOWN_WORD',
    since: 30,
    check: (facts) => (facts.gates.isEnabled('NodeSwap') ? checkWord(SWAP, ['LimitedSwap', 'NoSwap'], facts) : []),
  },
  {
    id: 'KUBELET_UNKNOWN_WORD',
    since: 33,
    check: (facts) => (facts.gates.isEnabled('KubeletEnsureSecretPulledImages') ? checkWord(PULL_POLICY, PULL_POLICIES, facts) : []),
  },
];

const SWAP = 'memorySwap.swapBehavior';
const PULL_POLICY = 'imagePullCredentialsVerificationPolicy';
const PULL_POLICIES = ['NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'];

function words(path: string, known: readonly string[]): Rule {
  return { id: 'KUBELET_UNKNOWN_WORD', check: (facts) => checkWord(path, known, facts) };
}

/** The empty string is valid: a default that was not filled in. */
function checkWord(path: string, known: readonly string[], { config }: RuleFacts): readonly Finding[] {
  const word = textAt(config, path);
  return word === '' || known.includes(word) ? [] : [{ path, ...unknownEnumValue(word, known) }];
}

/** The finding for an unknown word. */
export function unknownEnumValue(word: string, known: readonly string[]): Pick<Finding, 'message' | 'guess'> {
  const list = known.length < 2 ? known.join('') : `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`;
  return { message: `must be ${list}, not ${quoteValue(word)}`, guess: { word, among: known } };
}
