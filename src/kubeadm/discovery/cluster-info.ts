import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { BootstrapTokenParts } from '../../kube/bootstrap-token.ts';
import { CLUSTER_INFO_NAME } from '../../kube/well-known.ts';
import { isSignedBy } from '../token/jws.ts';

/** Where the ConfigMap cluster-info is read, below the address of an API server. */
export const CLUSTER_INFO_PATH = '/api/v1/namespaces/kube-public/configmaps/cluster-info';

const KUBECONFIG = 'kubeconfig';
const SIGNATURE = 'jws-kubeconfig-';

/** ConfigMap kube-public/cluster-info as somebody gave it: nothing of it is to be believed before the signature was verified. */
export interface ClusterInfo {
  /** Exactly as it stands there; empty when there is none. */
  readonly kubeconfig: string;
  /** By token id. */
  readonly signatures: ReadonlyMap<string, string>;
  /** When the kubeconfig and when the signatures were last written, as the API server noted; null: not noted. */
  readonly written: Date | null;
  readonly signed: ReadonlyMap<string, Date>;
}

/** How the signature of a token fits. */
export type SignatureState =
  | 'valid'
  /** There is none: the token is unknown or expired, or the signer has not come round yet. */
  | 'missing'
  /** It is not that of this token over this text, and it was written before the text: the signer has not come round yet. */
  | 'outdated'
  /** It is not that of this token over this text, and no older than the text. */
  | 'wrong'
  /** As `wrong` or `outdated`: the API server does not say when what was written. */
  | 'unclear';

/**
 * Takes the ConfigMap apart.
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
 * Judges the signature of one token. The times the API server notes decide only whether it is worth waiting, never whether to believe.
 * @see kubeadm 1.36 discovery/token: a signature that does not fit is final there
 */
export function signatureState(info: ClusterInfo, { id, secret }: BootstrapTokenParts): SignatureState {
  const signature = info.signatures.get(id);
  if (signature === undefined) return 'missing';
  if (isSignedBy(signature, id, secret, info.kubeconfig)) return 'valid';
  const signed = info.signed.get(id);
  if (signed === undefined || info.written === null) return 'unclear';
  return signed < info.written ? 'outdated' : 'wrong';
}

/** When each key of `data` was last written, from managedFields; of several writers the last. */
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
