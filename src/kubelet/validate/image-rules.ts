import { formatGoDuration } from '../../base/text/go-duration.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { durationAt, isTrue, listAt, numberAt, textAt } from '../documents/values.ts';
import type { Finding, Rule } from './rule.ts';

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

const DOMAIN_PART = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const DOMAIN = `(?:${DOMAIN_PART}(?:\\.${DOMAIN_PART})*|\\[(?:[a-fA-F0-9:]+)\\])(?::[0-9]+)?`;
const PATH_PART = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const PATH = `${PATH_PART}(?:/${PATH_PART})*`;
const REFERENCE = new RegExp(
  `^((?:(${DOMAIN})/)?(${PATH}))(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`,
);
const MAX_PATH = 255;

/**
 * The reason why a text is not an image name without tag or digest: a clause, or null if valid.
 * @see github.com/distribution/reference (the grammar of its Parse)
 */
function faultOfImageName(text: string): string | null {
  if (text.length > 4096) return 'is too long for an image name';
  const match = REFERENCE.exec(text);
  if (match === null) return REFERENCE.test(text.toLowerCase()) ? 'must be in lower case' : 'is not an image name';
  const [, , , path = '', tag, digest] = match;
  if (tag !== undefined || digest !== undefined) return `must have no ${digest === undefined ? 'tag' : 'digest'}`;
  return path.length > MAX_PATH ? 'is too long for an image name' : null;
}

/** Whether a name includes the host of its registry, so that normalization does not change it. */
function nameHasRegistry(name: string): boolean {
  const slash = name.indexOf('/');
  if (slash === -1) return false;
  const host = name.slice(0, slash);
  const isHost = /[.:]/.test(host) || host === 'localhost' || host.toLowerCase() !== host;
  if (!isHost || host === 'index.docker.io') return false;
  return host !== 'docker.io' || name.slice(slash + 1).includes('/');
}
