import { CONFIG_KINDS } from '../core/config/document-header.ts';
import { loadConfig } from '../core/config/load.ts';
import type { Problem } from '../core/errors.ts';
import { type Catalogue, isSupportedMinor, type Minor, NEWEST_MINOR, parseMinor } from '../core/kubelet/catalogue.ts';
import { judgeKubeletConfiguration } from '../core/kubelet/validate/judge.ts';

/**
 * Judges a file with kubeadm's documents. A KubeletConfiguration among them is judged by the version chosen, else by that of the
 * ClusterConfiguration beside it, else by the newest.
 * @returns all problems in order of position
 */
export function judgeDocuments(
  text: string,
  file: string,
  options: { readonly catalogue: Catalogue; readonly chosen: Minor | null; readonly lenient: boolean; readonly allowDeprecated: boolean },
): readonly Problem[] {
  const { catalogue, chosen, lenient, allowDeprecated } = options;
  const config = loadConfig(text, file, { kinds: CONFIG_KINDS, allowDeprecated });
  if (config.kubelet === undefined) return config.problems;
  const declared = parseMinor(config.cluster?.kubernetesVersion ?? '');
  const minor = chosen ?? (declared !== null && isSupportedMinor(declared) ? declared : NEWEST_MINOR);
  return [...config.problems, ...judgeKubeletConfiguration(config.kubelet, { minor, catalogue, lenient }).problems].sort(byPosition);
}

function byPosition(a: Problem, b: Problem): number {
  return (a.position?.line ?? 0) - (b.position?.line ?? 0) || (a.position?.column ?? 0) - (b.position?.column ?? 0);
}
