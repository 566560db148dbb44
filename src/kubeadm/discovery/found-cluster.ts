import { AppError } from '../../base/errors.ts';
import { decodeDataField, discoveryCluster, type KubeconfigCluster, parseKubeconfig } from '../../kube/kubeconfig.ts';
import { caPinOf } from '../../x509/ca-pin.ts';
import { nameInOrder } from '../../x509/describe-certificate.ts';
import { type CertificateContent, MAX_CERTIFICATES, parseCertificates } from '../../x509/read-certificate.ts';
import type { ClockReading } from './clock-reading.ts';
import { caExpired, caNotYetValid, clusterInfoInvalid, pinMismatch, severalClusters } from './discovery-problems.ts';

/** Result of the discovery: the API server address and its CA. */
export interface FoundCluster {
  readonly server: string;
  /** PEM bundle. */
  readonly caPem: string;
  readonly certificates: readonly CertificateContent[];
}

/**
 * Reads the cluster from the kubeconfig of cluster-info.
 * @param endpoint source of the kubeconfig, for messages
 * @throws AppError with exit code 3: KUBECONFIG_INVALID and other kubeconfig errors, DISCOVERY_CLUSTER_INFO
 */
export function readFoundCluster(kubeconfig: string, endpoint: string): FoundCluster {
  const cluster = clusterOf(kubeconfig, endpoint);
  const refuse = (why: string): never => {
    throw new AppError(clusterInfoInvalid(endpoint, why), { exitCode: 3 });
  };
  if (!cluster.server.startsWith('https://')) refuse(`its server ${JSON.stringify(cluster.server)} is not an https address`);
  if (cluster.insecureSkipTlsVerify) refuse('it sets insecure-skip-tls-verify');
  if (cluster.caData === undefined)
    return refuse(cluster.caFile === undefined ? 'it contains no CA' : 'it refers to a CA file instead of embedding the CA');
  const caPem = decodeDataField(cluster.caData);
  const certificates = parseCertificates(caPem);
  if (certificates === null)
    return refuse(
      `its certificate-authority-data contains more than ${MAX_CERTIFICATES.toLocaleString('en')} certificates, or one that cannot be read`,
    );
  if (certificates.length === 0) return refuse('its certificate-authority-data contains no certificates');
  return { server: cluster.server, caPem, certificates };
}

/**
 * The pinned certificates. Only these verify TLS, so that a holder of the token cannot add another CA next to the real
 * one.
 * @throws AppError DISCOVERY_PIN_MISMATCH (exit code 3) when none is pinned
 * @see kubeadm 1.36 discovery/token, which trusts the whole bundle as soon as one of its certificates is pinned
 */
export function pinnedCertificates(
  { certificates }: FoundCluster,
  pins: readonly string[],
  endpoint: string,
): readonly CertificateContent[] {
  const desired = new Set(pins.map((pin) => pin.toLowerCase()));
  const pinned = certificates.filter((certificate) => desired.has(caPinOf(certificate)));
  if (pinned.length > 0) return pinned;
  const found = certificates.map((certificate) => ({ pin: caPinOf(certificate), subject: nameInOrder(certificate.subject) }));
  throw new AppError(pinMismatch(endpoint, pins, found), { exitCode: 3 });
}

/**
 * Requires that at least one certificate is valid now.
 * @throws AppError DISCOVERY_CLOCK_SKEW, DISCOVERY_CA_EXPIRED (exit code 3)
 */
export function requireValidNow(certificates: readonly CertificateContent[], endpoint: string, clock: ClockReading): void {
  if (certificates.some(({ notBefore, notAfter }) => notBefore <= clock.local && clock.local <= notAfter)) return;
  const early = certificates.find(({ notBefore }) => clock.local < notBefore);
  if (early !== undefined) throw new AppError(caNotYetValid(endpoint, early, clock), { exitCode: 3 });
  const late = certificates[0] as CertificateContent;
  throw new AppError(caExpired(endpoint, late, clock), { exitCode: 3 });
}

function clusterOf(text: string, endpoint: string): KubeconfigCluster {
  try {
    const kubeconfig = parseKubeconfig(text, 'kube-public/cluster-info');
    const { clusters, currentContext } = kubeconfig;
    if (currentContext === '' && clusters.length > 0 && !clusters.some(({ name }) => name === ''))
      throw new AppError(
        severalClusters(
          endpoint,
          clusters.map(({ name }) => name),
        ),
      );
    return discoveryCluster(kubeconfig);
  } catch (error) {
    if (error instanceof AppError) throw new AppError(error.problems, { exitCode: 3, cause: error });
    throw error;
  }
}
