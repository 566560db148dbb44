import type { Clock } from '../../base/clock.ts';
import { type AppError, isAppError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { HttpsClient } from '../../kube/https-client.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { CSRS, nodeOfCsr, SERVING_SIGNER } from '../../kubeadm/node-identity/node-csr.ts';
import type { KnownNames } from '../../kubeadm/node-identity/validate-serving-csr.ts';
import {
  approveCsr,
  isPendingServing,
  listKubeletCsrs,
  unconfirmedSans,
  type ValidatedCsr,
} from '../../kubeadm/workflows/certificates/serving-csrs.ts';
import { listAt, numberAt, textAt } from '../../kubelet/documents/values.ts';
import type { ControllerMetrics } from './metrics.ts';
import { Waiting } from './waiting.ts';

interface ApproverPorts {
  /** Fenced. */
  readonly cluster: Cluster;
  readonly web: HttpsClient;
  readonly clock: Clock;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
  readonly metrics: Pick<ControllerMetrics, 'csrApproved' | 'csrsPending'>;
}

const KUBELET_PORT = 10_250;
const HANDSHAKE_MS = 5_000;
const AT_ONCE = 8;

/**
 * Approves CSRs for serving certificates of kubelets with the checks of `csr approve`. The status of a Node confirms nothing, because
 * its kubelet writes it, and neither does the agent, which has the credentials of the kubelet. Each address must be confirmed by
 * the certificate in use: a TLS server at this address proves that it has a valid certificate of the same Node that contains the
 * address. An operator approves the first certificate and new addresses.
 */
export class ServingApprover {
  readonly #ports: ApproverPorts;
  readonly #options: { readonly namespace: string; readonly serverNames: readonly string[] };
  /** Warnings of the last step: those of CSRs that are still pending are not repeated. */
  #warnings = new Set<string>();

  /**
   * @param options.namespace has the ConfigMap kube-root-ca.crt with the CA of serving certificates
   * @param options.serverNames further names of the API server
   */
  constructor(ports: ApproverPorts, options: { readonly namespace: string; readonly serverNames: readonly string[] }) {
    this.#ports = ports;
    this.#options = options;
  }

  /**
   * Approves the pending CSRs that are confirmed.
   * @throws the errors of `listKubeletCsrs` and `approveCsr`
   */
  async step(): Promise<void> {
    const { cluster, metrics, signal } = this.#ports;
    const { serverNames } = this.#options;
    const valid = (await listKubeletCsrs(cluster, { serverNames })).filter(isPendingServing);
    const doubtful = valid.filter((one) => one.verdict.refusals.length === 0 && unconfirmedSans(one).length > 0);
    const known = await this.#provenNames(doubtful);
    const found = known.length === 0 ? valid : (await listKubeletCsrs(cluster, { serverNames, known })).filter(isPendingServing);
    const before = this.#warnings;
    this.#warnings = new Set();
    let pending = 0;
    for (const one of found) if (!(await this.#decide(one, before))) pending++;
    // Only the leader shows CSRs.
    if (!signal.aborted) metrics.csrsPending(pending);
  }

  /** @returns whether it is approved */
  async #decide(one: ValidatedCsr, before: ReadonlySet<string>): Promise<boolean> {
    const { cluster, reporter, metrics } = this.#ports;
    const warn = (code: string, message: string): void => {
      this.#warnings.add(message);
      if (!before.has(message)) reporter.report({ level: 'warning', code, host: node, message });
    };
    const { name } = one.csr;
    const node = nodeOfCsr(one.csr) ?? '';
    const { refusals } = one.verdict;
    const unconfirmed = unconfirmedSans(one);
    const hint = `for the first certificate of a node or a new address, run kubeletadm csr approve ${name}`;
    if (refusals.length > 0) for (const { code, message } of refusals) warn(code, `CSR ${name} is not approved: ${message}`);
    else if (unconfirmed.length > 0) {
      const why = `no serving certificate that the node uses now confirms ${unconfirmed.join(', ')}`;
      warn('CSR_NOT_CONFIRMED', `CSR ${name} is not approved: ${why}; ${hint}`);
    }
    if (refusals.length + unconfirmed.length > 0) return false;
    await approveCsr(cluster, one);
    metrics.csrApproved();
    const sans = one.verdict.sans.map(({ san }) => san).join(', ');
    reporter.report({ level: 'info', code: 'CSR_APPROVED', host: node, message: `CSR ${name} is approved: ${sans}` });
    return true;
  }

  /** The names of CSRs that the certificates in use contain. */
  async #provenNames(csrs: readonly ValidatedCsr[]): Promise<readonly KnownNames[]> {
    if (csrs.length === 0) return [];
    const { cluster } = this.#ports;
    const { namespace } = this.#options;
    const root = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'kube-root-ca.crt' });
    const ca = (root?.data as Readonly<Record<string, string>> | undefined)?.['ca.crt'] ?? '';
    if (ca === '') return [];
    const proven = await inParallel(csrs, AT_ONCE, async ({ csr }) => {
      const node = nodeOfCsr(csr) ?? '';
      const object = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: node });
      const port = (object === null ? null : numberAt(object, 'status.daemonEndpoints.kubeletEndpoint.Port')) || KUBELET_PORT;
      const { ipAddresses = [], dnsNames = [] } = csr.request ?? {};
      const each = await inParallel(ipAddresses, 2, (address) => this.#servedNames(node, { address, port, ca }));
      return each.flatMap((names, i) => {
        const address = ipAddresses[i] ?? '';
        if (names === null) return [];
        const values = [address, ...dnsNames.filter((name) => names.includes(name))];
        return [{ node, values, source: `serving certificate of Node ${node} at ${address}` }];
      });
    });
    return proven.flat();
  }

  /** The names in the certificate of the Node that the server at the address presents; null: it presents no such certificate. */
  async #servedNames(
    node: string,
    { address, port, ca }: { readonly address: string; readonly port: number; readonly ca: string },
  ): Promise<readonly string[] | null> {
    const { web, signal } = this.#ports;
    const url = `https://${address.includes(':') ? `[${address}]` : address}:${port}/healthz`;
    const answer = await web.get({ url, trust: { kind: 'ca', pem: ca }, proxyUrl: null, timeoutMs: HANDSHAKE_MS, signal });
    const { peer } = answer.kind === 'answer' ? answer : { peer: null };
    const name = `CN=system:node:${node}`;
    const subjects = [`O=system:nodes, ${name}`, `${name}, O=system:nodes`];
    return peer !== null && subjects.includes(peer.subject) ? peer.names : null;
  }
}

