import { MASTERS_GROUP_NAME, NODES_GROUP_NAME } from '../../kube/well-known.ts';
import type { CertificateSpec, CertificateTerms } from '../../x509/certificate-spec.ts';
import { controlPlaneServer, localServer } from '../control-plane/model.ts';
import type { PkiConfiguration } from './alt-names.ts';

export type KubeconfigName = 'admin' | 'super-admin' | 'kubelet' | 'controller-manager' | 'scheduler';

/** A kubeconfig with a client certificate. `name` is that of its phase below `kubeconfig/`. */
export interface KubeconfigDefinition {
  readonly name: KubeconfigName;
  readonly longName: string;
  /** Below the directory of Kubernetes. */
  readonly file: string;
  readonly user: (pki: PkiConfiguration) => string;
  readonly organizations: readonly string[];
  /** Who asks the API server on this host asks it directly; others through the control-plane endpoint, where there is one. */
  readonly server: 'control-plane' | 'local';
}

/** Who logs in by admin.conf; a ClusterRoleBinding of the same name makes it an administrator. */
export const CLUSTER_ADMINS = 'kubeadm:cluster-admins';

/**
 * All kubeconfigs of a control-plane node.
 * @see kubeadm 1.36 kubeconfig
 */
export const KUBECONFIGS: readonly KubeconfigDefinition[] = [
  {
    name: 'admin',
    longName: 'kubeconfig file for the admin to use and for kubeadm itself',
    file: 'admin.conf',
    user: () => 'kubernetes-admin',
    organizations: [CLUSTER_ADMINS],
    server: 'control-plane',
  },
  {
    name: 'super-admin',
    longName: 'kubeconfig file for the super-admin',
    file: 'super-admin.conf',
    user: () => 'kubernetes-super-admin',
    organizations: [MASTERS_GROUP_NAME],
    server: 'control-plane',
  },
  {
    name: 'kubelet',
    longName: 'kubeconfig file for the kubelet to use only for cluster bootstrapping',
    file: 'kubelet.conf',
    user: ({ nodeName }) => `system:node:${nodeName}`,
    organizations: [NODES_GROUP_NAME],
    server: 'local',
  },
  {
    name: 'controller-manager',
    longName: 'kubeconfig file for the controller manager to use',
    file: 'controller-manager.conf',
    user: () => 'system:kube-controller-manager',
    organizations: [],
    server: 'local',
  },
  {
    name: 'scheduler',
    longName: 'kubeconfig file for the scheduler to use',
    file: 'scheduler.conf',
    user: () => 'system:kube-scheduler',
    organizations: [],
    server: 'local',
  },
];

/** Those of a control plane that joins: its kubelet bootstraps itself, and there is one super-admin.conf. */
export const JOINING_KUBECONFIGS: readonly KubeconfigDefinition[] = KUBECONFIGS.filter(
  ({ name }) => name === 'admin' || name === 'controller-manager' || name === 'scheduler',
);

/** The URL in a kubeconfig. */
export function serverOf(definition: KubeconfigDefinition, pki: PkiConfiguration): string {
  return definition.server === 'local' ? localServer(pki.localAPIEndpoint) : controlPlaneServer(pki);
}

/**
 * The client certificate of a kubeconfig.
 * @param authorityNotBefore it begins with its authority
 */
export function clientSpecOf(
  { user, organizations }: Pick<KubeconfigDefinition, 'user' | 'organizations'>,
  pki: PkiConfiguration,
  terms: CertificateTerms & { readonly authorityNotBefore: Date },
): CertificateSpec {
  return {
    commonName: user(pki),
    organizations,
    dnsNames: [],
    ipAddresses: [],
    usages: ['clientAuth'],
    isAuthority: false,
    notBefore: terms.authorityNotBefore,
    notAfter: new Date(terms.now.getTime() + terms.validMs),
  };
}
