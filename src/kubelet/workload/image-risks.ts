import type { JsonObject } from '../../base/json.ts';
import { listAt, textAt } from '../documents/values.ts';
import { loss, type PodRisk, presentPods, warning } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

/** Fields that decide whether a pod must prove that it may pull an image that is on the node. */
export const IMAGE_POLICY = ['imagePullCredentialsVerificationPolicy', 'preloadedImagesVerificationAllowlist'] as const;

const NAMED = 3;

/**
 * Images of running pods that their containers could not use at their next start: the kubelet would verify pull
 * credentials for them, and it has no record that it pulled them. It then pulls the image, also for `IfNotPresent`, and
 * refuses it for `Never`.
 * @see kubernetes/kubernetes pkg/kubelet/images/pullmanager MustAttemptImagePull, and image_manager.go EnsureImageExists
 *   (1.36)
 */
export function imageRisks({ before, after, pods, host }: RiskInput): readonly PodRisk[] {
  const path = 'imagePullCredentialsVerificationPolicy';
  const records = host?.pulledImages ?? null;
  const containers = presentPods(pods, ({ images }) => images !== undefined).flatMap(({ name, images = [] }) =>
    images.map((one) => ({ ...one, pod: name })),
  );
  const affected = containers.filter(
    ({ image, pullPolicy }) =>
      pullPolicy !== 'Always' &&
      mustVerify(after, image) &&
      (before === null || !mustVerify(before, image)) &&
      records?.includes(nameOf(image)) !== true,
  );
  if (affected.length === 0) return [];
  const images = [...new Set(affected.map(({ image }) => image))].toSorted();
  const shown = `${images.slice(0, NAMED).join(', ')}${images.length > NAMED ? ` and ${images.length - NAMED} more` : ''}`;
  const users = [...new Set(affected.map(({ pod }) => pod))].toSorted();
  const of = `${users.slice(0, NAMED).join(', ')}${users.length > NAMED ? ` and ${users.length - NAMED} more pods` : ''}`;
  const isNever = affected.some(({ pullPolicy }) => pullPolicy === 'Never');
  const policy = textAt(after, path);
  if (records === null) {
    const why = `with ${path} ${policy} the kubelet verifies pull credentials for ${shown}; whether it has records of these images is unknown, and containers of ${of} may not start again`;
    return [warning(path, why)];
  }
  const why = `with ${path} ${policy} the kubelet needs pull credentials for ${shown}, which it did not pull: at their next start, containers of ${of} ${isNever ? 'could not start (imagePullPolicy Never)' : 'would pull the images again, and could not start if that fails'}`;
  return [loss(path, why)];
}

function mustVerify(config: JsonObject, image: string): boolean {
  const policy = textAt(config, 'imagePullCredentialsVerificationPolicy');
  if (policy === 'AlwaysVerify') return true;
  if (policy !== 'NeverVerifyAllowlistedImages') return false;
  const name = nameOf(image);
  const patterns = listAt(config, 'preloadedImagesVerificationAllowlist').map(String);
  return !patterns.some((pattern) => (pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
}

/** The image without tag and digest, as the records of the kubelet and the allowlist name it. */
export function nameOf(image: string): string {
  const [name = ''] = image.split('@');
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(0, colon) : name;
}
