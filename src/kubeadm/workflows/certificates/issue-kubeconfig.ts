import type { Problem } from '../../../base/errors.ts';
import { Secret, type SensitiveText } from '../../../base/text/secret.ts';
import { clientCertificateKubeconfig } from '../../../kube/kubeconfig-render.ts';
import type { CertificateIssuer } from '../../../x509/certificate-issuer.ts';
import { readPrivateKey } from '../../../x509/private-key.ts';
import type { CertificateContent } from '../../../x509/read-certificate.ts';
import type { DefaultedCluster } from '../../config/defaults.ts';
import { certificateParametersOf, pkiPath } from '../../pki/certificate-list.ts';
import { clientSpecOf } from '../../pki/kubeconfig-list.ts';
import { pkiKeyMismatch, pkiKeyMissing, pkiNoKey } from '../../pki/pki-problems.ts';
import type { HostFileReader } from '../../pki/validate-kubeconfig.ts';

/** A kubeconfig to issue. */
interface KubeconfigRequest {
  readonly clusterName: string;
  readonly server: string;
  /** Name of the user, and CN of the client certificate. */
  readonly user: string;
  /** Groups of the user, O of the client certificate. */
  readonly organizations: readonly string[];
  /** Absent: as other certificates of the cluster. */
  readonly validMs?: number;
}

/**
 * A kubeconfig with a new key and a client certificate that the cluster CA of a host signs.
 * @param by.found reads `ca.key` of the certificates directory
 * @returns the kubeconfig and its certificate, or the problem of the CA key
 */
export async function issueKubeconfig(
  { user, organizations, validMs, ...server }: KubeconfigRequest,
  {
    cluster,
    ca,
    found,
    issuer,
    now,
  }: {
    readonly cluster: DefaultedCluster;
    readonly ca: CertificateContent;
    readonly found: HostFileReader;
    readonly issuer: CertificateIssuer;
    readonly now: Date;
  },
): Promise<{ readonly problem: Problem } | { readonly content: SensitiveText; readonly certificatePem: string }> {
  const [crt, key] = [pkiPath(cluster.certificatesDir, 'ca', 'crt'), pkiPath(cluster.certificatesDir, 'ca', 'key')];
  const caKey = found(key);
  if (caKey === null) return { problem: pkiKeyMissing(crt, key) };
  const parsed = readPrivateKey(caKey);
  if (parsed === null) return { problem: pkiNoKey(key, 'private key') };
  if (!ca.x509.checkPrivateKey(parsed)) return { problem: pkiKeyMismatch(crt, key) };
  const parameters = certificateParametersOf(cluster, now);
  const identity = { cluster, nodeName: '', localAPIEndpoint: { advertiseAddress: '', bindPort: 0 } };
  const spec = clientSpecOf({ user: () => user, organizations }, identity, {
    ...parameters,
    validMs: validMs ?? parameters.validMs,
    caNotBefore: ca.notBefore,
  });
  const keyPem = await issuer.generateKey(parameters.keyAlgorithm);
  const certificatePem = await issuer.issue(spec, keyPem, { certificatePem: ca.pem, keyPem: new Secret(caKey) });
  return { content: clientCertificateKubeconfig({ ...server, caPem: ca.pem, user, certificatePem, keyPem }), certificatePem };
}
