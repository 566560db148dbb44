import { isAppError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { isJsonObject } from '../../base/json.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type ConfigSource, describeSource } from '../../kubelet/layers/config-source.ts';
import { sha256Of } from '../signing/statement.ts';

const AT_ONCE = 16;

/**
 * The hashes of the content of ConfigMaps, by `describeSource`; null: it does not exist, or may not be read.
 * @throws the other errors of the API server
 */
export async function readContentHashes(
  cluster: Cluster,
  sources: readonly (ConfigSource | null)[],
): Promise<ReadonlyMap<string, string | null>> {
  const distinct = new Map(sources.flatMap((source) => (source === null ? [] : [[describeSource(source), source] as const])));
  const found = await inParallel([...distinct], AT_ONCE, async ([what, { namespace, name }]) => {
    const object = await readUnlessForbidden(cluster, { namespace, name });
    return [what, object === null ? null : contentHash(object)] as const;
  });
  return new Map(found);
}

async function readUnlessForbidden(cluster: Cluster, ref: { readonly namespace: string; readonly name: string }) {
  try {
    return await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', ...ref });
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return null;
    throw error;
  }
}

/** SHA-256 of all keys of a ConfigMap and their content, in hexadecimal digits. */
export function contentHash({ data, binaryData }: { readonly [member: string]: unknown }): string {
  return sha256Of(JSON.stringify([entriesOf(data), entriesOf(binaryData)]));
}

function entriesOf(data: unknown) {
  return isJsonObject(data) ? Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)) : [];
}
