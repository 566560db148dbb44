import { isJsonObject, type Json } from '../../../base/json.ts';
import { Secret, SensitiveText } from '../../../base/text/secret.ts';
import { parseSource, sourceToJson } from '../../../codec/source.ts';
import { encodeYaml } from '../../../codec/yaml-encode.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import { definePhase } from '../../../host/phase.ts';
import { type DesiredFile, diffFile } from '../../../host/plan/diff-file.ts';
import { revertChanges } from '../../../host/plan/revert.ts';
import { waitForUnit } from '../../../host/unit-ready.ts';
import { KUBECONFIG_LIMITS, parseKubeconfig, resolveContext } from '../../../kube/kubeconfig.ts';
import { KUBELET_CONF } from '../../../kube/well-known.ts';

export interface KubeletServerInput {
  /** The new kubelet.conf; null: unchanged. */
  readonly kubeconfig: DesiredFile | null;
  readonly noop: string;
}

const NAME = 'kubeconfig';

/**
 * Lets the kubelet of a control plane use the API server of its own host, and restarts the kubelet. Clusters of older
 * kubeadm versions have the control plane endpoint in kubelet.conf.
 * kubeadm 1.36: phase of this name, hidden in the help
 */
export const kubeletServer = definePhase<KubeletServerInput, FileFact | null>({
  name: NAME,
  short: 'Let the kubelet use the API server of its own host',
  verifiedState: 'the kubelet runs again',
  observe: async ({ host, signal }) => (await observe(host, fileFacts([KUBELET_CONF]), signal)).get(KUBELET_CONF) ?? null,
  plan: (found, { kubeconfig, noop }) => {
    const change = kubeconfig === null ? null : diffFile(found, kubeconfig);
    if (change === null) return { changes: [], noop };
    return { changes: [change, { kind: 'restart-unit', unit: 'kubelet', reason: `${KUBELET_CONF} changes`, impact: 'safe' }] };
  },
  verify: async (context, _, __, applied) => {
    if (applied.length > 0) await waitForUnit(context, NAME, { unit: 'kubelet', readyUrl: null });
  },
  undo: (_, applied) => [
    ...revertChanges(applied),
    { kind: 'restart-unit', unit: 'kubelet', reason: 'rolling back to the previous configuration' },
  ],
  verifyUndone: (context) => waitForUnit(context, NAME, { unit: 'kubelet', readyUrl: null }),
});

/**
 * The kubelet.conf with the local server instead of the control plane endpoint; null when it names another server.
 * @throws AppError as parseKubeconfig and resolveContext
 */
export function withLocalServer(
  text: string,
  { endpoint, local }: { readonly endpoint: string; readonly local: string },
): SensitiveText | null {
  const { cluster } = resolveContext(parseKubeconfig(text, KUBELET_CONF));
  if (endpoint === local || cluster.server !== endpoint) return null;
  const root = parseSource(text, KUBELET_CONF, KUBECONFIG_LIMITS).documents.find((document) => document.root !== null)?.root ?? null;
  const config = root === null ? {} : sourceToJson(root);
  if (!isJsonObject(config)) return null;
  const clusters = (Array.isArray(config.clusters) ? config.clusters : []).map((entry: Json): Json => {
    if (!isJsonObject(entry) || entry.name !== cluster.name || !isJsonObject(entry.cluster)) return entry;
    return { ...entry, cluster: { ...entry.cluster, server: local } };
  });
  return new SensitiveText([new Secret(encodeYaml({ ...config, clusters }))]);
}
