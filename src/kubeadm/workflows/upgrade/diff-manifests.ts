import { AppError } from '../../../base/errors.ts';
import { revealText } from '../../../base/text/secret.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { unifiedDiff } from '../../../host/plan/text-diff.ts';
import { applyClusterDefaults, DEFAULT_TIMEOUTS } from '../../config/defaults.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { manifestFile } from '../../control-plane/manifests.ts';
import type { ControlPlaneNode } from '../../control-plane/model.ts';
import { manifestPath } from '../../control-plane/paths.ts';
import { caDirectoriesOf } from '../../facts/control-plane-host.ts';
import { apiEndpointOf, KUBERNETES_COMPONENTS, missingManifests, proxyVariablesOf } from '../../upgrade/static-pod-state.ts';

/**
 * The differences between the static Pod manifests of a control plane and those of a version. The endpoint of the API server
 * and the proxy variables are those of the existing manifests.
 * @returns unified diffs; empty when all manifests are equal
 * @throws AppError UPGRADE_MANIFEST_MISSING (exit code 3)
 * @see kubeadm 1.36 upgrade diff
 */
export async function diffManifests(
  host: Host,
  options: {
    /** Of kubeadm-config. */
    readonly cluster: ClusterConfiguration;
    /** `v1.36.2` */
    readonly version: string;
    /** Number of unchanged lines around each difference. */
    readonly contextLines: number;
    /** Prefix of the names of files, e.g. `cp1:`. */
    readonly prefix: string;
  },
  signal?: AbortSignal,
): Promise<string> {
  const cluster = applyClusterDefaults({ ...options.cluster, kubernetesVersion: options.version });
  const caFile = (name: string) => ({ kind: 'file', path: `${cluster.certificatesDir}/${name}`, content: false }) as const;
  const facts = combineFacts({
    files: fileFacts(KUBERNETES_COMPONENTS.map(manifestPath)),
    caDirectories: caDirectoriesOf(),
    externalCA: defineFact({ crt: caFile('ca.crt'), key: caFile('ca.key') }, ({ crt, key }) => crt !== null && key === null),
  });
  const { files, caDirectories, externalCA } = await observe(host, facts, signal);
  const missing = missingManifests((path) => (files.get(path) ?? null) !== null);
  if (missing !== null) throw new AppError({ host: host.name, code: 'UPGRADE_MANIFEST_MISSING', ...missing }, { exitCode: 3 });
  const textOf = (path: string): string => files.get(path)?.content ?? '';
  const apiServer = textOf(manifestPath('kube-apiserver'));
  const node: ControlPlaneNode = {
    cluster,
    // Only the manifest of etcd has the name.
    nodeName: host.name,
    localAPIEndpoint: apiEndpointOf(apiServer) ?? { advertiseAddress: '', bindPort: 6443 },
    timeouts: DEFAULT_TIMEOUTS,
    patches: [],
    caDirectories,
    etcdMembers: null,
    externalCA,
    proxyEnvironment: proxyVariablesOf(apiServer),
    kubeProxy: null,
  };
  return KUBERNETES_COMPONENTS.map((name) => {
    const path = manifestPath(name);
    const names = { before: `${options.prefix}${path}`, after: 'new manifest' };
    return unifiedDiff(textOf(path), revealText(manifestFile(node, name).content), names, options.contextLines);
  }).join('');
}
