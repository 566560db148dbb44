import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { KUBECONFIG_LIMITS, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { MASTERS_GROUP_NAME, NODES_GROUP_NAME } from '../../kube/well-known.ts';
import type { CertificateParameters, CertificateSpec } from '../../x509/certificate-issuer.ts';
import { controlPlaneServer, localServer } from '../control-plane/model.ts';
import type { PkiConfiguration } from './alt-names.ts';

/** A kubeconfig with a client certificate. `name` is that of its phase below `kubeconfig/`. */
export interface KubeconfigDefinition {
  readonly name: 'admin' | 'super-admin' | 'kubelet' | 'controller-manager' | 'scheduler';
  readonly longName: string;
  readonly file: string;
  readonly user: (pki: PkiConfiguration) => string;
  readonly organizations: readonly string[];
  /**
   * `local`: clients on the host connect to its own API server; `control-plane`: the control plane endpoint,
   * if one is set.
   */
  readonly server: 'control-plane' | 'local';
}

/** Group of the user in admin.conf; a ClusterRoleBinding of the same name grants cluster-admin. */
export const CLUSTER_ADMINS = 'kubeadm:cluster-admins';

function kubeconfig(
  name: KubeconfigDefinition['name'],
  purpose: string,
  user: string | KubeconfigDefinition['user'],
  organizations: readonly string[],
  server: KubeconfigDefinition['server'] = 'local',
): KubeconfigDefinition {
  const file = `${name}.conf`;
  const userOf = typeof user === 'string' ? () => user : user;
  return { name, longName: `kubeconfig of ${purpose} (${file})`, file, user: userOf, organizations, server };
}

/**
 * All kubeconfigs of a control-plane node.
 * @see kubeadm 1.36 kubeconfig
 */
export const KUBECONFIGS: readonly KubeconfigDefinition[] = [
  kubeconfig('admin', 'the cluster administrator', 'kubernetes-admin', [CLUSTER_ADMINS], 'control-plane'),
  kubeconfig(
    'super-admin',
    'the administrator that RBAC does not restrict',
    'kubernetes-super-admin',
    [MASTERS_GROUP_NAME],
    'control-plane',
  ),
  kubeconfig('kubelet', 'the kubelet', ({ nodeName }) => `system:node:${nodeName}`, [NODES_GROUP_NAME]),
  kubeconfig('controller-manager', 'the controller manager', 'system:kube-controller-manager', []),
  kubeconfig('scheduler', 'the scheduler', 'system:kube-scheduler', []),
];

/**
 * Kubeconfigs of a joining control plane: its kubelet uses TLS bootstrap, and only the first control plane
 * has super-admin.conf.
 */
export const JOINING_KUBECONFIGS: readonly KubeconfigDefinition[] = KUBECONFIGS.filter(
  ({ name }) => name === 'admin' || name === 'controller-manager' || name === 'scheduler',
);

export function serverOf(definition: KubeconfigDefinition, pki: PkiConfiguration): string {
  return definition.server === 'local' ? localServer(pki.localAPIEndpoint) : controlPlaneServer(pki);
}

/**
 * The client certificate of a kubeconfig.
 * @param caNotBefore start of the validity of its CA
 */
export function clientSpecOf(
  { user, organizations }: Pick<KubeconfigDefinition, 'user' | 'organizations'>,
  pki: PkiConfiguration,
  parameters: CertificateParameters & { readonly caNotBefore: Date },
): CertificateSpec {
  return {
    commonName: user(pki),
    organizations,
    dnsNames: [],
    ipAddresses: [],
    usages: ['clientAuth'],
    isCa: false,
    notBefore: parameters.caNotBefore,
    notAfter: new Date(parameters.now.getTime() + parameters.validMs),
  };
}

/**
 * Replaces the client certificate, key and CA of the current context in a kubeconfig; all else is kept.
 * @throws AppError as parseKubeconfig and resolveContext
 * @see kubeadm 1.36 certs renew
 */
export function renewKubeconfig(
  text: string,
  path: string,
  renewed: { readonly certificatePem: string; readonly keyPem: Secret; readonly caPem: string },
): SensitiveText {
  const { cluster, user } = resolveContext(parseKubeconfig(text, path));
  const root = parseSource(text, path, KUBECONFIG_LIMITS).documents.find((document) => document.root !== null)?.root ?? null;
  const config = (root === null ? {} : sourceToJson(root)) as JsonObject;
  const base64 = (pem: string): string => Buffer.from(pem, 'utf8').toString('base64');
  const clusters = withMembers(config.clusters, cluster.name, 'cluster', { 'certificate-authority-data': base64(renewed.caPem) });
  const users = withMembers(config.users, user?.name ?? '', 'user', {
    'client-certificate-data': base64(renewed.certificatePem),
    'client-key-data': base64(renewed.keyPem.reveal()),
  });
  return new SensitiveText([new Secret(encodeYaml({ ...config, clusters, users }))]);
}

function withMembers(list: Json | undefined, name: string, member: string, values: JsonObject): Json {
  return (Array.isArray(list) ? list : []).map((entry: Json) => {
    if (!isJsonObject(entry) || entry.name !== name) return entry;
    const existing = entry[member];
    return { ...entry, [member]: { ...(isJsonObject(existing) ? existing : {}), ...values } };
  });
}
