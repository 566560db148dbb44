import { AppError } from '../../base/errors.ts';
import { hostPause, observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { previousFile } from '../../host/plan/diff-file.ts';
import { type Cluster, pollClient, untilInterrupted } from '../../kube/cluster.ts';
import { hasPermissionOrUnknown, REQUEST_CERTIFICATE } from '../../kube/has-permission.ts';
import { BOOTSTRAP_CONF, KUBELET_CONF } from '../../kube/well-known.ts';
import { clientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { kubeletMessage } from '../../kubelet/facts/kubelet-issue.ts';
import { waitOnKubelet } from '../../kubelet/health/crash-watch.ts';
import { ALLOW_CSRS, type BootstrapReason, explainBootstrap, isRefused, isUnauthorized } from '../explain/explain-bootstrap.ts';
import { CLIENT_SIGNER, CSRS, type NodeCsr, nodeOfCsr, readNodeCsr } from '../node-identity/node-csr.ts';

export interface WaitBootstrapInput {
  /** `timeouts.tlsBootstrap`. */
  readonly timeoutMs: number;
  readonly nodeName: string;
}

const NAME = 'kubelet-wait-bootstrap';
const PROGRESS_MS = 5_000;
/** Time before a progress message at which its CSRs are read. */
const READ_AHEAD_MS = 2_000;

const CREDENTIALS = combineFacts({ files: fileFacts([BOOTSTRAP_CONF]), identity: clientIdentity });
const FACTS = combineFacts({ credentials: CREDENTIALS, init: initSystem });

/**
 * Waits until the kubelet has a usable client certificate, then removes the bootstrap credentials from the
 * host, also after a failure. kubeadm 1.36: join phase kubelet-wait-bootstrap. An existing kubelet.conf
 * proves nothing: the kubelet writes it before it has a certificate.
 */
export const kubeletWaitBootstrap = definePhase<WaitBootstrapInput, Awaited<ReturnType<typeof inspect>>>({
  name: NAME,
  short: 'Wait for the TLS bootstrap of the kubelet',
  runsAfterFailure: true,
  ready: waitForIdentity,
  observe: inspect,
  plan: ({ files, init, identity }) => {
    if (init !== 'systemd') return { changes: [], deferred: 'the kubelet performs the TLS bootstrap when the host boots with these files' };
    const found = files.get(BOOTSTRAP_CONF) ?? null;
    if (found === null) {
      return identity.state === 'usable'
        ? { changes: [], noop: `the kubelet has a client certificate (${identity.source})` }
        : {
            changes: [],
            deferred: 'waits for the client certificate of the kubelet after kubelet-start, then removes bootstrap-kubelet.conf',
          };
    }
    const reason = identity.state === 'usable' ? 'the kubelet has its own client certificate' : 'the token must not remain on the host';
    return { changes: [{ kind: 'remove-file', path: BOOTSTRAP_CONF, before: previousFile(found), reason }] };
  },
});

async function inspect({ host, signal }: PhaseContext) {
  const { credentials, init } = await observe(host, FACTS, signal);
  return { ...credentials, init };
}

/**
 * Waits until the kubelet has a usable client certificate.
 * @throws AppError BOOTSTRAP_TIMEOUT, or BOOTSTRAP_DENIED immediately when its CSR was rejected; both with
 *   the state of the CSR in the cluster
 */
export async function waitForIdentity(context: PhaseContext, { timeoutMs, nodeName }: WaitBootstrapInput): Promise<void> {
  const { host, signal, cluster } = context;
  if ((await observe(host, initSystem, signal)) !== 'systemd') return;
  // A kubelet that is healthy usually has its certificate, and no CSRs need to be read.
  if ((await observe(host, CREDENTIALS, signal)).identity.state === 'usable') return;
  const earlier = await decidedBefore(context, nodeName);
  const fail = async (why: string, waitedMs: number): Promise<never> => {
    const reason = await reasonOf(context, await readRequests(cluster, nodeName, earlier), { earlier, waitedMs });
    throw noCertificate(host.name, waitedMs, why, reason);
  };
  // Not awaited: a response may take minutes with --kube-api-qps, and the wait must notice the certificate
  // in the meantime.
  const background = latestRead(() => readRequests(cluster && pollClient(cluster), nodeName, earlier));
  let nextReadMs = PROGRESS_MS - READ_AHEAD_MS;
  await waitOnKubelet(context, NAME, {
    probe: async (elapsedMs) => {
      const { files, identity } = await observe(host, CREDENTIALS, signal);
      if (identity.state === 'usable') return { done: undefined };
      const why = identity.state === 'missing' ? `${KUBELET_CONF} does not exist` : identity.why;
      if (!files.get(BOOTSTRAP_CONF)) await fail(why, elapsedMs());
      if (elapsedMs() >= nextReadMs) {
        nextReadMs += PROGRESS_MS;
        background.start();
      }
      return { pending: why };
    },
    timeoutMs,
    pauseMs: hostPause(host),
    progressMs: PROGRESS_MS,
    describe: async (why, waitedMs) => {
      const reason = await reasonOf(context, background.latest() ?? NOT_READ, { earlier, waitedMs });
      if (reason.final) throw noCertificate(host.name, waitedMs, why, reason);
      return `waiting for the kubelet's client certificate, ${Math.round(waitedMs / 1000)} s: ${reason.why}`;
    },
    timedOut: fail,
  });
}

function noCertificate(host: string, waitedMs: number, why: string, reason: BootstrapReason): AppError {
  const code = reason.final ? 'BOOTSTRAP_DENIED' : 'BOOTSTRAP_TIMEOUT';
  const message = `${NAME}: the kubelet has no client certificate after ${Math.round(waitedMs / 1000)}s: ${why}; ${reason.why}`;
  return new AppError({ host, code, message, hint: `${reason.hint}. Then rerun the command` });
}

/** Names of CSRs that were decided before the wait began. */
interface EarlierRequests {
  /** Issued for a node of the same name at an earlier time, so not relevant for this wait. */
  readonly issued: ReadonlySet<string>;
  readonly refused: ReadonlySet<string>;
}

async function decidedBefore({ cluster }: PhaseContext, nodeName: string): Promise<EarlierRequests> {
  const found = await orUnknown(cluster && untilInterrupted(cluster), (api) => requestsOf(api, nodeName));
  const namesOf = (is: (csr: NodeCsr) => boolean) => new Set('unknown' in found ? [] : found.filter(is).map(({ name }) => name));
  return { issued: namesOf(({ state }) => state.kind === 'issued'), refused: namesOf(isRefused) };
}

/** Sends no request to the API server. */
async function reasonOf(
  context: PhaseContext,
  found: CurrentRequests | UnknownRequests,
  { earlier, waitedMs }: { readonly earlier: EarlierRequests; readonly waitedMs: number },
): Promise<BootstrapReason> {
  if ('unknown' in found) return explainUnknown(found, await kubeletMessage(context, waitedMs));
  if (found.csrs.length > 0) return explainBootstrap(found.csrs, { refusedBefore: earlier.refused });
  if (found.mayCreate) return explainBootstrap([], { reported: await kubeletMessage(context, waitedMs) });
  return { why: 'the bootstrap credentials are not allowed to create CSRs', hint: ALLOW_CSRS, final: false };
}

/** The CSRs that were not issued before the wait. */
interface CurrentRequests {
  readonly csrs: readonly NodeCsr[];
  /** The credentials are allowed to create one. */
  readonly mayCreate: boolean;
}

/** Why the CSRs are not known. */
interface UnknownRequests {
  readonly unknown: string;
  /** The API server also rejects the credentials of this run. */
  readonly isRefused: boolean;
}

const NOT_READ: UnknownRequests = { unknown: 'the API server has not answered yet', isRefused: false };

/** With an expired token, neither the kubelet nor this run can continue. */
function explainUnknown({ unknown, isRefused }: UnknownRequests, reported: string | null): BootstrapReason {
  if (reported !== null) return { ...explainBootstrap([], { reported }), final: isRefused && isUnauthorized(reported) };
  const why = `the state of its CSR is unknown: ${unknown}`;
  return { why, hint: 'See kubectl get csr, and journalctl -u kubelet on the host', final: false };
}

async function readRequests(
  cluster: Cluster | null,
  nodeName: string,
  { issued }: EarlierRequests,
): Promise<CurrentRequests | UnknownRequests> {
  return orUnknown(cluster, async (api) => {
    const csrs = (await requestsOf(api, nodeName)).filter(({ name }) => !issued.has(name));
    return { csrs, mayCreate: csrs.length > 0 || (await hasPermissionOrUnknown(api, REQUEST_CERTIFICATE)) };
  });
}

/** The CSRs of the node for a client certificate. */
async function requestsOf(cluster: Cluster, nodeName: string): Promise<readonly NodeCsr[]> {
  const { items } = await cluster.list(CSRS);
  return items.map(readNodeCsr).filter((csr) => csr.signerName === CLIENT_SIGNER && nodeOfCsr(csr) === nodeName);
}

async function orUnknown<T>(cluster: Cluster | null, read: (cluster: Cluster) => Promise<T>): Promise<T | UnknownRequests> {
  if (cluster === null) return { unknown: 'no API server is configured', isRefused: false };
  try {
    return await read(cluster);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { unknown: error.problems[0]?.message ?? '', isRefused: error.code === 'CLUSTER_UNAUTHORIZED' };
  }
}

/** Reads in the background, at most once at a time. */
function latestRead<T>(read: () => Promise<T>): {
  start(): void;
  /** Null: no read has finished. @throws the error of the last one */
  latest(): T | null;
} {
  let isReading = false;
  let latest: () => T | null = () => null;
  return {
    start: () => {
      if (isReading) return;
      isReading = true;
      read()
        .then(
          (value) => {
            latest = () => value;
          },
          (error: unknown) => {
            latest = () => {
              throw error;
            };
          },
        )
        .finally(() => {
          isReading = false;
        });
    },
    latest: () => latest(),
  };
}
