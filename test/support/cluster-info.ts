import type { JsonObject } from '../../src/base/json.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { clusterInfoKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import { signDetached } from '../../src/kubeadm/token/jws.ts';

/** A sample token. */
export const TOKEN = { id: 'abcdef', secret: '0123456789abcdef', full: 'abcdef.0123456789abcdef' } as const;

export interface ClusterInfoPlan {
  readonly server?: string;
  readonly caPem: string;
  /** Replaces the kubeconfig for `server` and `caPem`. */
  readonly kubeconfig?: string;
  /** Token secrets by the token id that they sign for. */
  readonly signers?: Readonly<Record<string, string>>;
  /** Signatures that are used unchanged. */
  readonly signatures?: Readonly<Record<string, string>>;
  /** The times at which the kubeconfig and the signatures were written. */
  readonly times?: { readonly written: string; readonly signed: string };
}

/** ConfigMap kube-public/cluster-info as an API server returns it. */
export function clusterInfoObject(plan: ClusterInfoPlan): JsonObject {
  const { server = 'https://10.0.0.1:6443', caPem, signers = { [TOKEN.id]: TOKEN.secret }, signatures = {}, times } = plan;
  const kubeconfig = plan.kubeconfig ?? clusterInfoKubeconfig({ server, caPem });
  const signed = Object.entries(signers).map(([id, secret]) => [id, signDetached(id, new Secret(secret), kubeconfig)] as const);
  const all = Object.fromEntries([...signed, ...Object.entries(signatures)].map(([id, value]) => [`jws-kubeconfig-${id}`, value]));
  const owned = (keys: readonly string[]) => ({ 'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) });
  const managedFields = times && [
    { manager: 'kubeadm', operation: 'Update', time: times.written, fieldsType: 'FieldsV1', fieldsV1: owned(['kubeconfig']) },
    {
      manager: 'kube-controller-manager',
      operation: 'Update',
      time: times.signed,
      fieldsType: 'FieldsV1',
      fieldsV1: owned(Object.keys(all)),
    },
  ];
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-info', namespace: 'kube-public', resourceVersion: '7', ...(managedFields && { managedFields }) },
    data: { kubeconfig, ...all },
  };
}
