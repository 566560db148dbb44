import type { Problem } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';
import type { PeerCertificate } from '../../kube/https-client.ts';
import type { ProxyRefusal } from '../../kube/proxy.ts';
import { nameInOrder } from '../../x509/describe-certificate.ts';
import type { CertificateContent } from '../../x509/read-certificate.ts';
import type { ClockReading } from './clock-reading.ts';
import { clocksAgree, clocksDiffer, describeClocks } from './clock-reading.ts';

/** Problems of the discovery. Each begins with the queried endpoint: `discovery: 10.0.0.1:6443: ...`. */

function problem(endpoint: string, code: string, message: string, hint: string): Problem {
  return { code, message: `discovery (${endpoint}): ${message}`, hint };
}

const TOKEN_COMMAND = 'a new token on a control plane: kubeletadm token create --print-join-command';
const NEW_TOKEN = `Create ${TOKEN_COMMAND}`;
const CHECK_ADDRESS = 'Check the address and the port of the API server (default: 6443)';

// ---- connecting to the server

export function unreachable(
  endpoint: string,
  why: string,
  hint = 'Check that the address is right, that the API server runs, and that no firewall blocks the connection',
): Problem {
  return problem(endpoint, 'DISCOVERY_UNREACHABLE', why, hint);
}

export function proxyProblem(endpoint: string, why: string, kind: ProxyRefusal['kind'] | null): Problem {
  const hint =
    kind === 'login'
      ? 'Set user and password in HTTPS_PROXY (http://USER:PASSWORD@HOST:PORT), or add the API server to NO_PROXY'
      : 'Correct HTTPS_PROXY, or add the API server to NO_PROXY to connect directly';
  return problem(endpoint, 'DISCOVERY_PROXY', why, hint);
}

export function notAnApiServer(endpoint: string, why: string, hint = CHECK_ADDRESS): Problem {
  return problem(endpoint, 'DISCOVERY_NOT_API_SERVER', why, hint);
}

export function tlsFailed(endpoint: string, why: string): Problem {
  return problem(
    endpoint,
    'DISCOVERY_TLS',
    why,
    `${CHECK_ADDRESS}, and any proxy or load balancer in front of it: the server must support TLS 1.2 or later`,
  );
}

// ---- the server certificate

/** The server certificate is from another CA. `expectedCa` names the expected one. */
export function untrustedServer(endpoint: string, expectedCa: string, peer: PeerCertificate | null): Problem {
  const shown = peer === null ? 'the server certificate' : `the server certificate (${name(peer.subject)}, issued by ${name(peer.issuer)})`;
  const hint = 'Check the address: another cluster, another server or a TLS-terminating proxy may use this address';
  return problem(endpoint, 'DISCOVERY_UNTRUSTED_SERVER', `${shown} is not signed by ${expectedCa}`, hint);
}

export function wrongServerName(endpoint: string, host: string, peer: PeerCertificate | null): Problem {
  if (peer === null || peer.names.length === 0) {
    const hint = `Add ${host} to the certificate of the API server (apiServer.certSANs)`;
    return problem(endpoint, 'DISCOVERY_WRONG_NAME', `the server certificate contains no names, so it is not valid for ${host}`, hint);
  }
  const names = peer.names.map((each) => printable(each)).join(', ');
  const hint = `Use one of these names as the address, or add ${host} to the certificate (apiServer.certSANs)`;
  return problem(endpoint, 'DISCOVERY_WRONG_NAME', `the server certificate is not valid for ${host}, only for ${names}`, hint);
}

