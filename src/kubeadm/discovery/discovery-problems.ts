import type { Problem } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';
import type { ProxyRefusal } from '../../kube/proxy.ts';
import type { PeerCertificate } from '../../kube/web-answer.ts';
import type { Certificate } from '../../x509/certificate.ts';
import type { ClockReading } from './clock-reading.ts';
import { clocksAgree, clocksDiffer, describeClocks } from './clock-reading.ts';

/** Problems of finding the cluster. Each begins with whom was asked: `discovery: 10.0.0.1:6443: ...`. */

function problem(endpoint: string, code: string, message: string, hint: string): Problem {
  return { code: `DISCOVERY_${code}`, message: `discovery: ${endpoint}: ${message}`, hint };
}

const NEW_TOKEN = 'Make a new one on the control plane: kubeletadm token create --print-join-command';
const CHECK_ADDRESS = "Check the API server's address and port (kubeadm's default is 6443)";

// ---- the way there

/** Nothing answers there; it may yet. */
export function unreachable(endpoint: string, why: string, hint = 'Check that the API server runs, its address, and firewalls'): Problem {
  return problem(endpoint, 'UNREACHABLE', why, hint);
}

/** The proxy of the environment is in the way. */
export function proxyInTheWay(endpoint: string, why: string, kind: ProxyRefusal['kind'] | null): Problem {
  const hint =
    kind === 'login'
      ? 'Give user and password in HTTPS_PROXY (http://USER:PASSWORD@HOST:PORT), or name the API server in NO_PROXY'
      : 'Correct HTTPS_PROXY, or name the API server in NO_PROXY to go there directly';
  return problem(endpoint, 'PROXY', why, hint);
}

/** Something answers, and it is no API server. */
export function notAnApiServer(endpoint: string, why: string, hint = CHECK_ADDRESS): Problem {
  return problem(endpoint, 'NOT_API_SERVER', why, hint);
}

/** The two sides do not agree on how to encrypt. */
export function tlsFailed(endpoint: string, why: string): Problem {
  return problem(endpoint, 'TLS', why, `${CHECK_ADDRESS}, and what stands before it (proxy, load balancer): TLS 1.2 or later is needed`);
}

// ---- the certificate of the server

/** Its certificate is of another authority. `authority` says whose was expected. */
export function untrustedServer(endpoint: string, authority: string, peer: PeerCertificate | null): Problem {
  const shown = peer === null ? 'its certificate' : `its certificate (${name(peer.subject)}, issued by ${name(peer.issuer)})`;
  const hint =
    'Somebody stands between (a proxy that opens TLS, another server at this address), or it is the API server of another cluster';
  return problem(endpoint, 'UNTRUSTED_SERVER', `${shown} is not signed by ${authority}`, hint);
}

/** Its certificate is for other names. */
export function wrongServerName(endpoint: string, host: string, peer: PeerCertificate | null): Problem {
  const names = peer === null || peer.names.length === 0 ? 'no name at all' : peer.names.map((each) => printable(each)).join(', ');
  const hint = `Use one of those as the address, or have ${host} added to the certificate (apiServer.certSANs)`;
  return problem(endpoint, 'WRONG_NAME', `its certificate is not for ${host} but for ${names}`, hint);
}

/** Its certificate is not valid at this time; which clock is wrong is said when it can be told. */
export function serverCertificateTime(
  endpoint: string,
  { peer, when, clock }: { readonly peer: PeerCertificate | null; readonly when: 'expired' | 'early'; readonly clock: ClockReading },
): Problem {
  const time = peer && formatRfc3339(when === 'expired' ? peer.notAfter : peer.notBefore);
  const message = `its certificate ${when === 'expired' ? 'expired' : 'is not valid yet'}${time === null ? '' : ` (${when === 'expired' ? 'until' : 'from'} ${time})`}: ${describeClocks(clock)}`;
  if (when === 'early' && clocksAgree(clock)) {
    const hint = 'Both clocks agree: wait until then, or renew the certificate on the control plane: kubeadm certs renew apiserver';
    return problem(endpoint, 'CERTIFICATE_NOT_YET_VALID', message, hint);
  }
  if (when === 'early' || clocksDiffer(clock)) return problem(endpoint, 'CLOCK_SKEW', message, SET_CLOCKS);
  return problem(endpoint, 'CERTIFICATE_EXPIRED', message, 'Renew it on the control plane: kubeadm certs renew apiserver');
}

const SET_CLOCKS = 'Set the clocks of both machines (timedatectl, chronyc)';

/** The CA begins to be valid in the future. */
export function authorityNotYetValid(endpoint: string, authority: Certificate, clock: ClockReading): Problem {
  const message = `the CA of the cluster (${name(authority.subject)}) is not valid before ${formatRfc3339(authority.notBefore)}: ${describeClocks(clock)}`;
  if (clocksAgree(clock)) {
    const hint = 'Both clocks agree: wait until then, or give the cluster a CA that is valid now';
    return problem(endpoint, 'CA_NOT_YET_VALID', message, hint);
  }
  return problem(endpoint, 'CLOCK_SKEW', message, SET_CLOCKS);
}

