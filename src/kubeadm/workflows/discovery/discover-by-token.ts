import { AppError, type Problem } from '../../../base/errors.ts';
import type { Secret } from '../../../base/text/secret.ts';
import { type BootstrapTokenParts, partsOfToken } from '../../../kube/bootstrap-token.ts';
import type { CertificateContent } from '../../../x509/read-certificate.ts';
import { type ClockReading, clocksDiffer } from '../../discovery/clock-reading.ts';
import { type ClusterInfo, signatureState } from '../../discovery/cluster-info.ts';
import * as problems from '../../discovery/discovery-problems.ts';
import { type FoundCluster, pinnedCertificates, readFoundCluster, requireValidNow } from '../../discovery/found-cluster.ts';
import { type Attempt, type Deadline, type DiscoveryContext, fetchClusterInfo, waitFor } from './fetch.ts';

export interface TokenDiscovery {
  /** `host:port` */
  readonly endpoint: string;
  readonly token: Secret;
  /** `sha256:...`; empty: the token alone is trusted. */
  readonly pins: readonly string[];
  /** The local host queries the API server on behalf of other hosts. */
  readonly forOthers: boolean;
  /**
   * Whether the API server authenticates the token. Called only for servers verified with a pinned CA; null: unknown.
   */
  acceptsToken(cluster: Pick<FoundCluster, 'server' | 'caPem'>): Promise<boolean | null>;
}

const PINNED = 'the pinned CA';
/** Consecutive rejections needed before giving up: caches of the API server lag behind. */
const REFUSALS = 2;

/**
 * Discovers the cluster by a bootstrap token, in kubeadm's order: cluster-info over unverified TLS, its signature, its
 * kubeconfig, the pins of its CA, then cluster-info again over TLS verified with a pinned CA; both texts must be equal.
 * The token itself is sent only to a verified server.
 *
 * A missing or wrong signature may still be replaced, so discovery waits for it. With pins, the API server can be
 * verified without the signature and is asked whether it accepts the token, so that discovery does not wait for an
 * expired token.
 * @throws AppError DISCOVERY_*: exit code 3 for an error that waiting cannot fix, otherwise 1
 * @see kubeadm 1.36 discovery/token RetrieveValidatedConfigInfo
 */
export async function discoverByToken(context: DiscoveryContext, deadline: Deadline, input: TokenDiscovery): Promise<FoundCluster> {
  const { endpoint, token, pins } = input;
  const parts = partsOfToken(token);
  if (parts === null) throw new Error('the configuration was not validated: not a bootstrap token');
  const first = await waitFor(context, deadline, signedClusterInfo(context, deadline, input, parts));
  warnOfClocks(context, endpoint, first.clock);
  const found = readFoundCluster(first.info.kubeconfig, endpoint);
  if (pins.length === 0) {
    requireValidNow(found.certificates, endpoint, first.clock);
    return found;
  }
  const pinned = pinnedCertificates(found, pins, endpoint);
  requireValidNow(pinned, endpoint, first.clock);
  const second = await waitFor(context, deadline, () => verifiedClusterInfo(context, deadline, input, pinned, first.clock.remote));
  if (second.kubeconfig !== first.info.kubeconfig) throw refusal(problems.clusterInfoChanged(endpoint));
  return found;
}

interface Signed {
  readonly info: ClusterInfo;
  readonly clock: ClockReading;
}

/** Tries to get cluster-info with a valid signature from an unverified server. */
function signedClusterInfo(
  context: DiscoveryContext,
  deadline: Deadline,
  input: TokenDiscovery,
  parts: BootstrapTokenParts,
): () => Promise<Attempt<Signed>> {
  const { endpoint } = input;
  let seen = false;
  let wrong = 0;
  let refused = 0;
  return async () => {
    const request = { server: `https://${endpoint}`, trust: { kind: 'unverified' }, expectedCa: PINNED, remote: null } as const;
    const { reading, clock } = await fetchClusterInfo(context, deadline, { ...input, ...request });
    if (reading.kind !== 'found') return settle(reading);
    const { info } = reading;
    if (info.kubeconfig === '') throw refusal(problems.clusterInfoInvalid(endpoint, 'it is empty'));
    const state = signatureState(info, parts);
    if (state === 'valid') return { done: { info, clock } };
    if (state === 'missing' && seen) throw refusal(problems.signatureGone(endpoint, parts.id));
    seen ||= state !== 'missing';
    const accepted = await isAccepted(context, deadline, input, { info, clock });
    refused = accepted === false ? refused + 1 : 0;
    wrong = state === 'wrong' ? wrong + 1 : 0;
    if (state === 'missing') {
      if (refused >= REFUSALS) throw refusal(problems.tokenUnknown(endpoint, parts.id));
      return { retryReason: problems.noSignature(endpoint, parts.id, { others: info.signatures.size, isKnown: accepted === true }) };
    }
    const problem = problems.wrongSignature(endpoint, parts.id, state);
    if (refused >= REFUSALS) throw refusal(problems.wrongSignature(endpoint, parts.id, 'wrong'));
    if (wrong >= REFUSALS && accepted !== true) throw refusal(problem);
    return { retryReason: problem };
  };
}

/** Checks the token at the API server if the pins can verify the server. */
async function isAccepted(
  context: DiscoveryContext,
  deadline: Deadline,
  input: TokenDiscovery,
  { info, clock }: Signed,
): Promise<boolean | null> {
  if (input.pins.length === 0) return null;
  const pinned = pinnedCertificates(readFoundCluster(info.kubeconfig, input.endpoint), input.pins, input.endpoint);
  requireValidNow(pinned, input.endpoint, clock);
  const verified = await verifiedClusterInfo(context, deadline, input, pinned, clock.remote);
  return 'wait' in verified ? null : input.acceptsToken({ server: `https://${input.endpoint}`, caPem: bundle(pinned) });
}

/** Gets cluster-info from a server whose certificate is signed by a pinned CA. */
async function verifiedClusterInfo(
  context: DiscoveryContext,
  deadline: Deadline,
  input: TokenDiscovery,
  pinned: readonly CertificateContent[],
  remote: Date | null,
): Promise<Attempt<ClusterInfo>> {
  const trust = { kind: 'ca', pem: bundle(pinned) } as const;
  const request = { ...input, server: `https://${input.endpoint}`, trust, expectedCa: PINNED, remote };
  const { reading } = await fetchClusterInfo(context, deadline, request);
  return reading.kind === 'found' ? { done: reading.info } : settle(reading);
}

/** Retries errors of a cluster that is still being created; throws denied authentication (401) and refusals. */
function settle(reading: { readonly kind: 'wait' | 'denied' | 'refuse'; readonly problem: Problem; readonly status?: number }): {
  readonly retryReason: Problem;
} {
  if (reading.kind === 'refuse' || reading.status === 401) throw refusal(reading.problem);
  return { retryReason: reading.problem };
}

function warnOfClocks({ reporter }: DiscoveryContext, endpoint: string, clock: ClockReading): void {
  if (!clocksDiffer(clock)) return;
  const { code, message, hint } = problems.clockSkew(endpoint, clock);
  reporter.report({ level: 'warning', code, message: `${message}. ${hint}` });
}

function bundle(certificates: readonly CertificateContent[]): string {
  return certificates.map(({ pem }) => pem).join('');
}

function refusal(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 3 });
}