/** The server certificate is not valid at this time; the message shows which clock is wrong, if known. */
export function serverCertificateTime(
  endpoint: string,
  { peer, when, clock }: { readonly peer: PeerCertificate | null; readonly when: 'expired' | 'early'; readonly clock: ClockReading },
): Problem {
  const state =
    when === 'expired'
      ? `expired${peer === null ? '' : ` on ${formatRfc3339(peer.notAfter)}`}`
      : `is not valid ${peer === null ? 'yet' : `before ${formatRfc3339(peer.notBefore)}`}`;
  const message = `the server certificate ${state}: ${describeClocks(clock)}`;
  if (when === 'early' && clocksAgree(clock)) {
    const until = peer === null ? 'the certificate is valid' : formatRfc3339(peer.notBefore);
    return problem(
      endpoint,
      'DISCOVERY_CERTIFICATE_NOT_YET_VALID',
      message,
      `Wait until ${until}, or renew ${SERVER_CERTIFICATE}. ${CLOCKS_FINE}`,
    );
  }
  if (when === 'early' || clocksDiffer(clock)) return problem(endpoint, 'DISCOVERY_CLOCK_SKEW', message, SET_CLOCKS);
  return problem(endpoint, 'DISCOVERY_CERTIFICATE_EXPIRED', message, `Renew ${SERVER_CERTIFICATE}`);
}

const SERVER_CERTIFICATE = 'the certificate on the control plane (kubeletadm certs renew apiserver)';
const CLOCKS_FINE = 'The clocks of both hosts are not the cause: the difference is at most 5m';

const SET_CLOCKS = 'Synchronize the clocks of both hosts (timedatectl, chronyc)';

export function caNotYetValid(endpoint: string, ca: CertificateContent, clock: ClockReading): Problem {
  const message = `the CA of the cluster (${name(nameInOrder(ca.subject))}) is not valid before ${formatRfc3339(ca.notBefore)}: ${describeClocks(clock)}`;
  if (clocksAgree(clock)) {
    const hint = `Wait until ${formatRfc3339(ca.notBefore)}, or replace the CA of the cluster. ${CLOCKS_FINE}`;
    return problem(endpoint, 'DISCOVERY_CA_NOT_YET_VALID', message, hint);
  }
  return problem(endpoint, 'DISCOVERY_CLOCK_SKEW', message, SET_CLOCKS);
}

export function caExpired(endpoint: string, ca: CertificateContent, clock: ClockReading): Problem {
  const message = `the CA of the cluster (${name(nameInOrder(ca.subject))}) expired on ${formatRfc3339(ca.notAfter)}: ${describeClocks(clock)}`;
  if (clocksDiffer(clock)) return problem(endpoint, 'DISCOVERY_CLOCK_SKEW', message, SET_CLOCKS);
  return problem(endpoint, 'DISCOVERY_CA_EXPIRED', message, 'Replace the CA of the cluster before nodes join');
}

export function clockSkew(endpoint: string, clock: ClockReading): Problem {
  return problem(
    endpoint,
    'DISCOVERY_CLOCK_SKEW',
    `the clocks differ: ${describeClocks(clock)}`,
    `${SET_CLOCKS}: otherwise certificates seem expired or not yet valid`,
  );
}

// ---- reading cluster-info

export function noAnonymousAccess(endpoint: string): Problem {
  const hint =
    'Pass --discovery-file with a kubeconfig that contains the CA, or --ca-cert. Discovery by token alone needs anonymous requests';
  return problem(endpoint, 'DISCOVERY_NO_ANONYMOUS_ACCESS', 'the API server does not allow anonymous requests (401)', hint);
}

export function clusterInfoForbidden(endpoint: string, reported: string): Problem {
  const hint =
    'Run kubeletadm init phase bootstrap-token on a control plane, which creates the RoleBinding kubeadm:bootstrap-signer-clusterinfo. Or use --discovery-file';
  return problem(
    endpoint,
    'DISCOVERY_FORBIDDEN',
    `anonymous users are not allowed to read kube-public/cluster-info (403)${reported === '' ? '' : `: ${reported}`}`,
    hint,
  );
}

export function noClusterInfo(endpoint: string): Problem {
  const hint = 'Create the ConfigMap on a control plane (kubeletadm init phase bootstrap-token), or use --discovery-file';
  return problem(endpoint, 'DISCOVERY_NO_CLUSTER_INFO', 'ConfigMap kube-public/cluster-info does not exist', hint);
}