/** The time of the CA is over. */
export function authorityExpired(endpoint: string, authority: Certificate, clock: ClockReading): Problem {
  const message = `the CA of the cluster (${name(authority.subject)}) expired on ${formatRfc3339(authority.notAfter)}: ${describeClocks(clock)}`;
  if (clocksDiffer(clock)) return problem(endpoint, 'CLOCK_SKEW', message, SET_CLOCKS);
  return problem(endpoint, 'CA_EXPIRED', message, 'The cluster needs a new CA before anything can join it');
}

/** The clocks are far apart, and nothing has failed for it yet. */
export function clocksApart(endpoint: string, clock: ClockReading): Problem {
  return problem(endpoint, 'CLOCK_SKEW', describeClocks(clock), `${SET_CLOCKS}: certificates seem expired or not yet valid otherwise`);
}

// ---- reading cluster-info

/** 401: the API server talks to nobody it does not know. */
export function noAnonymousAccess(endpoint: string): Problem {
  const hint = 'Discovery by token needs it: use --discovery-file with a kubeconfig that has the CA, or --ca-cert';
  return problem(endpoint, 'NO_ANONYMOUS_ACCESS', 'the API server allows no anonymous requests (401)', hint);
}

/** 403: anonymous requests are allowed, but not for cluster-info. */
export function clusterInfoForbidden(endpoint: string, reported: string): Problem {
  const hint =
    'Have the Role and RoleBinding kubeadm:bootstrap-signer-clusterinfo made (init phase bootstrap-token), or use --discovery-file';
  return problem(
    endpoint,
    'FORBIDDEN',
    `kube-public/cluster-info may not be read anonymously (403)${reported === '' ? '' : `: ${reported}`}`,
    hint,
  );
}

/** 404: the cluster has no cluster-info. */
export function noClusterInfo(endpoint: string): Problem {
  const hint = 'Have it made (kubeletadm init phase bootstrap-token, or kubeadm init phase bootstrap-token), or use --discovery-file';
  return problem(endpoint, 'NO_CLUSTER_INFO', 'there is no ConfigMap kube-public/cluster-info', hint);
}

/** The API server has trouble of its own. */
export function serverFailure(endpoint: string, status: number, reported: string): Problem {
  const hint = 'See the log of the API server, or of the load balancer before it';
  return problem(endpoint, 'SERVER_ERROR', `answered ${status}${reported === '' ? '' : `: ${reported}`}`, hint);
}

/** cluster-info holds no kubeconfig a node could join by. `why` is a clause about the kubeconfig. */
export function clusterInfoInvalid(endpoint: string, why: string): Problem {
  return problem(endpoint, 'CLUSTER_INFO', `the kubeconfig in kube-public/cluster-info is of no use: ${why}`, UPLOAD_AGAIN);
}

const UPLOAD_AGAIN = 'Have it made again on the control plane: kubeletadm init phase bootstrap-token';

/** cluster-info names several clusters, and none of them is meant. */
export function severalClusters(endpoint: string, names: readonly string[]): Problem {
  const list = names.map((each) => JSON.stringify(each)).join(', ');
  return clusterInfoInvalid(
    endpoint,
    `it names ${names.length === 1 ? 'the cluster' : `${names.length} clusters`} ${list}, none without a name and none chosen by current-context`,
  );
}

/** The second answer, over verified TLS, is not the first. */
export function clusterInfoChanged(endpoint: string): Problem {
  const message = 'kube-public/cluster-info is another over verified TLS than it was before';
  return problem(
    endpoint,
    'CHANGED',
    message,
    'It was changed this very moment, or somebody stood between the first time: run the same command again',
  );
}

// ---- token and pins

/** cluster-info is signed with other tokens, or none. `isKnown`: the API server, verified, lets the token log in. */
export function noSignature(
  endpoint: string,
  tokenId: string,
  { others, isKnown }: { readonly others: number; readonly isKnown: boolean },
): Problem {
  const remote =
    others === 0 ? 'it has none at all: is the bootstrapsigner of kube-controller-manager on?' : `it has ${others} of other tokens`;
  const causes = isKnown
    ? 'the API server knows it, so it lacks the usage signing, or was made this moment'
    : 'it is unknown, has expired, lacks the usage signing, or was made this moment';
  const message = `kube-public/cluster-info has no signature of the token ${tokenId}: ${causes} (${remote})`;
  return problem(endpoint, 'NO_SIGNATURE', message, NEW_TOKEN);
}

/** The signature of the token was there and is not any more. */
export function signatureGone(endpoint: string, tokenId: string): Problem {
  return problem(
    endpoint,
    'TOKEN_EXPIRED',
    `the signature of the token ${tokenId} is gone from kube-public/cluster-info: it has expired or was deleted`,
    NEW_TOKEN,
  );
}

