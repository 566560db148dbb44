import type { Secret } from '../base/text/secret.ts';
import type { Templates } from '../codec/render-template.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { EtcdCluster } from '../kube/etcd-cluster.ts';
import type { HttpsClient } from '../kube/https-client.ts';
import type { CertificateIssuer } from '../x509/certificate-issuer.ts';
import type { ClusterTarget, EtcdTarget } from './control-plane/cluster-target.ts';

/** Connections to API servers, etcd members and web servers. */
export interface ClusterConnections {
  connectCluster(target: ClusterTarget): Promise<Cluster>;
  /** Limits the requests of this process to API servers from now on. @param perSecond greater than 0 */
  limitRequests(perSecond: number): void;
  /** The members of an etcd cluster, as objects. */
  connectEtcd(target: EtcdTarget): Promise<EtcdCluster>;
  readonly web: HttpsClient;
}

export interface SecretSource {
  /** 16 hexadecimal digits. */
  newId(): Promise<string>;
  newToken(): Promise<Secret>;
  certificateIssuer(): Promise<CertificateIssuer>;
}

/** The text files that are written on hosts. */
export interface TemplateSource {
  /** Compiled, by their path below `templates/`, without `.hbs`. */
  templates(): Promise<Templates>;
}
