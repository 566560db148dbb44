import { AppError } from '../../base/errors.ts';
import { decodeDataField, discoveryCluster, type KubeconfigCluster, parseKubeconfig } from '../../kube/kubeconfig.ts';
import { type Certificate, parseCertificates } from '../../x509/certificate.ts';
import { caPinOf } from '../token/ca-pin.ts';
import type { ClockReading } from './clock-reading.ts';
import { authorityExpired, authorityNotYetValid, clusterInfoInvalid, pinMismatch, severalClusters } from './discovery-problems.ts';

/** What discovery is for: where the API server is and whom it proves its name by. */
export interface FoundCluster {
  /** e.g. `https://10.0.0.1:6443`. */
  readonly server: string;
  /** PEM bundle. */
  readonly caPem: string;
  readonly certificates: readonly Certificate[];
}

/**
 * The cluster that the kubeconfig of cluster-info is about.
 * @param endpoint who gave it, for messages
 * @throws AppError with exit code 3: KUBECONFIG_INVALID and what else can be wrong with a kubeconfig, DISCOVERY_CLUSTER_INFO
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
  if (certificates === null || certificates.length === 0) return refuse('its certificate-authority-data contains no certificates');
  return { server: cluster.server, caPem, certificates };
}

/**
 * The certificates that are pinned: TLS is verified by these alone, so that one who can sign with the token cannot slip in another CA beside the real one.
 * @throws AppError DISCOVERY_PIN_MISMATCH (exit code 3) when there is none
 * @see kubeadm 1.36 discovery/token, which goes on with the whole bundle as soon as one of it is pinned
 */
export function pinnedCertificates({ certificates }: FoundCluster, pins: readonly string[], endpoint: string): readonly Certificate[] {
  const desired = new Set(pins.map((pin) => pin.toLowerCase()));
  const pinned = certificates.filter((certificate) => desired.has(caPinOf(certificate)));
  if (pinned.length > 0) return pinned;
  const found = certificates.map((certificate) => ({ pin: caPinOf(certificate), subject: certificate.subject }));
  throw new AppError(pinMismatch(endpoint, pins, found), { exitCode: 3 });
}

/**
 * That at least one of the certificates is valid now.
 * @throws AppError DISCOVERY_CLOCK_SKEW, DISCOVERY_CA_EXPIRED (exit code 3)
 */
export function requireValidNow(certificates: readonly Certificate[], endpoint: string, clock: ClockReading): void {
  if (certificates.some(({ notBefore, notAfter }) => notBefore <= clock.local && clock.local <= notAfter)) return;
  const early = certificates.find(({ notBefore }) => clock.local < notBefore);
  if (early !== undefined) throw new AppError(authorityNotYetValid(endpoint, early, clock), { exitCode: 3 });
  const late = certificates[0] as Certificate;
  throw new AppError(authorityExpired(endpoint, late, clock), { exitCode: 3 });
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