/** The API server, itself verified by its pin, does not know the token. */
export function tokenUnknown(endpoint: string, tokenId: string): Problem {
  const message = `the API server does not know the token ${tokenId}, and kube-public/cluster-info has no signature of it: it has expired, was deleted, or is of another cluster`;
  return problem(endpoint, 'TOKEN_UNKNOWN', message, NEW_TOKEN);
}

/** The signature is not the token's. */
export function wrongSignature(endpoint: string, tokenId: string, state: 'wrong' | 'outdated' | 'unclear'): Problem {
  const about = `the signature of kube-public/cluster-info for the token ${tokenId}`;
  if (state === 'outdated') {
    const hint = 'See that the bootstrapsigner of kube-controller-manager is on and works';
    return problem(endpoint, 'SIGNATURE', `${about} is older than its content, and does not fit`, hint);
  }
  const message = `${about} does not fit: the secret behind the dot is not the token's${state === 'unclear' ? ', the signer has not come round to the latest change' : ''}, or somebody changed the content on its way`;
  return problem(endpoint, 'SIGNATURE', message, `Check the token. ${NEW_TOKEN}`);
}

/** None of the cluster's CAs is pinned. */
export function pinMismatch(
  endpoint: string,
  expected: readonly string[],
  found: readonly { readonly pin: string; readonly subject: string }[],
): Problem {
  const shown = found.map(({ pin, subject }) => `${pin} (${name(subject)})`).join(', ');
  const message = `the CA of the cluster is not the pinned one: expected ${expected.join(' or ')}, found ${shown}`;
  const hint =
    'Compare with openssl on the control plane, or kubeletadm token create --print-join-command: a wrong pin is another cluster, or somebody between';
  return problem(endpoint, 'PIN_MISMATCH', message, hint);
}

/** The server is verified and does not accept the token as a login. */
export function tokenRefused(endpoint: string, tokenId: string, isSigned: boolean): Problem {
  const message = isSigned
    ? `the token ${tokenId} signs kube-public/cluster-info, but the API server does not let it log in: it has expired this moment, lacks the usage authentication, or --enable-bootstrap-token-auth is off`
    : `the API server does not accept the token ${tokenId}: it is unknown, has expired, or lacks the usage authentication`;
  return problem(endpoint, 'TOKEN_REFUSED', message, NEW_TOKEN);
}

// ---- discovery by file or URL

/** The document of a URL is not to be had. */
export function documentUnavailable(url: string, why: string): Problem {
  return problem(url, 'URL', why, 'Check the URL given as --discovery-file: it must answer with a kubeconfig');
}

/** A kubeconfig that would have anybody believed. */
export function insecureKubeconfig(file: string, why: string): Problem {
  return problem(file, 'INSECURE', why, "Put the cluster's CA into certificate-authority-data, and an https address into server");
}

/** Neither the kubeconfig nor cluster-info has a CA for the kubelet. */
export function noAuthority(file: string): Problem {
  return problem(
    file,
    'NO_CA',
    'it has no certificate authority, and there is none to be had from kube-public/cluster-info',
    'Put certificate-authority-data into it',
  );
}

/** What should be a PEM bundle holds no certificates. */
export function noCertificates(file: string): Problem {
  return problem(
    file,
    'NO_CA',
    'it holds no certificates, or one that cannot be read',
    'Take /etc/kubernetes/pki/ca.crt of a control plane',
  );
}

/** A kubeconfig from the web that names files of this machine. */
export function namesLocalFiles(file: string, fields: readonly string[]): Problem {
  return problem(
    file,
    'NAMES_FILES',
    `it names files of this machine: ${fields.join(', ')}`,
    'Embed their content (kubectl config view --raw --flatten)',
  );
}

/** A kubeconfig from the web that has the local host run programs. */
export function namesPrograms(file: string, fields: readonly string[]): Problem {
  return problem(
    file,
    'NAMES_PROGRAMS',
    `it comes from the web and has the local host run a program: ${fields.join(', ')}`,
    'Save it, check the program, and give the file with --discovery-file',
  );
}

/** Nothing for the kubelet to log in with. */
export function noCredentials(file: string): Problem {
  return problem(
    file,
    'NO_TOKEN',
    'it holds no credentials for the kubelet to bootstrap itself with',
    'Give a token with --tls-bootstrap-token',
  );
}

/** The API server, verified, does not let the credentials of the file log in. */
export function credentialsRefused(file: string, why: string): Problem {
  return problem(
    file,
    'CREDENTIALS_REFUSED',
    `the API server does not accept its credentials: ${why}`,
    'Have a new file made, or give a token with --tls-bootstrap-token',
  );
}

// ---- after discovery

/** cluster-info names another address than the one that answered, and that one does not answer. */
export function namedServerUnreachable(endpoint: string, server: string, why: string): Problem {
  const message = `kube-public/cluster-info names ${server} as the API server, which does not answer: ${why}`;
  return problem(
    endpoint,
    'SERVER_UNREACHABLE',
    message,
    `Nodes use that address: make it reachable, or have cluster-info name ${endpoint}`,
  );
}

function name(text: string): string {
  return text === '' ? 'without a name' : printable(text);
}