export function serverFailure(endpoint: string, status: number, reported: string): Problem {
  const hint = 'See the log of the API server, or of the load balancer in front of it';
  return problem(endpoint, 'DISCOVERY_SERVER_ERROR', `the API server answered ${status}${reported === '' ? '' : `: ${reported}`}`, hint);
}

/** cluster-info contains no kubeconfig that a node can use. `why` is a clause about the kubeconfig. */
export function clusterInfoInvalid(endpoint: string, why: string): Problem {
  return problem(endpoint, 'DISCOVERY_CLUSTER_INFO', `the kubeconfig in kube-public/cluster-info is not usable: ${why}`, UPLOAD_AGAIN);
}

const UPLOAD_AGAIN = 'Recreate the ConfigMap on a control plane: kubeletadm init phase bootstrap-token';

export function severalClusters(endpoint: string, names: readonly string[]): Problem {
  const list = names.map((each) => JSON.stringify(each)).join(', ');
  return clusterInfoInvalid(
    endpoint,
    `none of its clusters (${list}) has an empty name, and no current-context selects one of these clusters`,
  );
}

export function clusterInfoChanged(endpoint: string): Problem {
  const message = 'ConfigMap kube-public/cluster-info changed between two requests, or the first connection was intercepted';
  return problem(
    endpoint,
    'DISCOVERY_CHANGED',
    message,
    'Rerun the command. If the error occurs again, check the network between both hosts',
  );
}

// ---- token and pins

/** cluster-info has no signature of this token. `isKnown`: the verified API server accepts the token. */
export function noSignature(
  endpoint: string,
  tokenId: string,
  { others, isKnown }: { readonly others: number; readonly isKnown: boolean },
): Problem {
  const causes = isKnown
    ? 'the token lacks the usage "signing" or was just created'
    : 'the token is unknown, has expired, lacks the usage "signing", or was just created';
  if (others === 0) {
    const message = `ConfigMap kube-public/cluster-info has no signatures: the bootstrapsigner of kube-controller-manager does not run, or ${causes}`;
    const hint = `Check that kube-controller-manager runs with the controller bootstrapsigner, or create ${TOKEN_COMMAND}`;
    return problem(endpoint, 'DISCOVERY_NO_SIGNATURE', message, hint);
  }
  const signed = `${others} other ${others === 1 ? 'token' : 'tokens'}`;
  const message = `ConfigMap kube-public/cluster-info is signed for ${signed}, but not for the token ${tokenId}: ${causes}`;
  return problem(endpoint, 'DISCOVERY_NO_SIGNATURE', message, NEW_TOKEN);
}

export function signatureGone(endpoint: string, tokenId: string): Problem {
  return problem(
    endpoint,
    'DISCOVERY_TOKEN_EXPIRED',
    `the token ${tokenId} has expired or was deleted: ConfigMap kube-public/cluster-info is no longer signed for this token`,
    NEW_TOKEN,
  );
}

export function tokenUnknown(endpoint: string, tokenId: string): Problem {
  const message = `the API server does not know the token ${tokenId}: the token has expired, was deleted, or belongs to another cluster`;
  return problem(endpoint, 'DISCOVERY_TOKEN_UNKNOWN', message, NEW_TOKEN);
}

export function wrongSignature(endpoint: string, tokenId: string, state: 'wrong' | 'outdated' | 'unclear'): Problem {
  const about = `the signature of ConfigMap kube-public/cluster-info for the token ${tokenId}`;
  if (state === 'outdated') {
    const hint = 'Check that the bootstrapsigner of kube-controller-manager is enabled and running';
    return problem(
      endpoint,
      'DISCOVERY_SIGNATURE',
      `${about} is outdated: the content of the ConfigMap changed after the signature was made`,
      hint,
    );
  }
  const message = `${about} does not match: the token secret is wrong${state === 'unclear' ? ', the latest content is not signed yet' : ''}, or the content was modified in transit`;
  return problem(endpoint, 'DISCOVERY_SIGNATURE', message, `Check the token for typing errors, or create ${TOKEN_COMMAND}`);
}

