import { isJsonObject } from '../../base/json.ts';
import { observe } from '../../host/access/observe.ts';
import { fullImageName, listImages } from '../../host/cri/runtime-commands.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';
import { definePhase } from '../../host/phase.ts';
import type { PullPolicy } from '../config/model.ts';

export interface PullImagesInput {
  readonly images: readonly string[];
  readonly criSocket: string;
  readonly policy: PullPolicy;
  /** The preflight check ImagePull is ignored. */
  readonly ignored?: boolean;
  /** Without a tool that queries the runtime, the phase fails: the command exists to pull. Default: the kubelet pulls. */
  readonly isRequired?: boolean;
}

/** The images of the runtime; null: it cannot be queried. */
type Found = ReadonlySet<string> | null;

/**
 * Pulls the control plane images before anything is written, so that an unavailable image fails early.
 * kubeadm 1.36: preflight of init and join --control-plane, check ImagePull, which uses CRI directly. Here
 * crictl or ctr is used; without either, the kubelet pulls images when it starts the Pods.
 */
export const pullImages = definePhase<PullImagesInput, Found>({
  name: 'preflight/pull-images',
  short: 'Pull the control plane images',
  needsNoAddress: true,
  observe: ({ host, signal }, { criSocket }) => observe(host, runtimeImages(criSocket), signal),
  plan: (found, { images, criSocket, policy, ignored, isRequired }) => {
    if (ignored === true) return { changes: [], noop: 'skipped: the preflight check ImagePull is ignored' };
    if (policy === 'Never') return { changes: [], noop: 'imagePullPolicy is Never' };
    if (found === null && isRequired !== true)
      return {
        changes: [],
        noop: 'neither crictl nor ctr can query the container runtime: the kubelet pulls the images when it starts the Pods',
      };
    const missing = policy === 'Always' ? images : images.filter((image) => found?.has(fullImageName(image)) !== true);
    if (missing.length === 0) return { changes: [], noop: 'the images exist on the host' };
    const reason = policy === 'Always' ? 'imagePullPolicy is Always' : 'not on the host';
    return { changes: missing.map((image) => ({ kind: 'pull-image', image, criSocket, reason }) as const) };
  },
});

function runtimeImages(criSocket: string): Fact<Found> {
  return defineFact({ images: { kind: 'command', argv: listImages(criSocket) } }, ({ images }) =>
    images.exitCode === 0 ? parseImages(images.stdout) : null,
  );
}

/**
 * Image names with tags and digests from `crictl images --output json`, or one per line; null for other
 * output.
 */
export function parseImages(text: string): Found {
  const lines = text.split('\n').filter(Boolean);
  if (lines.every((line) => /^[^\s{[]\S*$/.test(line) && /[:@]./.test(line.slice(1)))) return new Set(lines);
  try {
    const answer: unknown = JSON.parse(text);
    const images = isJsonObject(answer) && Array.isArray(answer.images) ? answer.images.filter(isJsonObject) : [];
    const names = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []);
    return new Set(images.flatMap(({ repoTags, repoDigests }) => [...names(repoTags), ...names(repoDigests)]));
  } catch {
    return null;
  }
}
