import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { BOOTSTRAP_GROUP, namespacedBinding, readSecretRole } from '../cluster-objects/bootstrap-rbac.ts';
import type { DefaultedCluster } from '../config/defaults.ts';
import { pkiPath, SERVICE_ACCOUNT } from './certificate-list.ts';

export interface SharedFile {
  /** Its key in the Secret. */
  readonly entry: string;
  readonly path: string;
}

export const KUBEADM_CERTS = {
  apiVersion: 'v1',
  kind: 'Secret',
  namespace: KUBE_SYSTEM,
  name: 'kubeadm-certs',
} as const satisfies ObjectRef;

/** The Secret is owned by a token with this TTL, so both are deleted together. */
export const CERTS_TTL = '2h0m0s';
export const CERTS_TOKEN_DESCRIPTION = 'Proxy for managing TTL for the kubeadm-certs secret';

/**
 * The files that control planes share: CAs with their keys and the service account key pair; with external
 * etcd, the client credentials of the API server.
 * @see kubeadm 1.36 phases/copycerts
 */
export function sharedFiles({ certificatesDir, etcd }: Pick<DefaultedCluster, 'certificatesDir' | 'etcd'>): readonly SharedFile[] {
  const pair = (baseName: string): readonly SharedFile[] =>
    (['crt', 'key'] as const).map((kind) => ({
      entry: `${baseName.replace('/', '-')}.${kind}`,
      path: pkiPath(certificatesDir, baseName, kind),
    }));
  const { external } = etcd;
  const given = (entry: string, path: string | undefined): readonly SharedFile[] => (path === undefined ? [] : [{ entry, path }]);
  return [
    ...pair('ca'),
    ...pair('front-proxy-ca'),
    { entry: 'sa.pub', path: pkiPath(certificatesDir, SERVICE_ACCOUNT, 'pub') },
    { entry: 'sa.key', path: pkiPath(certificatesDir, SERVICE_ACCOUNT, 'key') },
    ...(external === undefined
      ? pair('etcd/ca')
      : [
          ...given('external-etcd-ca.crt', external.caFile),
          ...given('external-etcd.crt', external.certFile),
          ...given('external-etcd.key', external.keyFile),
        ]),
  ];
}

/** Grants holders of a bootstrap token read access to the Secret. */
export function kubeadmCertsRbac(): readonly [role: KubeObject, binding: KubeObject] {
  const at = { namespace: KUBEADM_CERTS.namespace, name: 'kubeadm:kubeadm-certs' };
  return [readSecretRole(at, KUBEADM_CERTS.name), namespacedBinding(at, [BOOTSTRAP_GROUP])];
}
