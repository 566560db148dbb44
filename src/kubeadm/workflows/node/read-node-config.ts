import { AppError } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import {
  type Catalogue,
  formatMinor,
  type Minor,
  NEWEST_MINOR,
  OLDEST_KNOWN_MINOR,
  parseMinor,
} from '../../../kubelet/catalogue/catalogue.ts';
import { readConfigz } from '../../../kubelet/effective/configz.ts';
import { configzPath } from '../../../kubelet/health/observe-change.ts';

/**
 * Reads /configz of a node's kubelet through the API server.
 * @throws AppError NODE_NOT_FOUND, NODE_NOT_READY (the kubelet has not reported its version yet), KUBELET_UNSUPPORTED,
 * CONFIGZ_INVALID, the errors of the API server
 */
export async function readNodeConfig(
  cluster: Cluster,
  name: string,
  catalogue: Catalogue,
): Promise<{
  readonly minor: Minor;
  /** e.g. `v1.36.2`. */
  readonly version: string;
  /** In the shape of `decodeKubeletConfiguration`. */
  readonly config: JsonObject;
  readonly node: KubeObject;
}> {
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name });
  const host = `node/${name}`;
  if (node === null)
    throw new AppError(
      {
        host,
        code: 'NODE_NOT_FOUND',
        message: `the Node does not exist at ${cluster.server}`,
        hint: 'List the Nodes with kubectl get nodes',
      },
      { exitCode: 2 },
    );
  const version = (node.status as { readonly nodeInfo?: { readonly kubeletVersion?: string } } | undefined)?.nodeInfo?.kubeletVersion ?? '';
  if (version === '')
    throw new AppError({
      host,
      code: 'NODE_NOT_READY',
      message: 'the kubelet has not reported its version yet',
      hint: 'Wait until the Node is Ready',
    });
  const minor = parseMinor(version);
  if (minor === null || minor < OLDEST_KNOWN_MINOR)
    throw new AppError({
      host,
      code: 'KUBELET_UNSUPPORTED',
      message: `kubelet ${version} is not supported; supported versions: ${formatMinor(OLDEST_KNOWN_MINOR)} to ${formatMinor(NEWEST_MINOR)}`,
    });
  const known = Math.min(minor, NEWEST_MINOR);
  const answer = await cluster.getRaw(configzPath(name));
  return { node, minor: known, version, config: readConfigz(answer, name, { minor: known, catalogue }) };
}
