import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { BootstrapTokenParts } from '../../kube/bootstrap-token.ts';
import { CLUSTER_INFO_NAME } from '../../kube/well-known.ts';
import { isSignedBy } from '../token/jws.ts';

/** Path of the ConfigMap cluster-info below the address of an API server. */
export const CLUSTER_INFO_PATH = '/api/v1/namespaces/kube-public/configmaps/cluster-info';

const KUBECONFIG = 'kubeconfig';
const SIGNATURE = 'jws-kubeconfig-';

/** An untrusted ConfigMap kube-public/cluster-info: nothing in it may be used before the signature is verified. */
export interface ClusterInfo {
  /** The exact text; empty when the key is missing. */
  readonly kubeconfig: string;
  readonly signatures: ReadonlyMap<string, string>;
  /** When the API server recorded the last write of the kubeconfig and of the signatures; null: not recorded. */
  readonly written: Date | null;
  readonly signed: ReadonlyMap<string, Date>;
}

/**
 * Parses the ConfigMap.
 * @returns null when it is another object
 */
export function readClusterInfo(object: JsonObject): ClusterInfo | null {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  if (object.kind !== 'ConfigMap' || metadata.name !== CLUSTER_INFO_NAME) return null;
  const data = Object.entries(isJsonObject(object.data) ? object.data : {}).filter((entry): entry is [string, string] => {
    return typeof entry[1] === 'string';
  });
  const signatures = data.filter(([key]) => key.startsWith(SIGNATURE)).map(([key, value]) => [key.slice(SIGNATURE.length), value] as const);
  const times = writtenTimes(metadata);
  return {
    kubeconfig: data.find(([key]) => key === KUBECONFIG)?.[1] ?? '',
    signatures: new Map(signatures.filter(([, signature]) => signature !== '')),
    written: times.get(KUBECONFIG) ?? null,
    signed: new Map([...times].flatMap(([key, time]) => (key.startsWith(SIGNATURE) ? [[key.slice(SIGNATURE.length), time] as const] : []))),
  };
}

/**
 * Checks the signature of one token. The recorded times decide only whether to wait, never whether to trust.
 * @returns missing: the token is unknown or expired, or the content is not signed yet · outdated: of older content, which
 *   is not signed again yet · wrong: does not match, and is not older than the content · unclear: does not match, and the API
 *   server recorded no times
 * @see kubeadm 1.36 discovery/token, which does not retry after a signature mismatch
 */
export function signatureState(info: ClusterInfo, { id, secret }: BootstrapTokenParts) {
  const signature = info.signatures.get(id);
  if (signature === undefined) return 'missing';
  if (isSignedBy(signature, id, secret, info.kubeconfig)) return 'valid';
  const signed = info.signed.get(id);
  if (signed === undefined || info.written === null) return 'unclear';
  return signed < info.written ? 'outdated' : 'wrong';
}

/** When each key of `data` was last written, from managedFields; with several writers the latest. */
function writtenTimes(metadata: JsonObject): ReadonlyMap<string, Date> {
  const times = new Map<string, Date>();
  for (const entry of Array.isArray(metadata.managedFields) ? metadata.managedFields : []) {
    if (!isJsonObject(entry) || typeof entry.time !== 'string') continue;
    const time = new Date(entry.time);
    const fields = isJsonObject(entry.fieldsV1) ? entry.fieldsV1['f:data'] : undefined;
    if (Number.isNaN(time.getTime()) || !isJsonObject(fields)) continue;
    for (const name of Object.keys(fields)) {
      const key = name.replace(/^f:/, '');
      const before = times.get(key);
      if (before === undefined || before < time) times.set(key, time);
    }
  }
  return times;
}