/** Time until CSRs that are not confirmed are checked again. */
const RETRY_MS = 60_000;
/** Events that arrive within this time cause one step. */
const LEAST_STEP_MS = 1_000;

/** Approves CSRs until the signal is aborted. @param watched not fenced */
export async function approveServing(
  ports: ApproverPorts & { readonly random: () => number },
  watched: Cluster,
  { onIssue, ...options }: ConstructorParameters<typeof ServingApprover>[1] & { readonly onIssue: (error: AppError) => void },
): Promise<void> {
  const { clock, random, signal, metrics } = ports;
  const waiting = new Waiting();
  let hasPending = false;
  const report = (error: unknown): void => {
    if (signal.aborted) return;
    if (!isAppError(error)) throw error;
    if (error.code !== 'LEASE_LOST' && error.code !== 'CLUSTER_CONFLICT') onIssue(error);
  };
  const onObjects = (csrs: ReadonlyMap<string, KubeObject>): void => {
    hasPending = [...csrs.values()].some(isUndecided);
    waiting.wake();
  };
  const following = listWatch(CSRS, { cluster: watched, clock, random, signal, onObjects, onIssue: report });
  const approver = new ServingApprover(ports, options);
  while (!signal.aborted) {
    if (hasPending) await approver.step().catch(report);
    else metrics.csrsPending(0);
    await clock.sleep(LEAST_STEP_MS, signal).catch(() => undefined);
    await waiting.sleep(RETRY_MS, ports);
  }
  await following;
}

/** Whether a CSR for a serving certificate is neither approved nor denied. */
function isUndecided(csr: KubeObject): boolean {
  return textAt(csr, 'spec.signerName') === SERVING_SIGNER && listAt(csr, 'status.conditions').length === 0;
}