/** No CA of the cluster is pinned. */
export function pinMismatch(
  endpoint: string,
  expected: readonly string[],
  found: readonly { readonly pin: string; readonly subject: string }[],
): Problem {
  const shown = found.map(({ pin, subject }) => `${pin} (${name(subject)})`).join(', ');
  const message = `the hash of the cluster CA differs from the pin (--discovery-token-ca-cert-hash): expected ${expected.join(' or ')}, found ${shown}`;
  const hint =
    'Compare the pin with the output of kubeletadm token create --print-join-command on a control plane. If the pin is right, the address is that of another cluster, or the connection is intercepted';
  return problem(endpoint, 'DISCOVERY_PIN_MISMATCH', message, hint);
}

export function tokenRefused(endpoint: string, tokenId: string, isSigned: boolean): Problem {
  const message = isSigned
    ? `the API server rejects the token ${tokenId}: the token has just expired, lacks the usage "authentication", or kube-apiserver runs without --enable-bootstrap-token-auth`
    : `the API server rejects the token ${tokenId}: the token is unknown, has expired, or lacks the usage "authentication"`;
  return problem(endpoint, 'DISCOVERY_TOKEN_REFUSED', message, NEW_TOKEN);
}

// ---- discovery by file or URL

export function documentUnavailable(url: string, why: string): Problem {
  return problem(url, 'DISCOVERY_URL', why, 'Check the URL given as --discovery-file: the response must be a kubeconfig');
}

export function insecureKubeconfig(file: string, why: string): Problem {
  return problem(file, 'DISCOVERY_INSECURE', why, 'Set certificate-authority-data to the cluster CA and server to an https address');
}

export function noCa(file: string): Problem {
  return problem(
    file,
    'DISCOVERY_NO_CA',
    'the kubeconfig contains no CA, and kube-public/cluster-info provides none',
    'Set certificate-authority-data in the kubeconfig',
  );
}

export function noCertificates(file: string): Problem {
  return problem(
    file,
    'DISCOVERY_NO_CA',
    'the file contains no certificate, or a damaged one',
    'Use /etc/kubernetes/pki/ca.crt of a control plane',
  );
}

export function kubeconfigReadsLocalFiles(file: string, fields: readonly string[]): Problem {
  return problem(
    file,
    'DISCOVERY_NAMES_FILES',
    `the kubeconfig refers to files of the local host: ${fields.join(', ')}`,
    'Embed their content: kubectl config view --raw --flatten',
  );
}

export function kubeconfigRunsProgram(file: string, fields: readonly string[]): Problem {
  return problem(
    file,
    'DISCOVERY_NAMES_PROGRAMS',
    `the downloaded kubeconfig would run a program on the local host: ${fields.join(', ')}`,
    'Save the kubeconfig, check the program, and pass the file with --discovery-file',
  );
}

export function noCredentials(file: string): Problem {
  return problem(
    file,
    'DISCOVERY_NO_TOKEN',
    'the kubeconfig contains no credentials for the TLS bootstrap of the kubelet',
    'Pass a token with --tls-bootstrap-token',
  );
}

export function credentialsRefused(file: string, why: string): Problem {
  return problem(
    file,
    'DISCOVERY_CREDENTIALS_REFUSED',
    `the API server does not accept the credentials of the file: ${why}`,
    'Create a new file, or pass a token with --tls-bootstrap-token',
  );
}

// ---- after discovery

export function namedServerUnreachable(endpoint: string, server: string, why: string): Problem {
  const message = `ConfigMap kube-public/cluster-info names the API server ${server}, which does not answer: ${why}`;
  return problem(
    endpoint,
    'DISCOVERY_SERVER_UNREACHABLE',
    message,
    `Make ${server} reachable for nodes, or change the server in ConfigMap kube-public/cluster-info to https://${endpoint}`,
  );
}

function name(text: string): string {
  return text === '' ? 'unnamed' : printable(text);
}
