import { formatGoDuration } from '../../base/text/go-duration.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { faultOfImageName, nameHasRegistry } from './image-reference.ts';
import type { Finding, Rule } from './rule.ts';
import { durationAt, isTrue, listAt, numberAt, textAt } from './values.ts';

const HIGH = 'imageGCHighThresholdPercent';
const LOW = 'imageGCLowThresholdPercent';
const ALLOWLIST = 'preloadedImagesVerificationAllowlist';
const POLICY = 'imagePullCredentialsVerificationPolicy';

/** Pulling, verification and garbage collection of images. */
export const IMAGE_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_IMAGE_GC_ORDER',
    since: 12,
    check: ({ config }) => {
      const [low = 0, high = 0] = [numberAt(config, LOW), numberAt(config, HIGH)];
      if (low < high) return [];
      return [{ path: LOW, near: [HIGH], message: `must be less than ${HIGH}, but ${low} is not below ${high}` }];
    },
  },
  {
    id: 'KUBELET_NEGATIVE_AGE',
    since: 36,
    check: ({ config }) => negativeAge('imageMinimumGCAge', durationAt(config, 'imageMinimumGCAge')),
  },
  {
    id: 'KUBELET_NEGATIVE_AGE',
    since: 29,
    check: ({ config }) => negativeAge('imageMaximumGCAge', durationAt(config, 'imageMaximumGCAge')),
  },
  {
    id: 'KUBELET_IMAGE_AGE_ORDER',
    since: 29,
    check: ({ config }) => {
      const [max = 0n, min = 0n] = [durationAt(config, 'imageMaximumGCAge'), durationAt(config, 'imageMinimumGCAge')];
      if (max <= 0n || max > min) return [];
      const message = `must be above imageMinimumGCAge (${formatGoDuration(min)}), not ${formatGoDuration(max)}`;
      return [{ path: 'imageMaximumGCAge', near: ['imageMinimumGCAge'], message }];
    },
  },
  {
    id: 'KUBELET_PARALLEL_PULLS',
    since: 27,
    check: ({ config }) => {
      if (!isTrue(config, 'serializeImagePulls') || (numberAt(config, 'maxParallelImagePulls') ?? 0) <= 1) return [];
      const message = 'more than 1 contradicts serializeImagePulls: true';
      return [{ path: 'maxParallelImagePulls', near: ['serializeImagePulls'], message, hint: 'Set serializeImagePulls to false' }];
    },
  },
  {
    id: 'KUBELET_IMAGE_ALLOWLIST',
    since: 33,
    check: ({ config, gates, minor }) => {
      const patterns = listAt(config, ALLOWLIST);
      if (patterns.length === 0 || !gates.isEnabled('KubeletEnsureSecretPulledImages')) return [];
      if (textAt(config, POLICY) !== 'NeverVerifyAllowlistedImages') {
        const message = `is used only with ${POLICY}: NeverVerifyAllowlistedImages`;
        return [{ path: ALLOWLIST, near: [POLICY], message, hint: `Set ${POLICY}: NeverVerifyAllowlistedImages, or remove the list` }];
      }
      return patterns.flatMap((pattern, index): Finding[] => {
        const fault = faultOfPattern(String(pattern), minor >= SHORT_NAMES_SINCE);
        return fault === null ? [] : [{ path: `${ALLOWLIST}[${index}]`, message: `${quoteValue(String(pattern))} ${fault}` }];
      });
    },
  },
];

/** The first minor that accepts names without a registry, such as `app`. */
const SHORT_NAMES_SINCE = 36;

function negativeAge(path: string, age: bigint | undefined): readonly Finding[] {
  return age === undefined || age >= 0n ? [] : [{ path, message: `must not be negative, but is ${formatGoDuration(age)}` }];
}

/** @see kubernetes/kubernetes pkg/kubelet/images/pullmanager/image_pull_policies.go (1.33 to 1.36) */
function faultOfPattern(pattern: string, shortNames: boolean): string | null {
  if (SPACE.test(pattern.charAt(0)) || SPACE.test(pattern.charAt(pattern.length - 1))) return 'has surrounding spaces';
  if (pattern === '') return 'is empty';
  const isWildcard = pattern.endsWith('/*');
  const name = isWildcard ? pattern.slice(0, -1) : pattern;
  if (name.includes('*')) return 'has a * outside a separate last part';
  if (isWildcard) return name.length === 1 ? 'has no registry' : null;
  const fault = faultOfImageName(name);
  if (fault !== null) return fault;
  return shortNames || nameHasRegistry(name) ? null : 'must begin with the host of its registry';
}

/** White space as defined by Go. */
const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
