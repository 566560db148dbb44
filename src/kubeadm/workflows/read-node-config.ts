import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type Catalogue, formatMinor, type Minor, NEWEST_MINOR, OLDEST_KNOWN_MINOR, parseMinor } from '../../kubelet/catalogue.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';

/** What the kubelet of a node runs with, as it says itself. */
export interface NodeConfigz {
  readonly minor: Minor;
  /** e.g. `v1.36.2`. */
  readonly version: string;
  /** As `decodeKubeletConfiguration` gives it. */
  readonly config: JsonObject;
}

/**
 * Asks the kubelet of a node for its configuration, through the API server.
 * @throws AppError NODE_NOT_FOUND, NODE_NOT_READY (it has not said its version yet), KUBELET_UNSUPPORTED, CONFIGZ_INVALID, what the API server says
 */
export async function readNodeConfig(cluster: Cluster, name: string, catalogue: Catalogue): Promise<NodeConfigz> {
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name });
  const host = `node/${name}`;
  if (node === null)
    throw new AppError(
      { host, code: 'NODE_NOT_FOUND', message: `${cluster.server} has no such Node`, hint: 'kubectl get nodes lists them' },
      { exitCode: 2 },
    );
  const version = (node.status as { readonly nodeInfo?: { readonly kubeletVersion?: string } } | undefined)?.nodeInfo?.kubeletVersion ?? '';
  if (version === '')
    throw new AppError({
      host,
      code: 'NODE_NOT_READY',
      message: 'its kubelet has not said its version yet',
      hint: 'Wait until the Node is Ready',
    });
  const minor = parseMinor(version);
  if (minor === null || minor < OLDEST_KNOWN_MINOR)
    throw new AppError({
      host,
      code: 'KUBELET_UNSUPPORTED',
      message: `its kubelet is ${version}: kubelets ${formatMinor(OLDEST_KNOWN_MINOR)} to ${formatMinor(NEWEST_MINOR)} are known`,
    });
  const known = Math.min(minor, NEWEST_MINOR);
  const answer = await cluster.getRaw(`/api/v1/nodes/${encodeURIComponent(name)}/proxy/configz`);
  return { minor: known, version, config: readConfigz(answer, name, { minor: known, catalogue }) };
}
