import type { Json, JsonObject } from '../../base/json.ts';
import type { Minor } from './catalogue.ts';
import type { FeatureGates } from './feature-gates.ts';

/** @param facts `config`: as written, before defaulting. @returns the value of the field; undefined: unset */
type ConditionalDefault = (
  facts: { readonly config: JsonObject; readonly minor: Minor; readonly gates: FeatureGates },
  usual: Json,
) => Json | undefined;

/**
 * Defaults that depend on other fields or on gates, by path.
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go (1.20 to 1.36)
 */
export const CONDITIONAL_DEFAULTS: ReadonlyMap<string, ConditionalDefault> = new Map<string, ConditionalDefault>([
  ['podPidsLimit', ({ config: { podPidsLimit } }) => (isNumberAtLeast(podPidsLimit, 0) ? podPidsLimit : -1)],
  [
    'nodeStatusReportFrequency',
    ({ config: { nodeStatusUpdateFrequency: given } }, usual) => (typeof given === 'string' && given !== '0s' ? given : usual),
  ],
  ['serializeImagePulls', ({ config, minor }) => !(minor >= PARALLEL_PULLS_SINCE && isNumberAtLeast(config.maxParallelImagePulls, 2))],
  ['crashLoopBackOff.maxContainerRestartPeriod', ({ gates }) => (gates.isEnabled('KubeletCrashLoopBackOffMax') ? '5m0s' : undefined)],
  [
    'imagePullCredentialsVerificationPolicy',
    ({ gates }) => (gates.isEnabled('KubeletEnsureSecretPulledImages') ? 'NeverVerifyPreloadedImages' : undefined),
  ],
]);

/** The first minor with `maxParallelImagePulls`. */
const PARALLEL_PULLS_SINCE: Minor = 27;

/** Numbers beyond 53 bits are strings. */
function isNumberAtLeast(value: Json | undefined, least: number): value is number | string {
  return (typeof value === 'number' || typeof value === 'string') && Number(value) >= least;
}

/** The first minor whose kubelet observes the inodes of the image file system by default. */
const IMAGE_INODES_SINCE: Minor = 30;

/**
 * The hard eviction thresholds of a Linux kubelet without configured ones. Up to 1.25 they are the field's
 * default; later kubelets set them after reading the configuration, and only if `evictionHard` is absent
 * (with `mergeDefaultEvictionSettings`: signal by signal).
 * @see kubernetes/kubernetes pkg/kubelet/eviction/defaults_linux.go, cmd/kubelet/app/server.go (1.26 to 1.36)
 */
export function defaultEvictionHard(minor: Minor): Readonly<Record<string, string>> {
  return {
    'imagefs.available': '15%',
    ...(minor >= IMAGE_INODES_SINCE ? { 'imagefs.inodesFree': '5%' } : {}),
    'memory.available': '100Mi',
    'nodefs.available': '10%',
    'nodefs.inodesFree': '5%',
  };
}
