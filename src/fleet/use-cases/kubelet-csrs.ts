import { AppError, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import { nodeOfCsr } from '../../kubeadm/node-identity/node-csr.ts';
import { csrProblems } from '../../kubeadm/node-identity/validate-serving-csr.ts';
import {
  approveCsr,
  isPendingServing,
  listKubeletCsrs,
  unconfirmedSans,
  type ValidatedCsr,
} from '../../kubeadm/workflows/certificates/serving-csrs.ts';
import type { NodeCommandPorts } from '../ports.ts';
import { type CsrSourcesRequest, withCsrSources } from './csr-sources.ts';

export interface ListCsrsRequest extends CsrSourcesRequest {
  /** Also CSRs for client certificates and those that are approved or denied. */
  readonly all: boolean;
  /** Only CSRs of existing Nodes with these labels. */
  readonly selector?: LabelSelector | undefined;
}

export function listCsrs(services: NodeCommandPorts, request: ListCsrsRequest): Promise<readonly ValidatedCsr[]> {
  return withCsrSources(services, request, null, async (cluster, sources) => {
    const found = await listKubeletCsrs(cluster, sources);
    const shown = request.all ? found : found.filter(isPendingServing);
    if (request.selector === undefined) return shown;
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: request.selector.text });
    const nodes = new Set(items.map(({ metadata }) => metadata.name));
    return shown.filter(({ csr }) => nodes.has(nodeOfCsr(csr) ?? ''));
  });
}

/** The CSRs with these names; without names all pending ones, or those of `--host`. */
export interface ApproveCsrsRequest extends CsrSourcesRequest {
  readonly names: readonly string[];
  /** Approve names that only the status of the Node confirms, without asking. */
  readonly trustNodeStatus: boolean;
}

/**
 * Approves the CSRs that are valid.
 * @param view.confirm asks about CSRs whose SANs only the status of the Node confirms; null: no terminal; `later`: they stay
 *   pending, which is no failure
 * @param view.selected the CSRs that were selected, before any is approved
 * @throws AppError with a problem for each CSR that is unknown, refused or not confirmed, after all others are approved
 */
export function approveCsrs(
  services: NodeCommandPorts,
  request: ApproveCsrsRequest,
  view: {
    readonly reporter: Reporter;
    selected(csrs: readonly ValidatedCsr[]): void;
    confirm(csrs: readonly ValidatedCsr[]): Promise<boolean | 'later' | null>;
    approved(csr: ValidatedCsr): void;
  },
): Promise<void> {
  const { names } = request;
  return withCsrSources(services, request, view.reporter, async (cluster, sources) => {
    const found = await listKubeletCsrs(cluster, sources);
    const desired = select(found, names, sources.hosts);
    view.selected(desired);
    const refused = desired.filter(({ verdict }) => verdict.refusals.length > 0);
    const passed = desired.filter(({ verdict }) => verdict.refusals.length === 0);
    const unconfirmed = request.trustNodeStatus ? [] : passed.filter((one) => unconfirmedSans(one).length > 0);
    const answer = unconfirmed.length === 0 || (await view.confirm(unconfirmed));
    for (const one of passed) {
      if (answer !== true && unconfirmed.includes(one)) continue;
      await approveCsr(cluster, one);
      view.approved(one);
    }
    const problems = [
      ...names.filter((name) => !found.some(({ csr }) => csr.name === name)).map(unknownCsr),
      ...refused.flatMap(({ csr, verdict }) => csrProblems(csr.name, verdict.refusals)),
      ...(answer === true || answer === 'later' ? [] : unconfirmed.map((one) => notConfirmed(one, answer))),
    ];
    if (problems.length > 0) throw new AppError(problems);
  });
}

function select(found: readonly ValidatedCsr[], names: readonly string[], hosts: ReadonlySet<string> | null): readonly ValidatedCsr[] {
  if (names.length > 0) return found.filter(({ csr }) => names.includes(csr.name));
  return found.filter((one) => isPendingServing(one) && (hosts === null || hosts.has(nodeOfCsr(one.csr) ?? '')));
}

function unknownCsr(name: string): Problem {
  return {
    code: 'CSR_UNKNOWN',
    message: `the CSR ${name} does not exist or was not created by a kubelet`,
    hint: 'List the CSRs with: kubeletadm csr list --all',
  };
}

function notConfirmed(one: ValidatedCsr, answer: false | null): Problem {
  const hint =
    answer === false
      ? `The CSR stays pending. To reject the CSR: kubectl certificate deny ${one.csr.name}`
      : 'Compare the names with your records, then add --trust-node-status. Or pass --host or -f fleet.yaml, which confirm the names independently';
  const sans = unconfirmedSans(one).join(', ');
  const why = answer === false ? 'you declined the CSR' : `only the Node status, which the kubelet itself can write, confirms ${sans}`;
  return { code: 'CSR_NOT_CONFIRMED', message: `${one.csr.name} is not approved: ${why}`, hint };
}
