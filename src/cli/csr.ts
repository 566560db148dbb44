import { AppError, type ExitCode, type Problem } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type CsrSourcesRequest, withCsrSources } from '../fleet/use-cases/csr-sources.ts';
import type { Cluster } from '../kube/cluster.ts';
import { nodeOfRequest } from '../kubeadm/node-csr.ts';
import { printableName } from '../kubeadm/pki/san.ts';
import { csrProblems } from '../kubeadm/validate-serving-csr.ts';
import { approveCsr, isPendingServing, listKubeletCsrs, unconfirmedSans, type ValidatedCsr } from '../kubeadm/workflows/serving-csrs.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface CsrListRequest extends CsrSourcesRequest {
  /** Also CSRs for client certificates and those that are approved or denied. */
  readonly all: boolean;
  readonly format: DocumentFormat;
}

/** `csr approve NAME...`, `--all` or `--host`. */
export interface CsrApproveRequest extends CsrSourcesRequest {
  readonly names: readonly string[];
  /** Approve names that only the status of the Node confirms, without asking. */
  readonly trustNodeStatus: boolean;
  readonly dryRun: boolean;
  readonly verbosity: number;
}

/** `csr list`. */
export async function runCsrList(services: Services, request: CsrListRequest): Promise<ExitCode> {
  return withCsrSources<ExitCode>(services, request, null, async (cluster, sources) => {
    const found = await listKubeletCsrs(cluster, sources);
    const shown = request.all ? found : found.filter(isPendingServing);
    const { format } = request;
    const now = services.clock.now();
    services.output.stdout(format === 'text' ? renderList(shown, now) : renderDocument(listDocument(shown), format));
    return 0;
  });
}

/** `csr approve NAME...`, `--all` or `--host`. */
export async function runCsrApprove(services: Services, request: CsrApproveRequest): Promise<ExitCode> {
  const { names, dryRun } = request;
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  return withCsrSources<ExitCode>(services, request, reporter, async (cluster, sources) => {
    const found = await listKubeletCsrs(cluster, sources);
    const desired = select(found, names, sources.hosts);
    const refused = desired.filter(({ verdict }) => verdict.refusals.length > 0);
    const passed = desired.filter(({ verdict }) => verdict.refusals.length === 0);
    const unconfirmed = request.trustNodeStatus ? [] : passed.filter((one) => unconfirmedSans(one).length > 0);
    const notApproved = await confirm(services, unconfirmed, dryRun);
    for (const one of passed) if (notApproved === null || !unconfirmed.includes(one)) await approve(services, cluster, one, dryRun);
    const problems = [
      ...names.filter((name) => !found.some(({ csr }) => csr.name === name)).map(unknownCsr),
      ...refused.flatMap(({ csr, verdict }) => csrProblems(csr.name, verdict.refusals)),
      ...(notApproved ?? []),
    ];
    if (problems.length > 0) throw new AppError(problems);
    if (desired.length === 0) services.output.stdout('No certificate signing request is pending.\n');
    return 0;
  });
}

function select(found: readonly ValidatedCsr[], names: readonly string[], hosts: ReadonlySet<string> | null): readonly ValidatedCsr[] {
  if (names.length > 0) return found.filter(({ csr }) => names.includes(csr.name));
  return found.filter((one) => isPendingServing(one) && (hosts === null || hosts.has(nodeOfRequest(one.csr) ?? '')));
}

function unknownCsr(name: string): Problem {
  return {
    code: 'CSR_UNKNOWN',
    message: `the CSR ${name} of a kubelet does not exist`,
    hint: 'List them with: kubeletadm csr list --all',
  };
}

/**
 * Asks about CSRs whose SANs only the status of the Node confirms.
 * @returns null: approve them; otherwise a problem for each, none in a dry run
 */
async function confirm(services: Services, csrs: readonly ValidatedCsr[], dryRun: boolean): Promise<readonly Problem[] | null> {
  if (csrs.length === 0) return null;
  const review = `Only the status of the Node, which its kubelet writes, confirms some names of:\n\n${csrs.map(renderReview).join('\n')}\n`;
  if (dryRun) {
    services.output.stdout(review);
    for (const { csr } of csrs) services.output.stdout(`${resourceName(csr.name)} needs confirmation (dry run)\n`);
    return [];
  }
  services.output.stderr(review);
  const answer = await services.confirm(`Approve ${csrs.length === 1 ? 'this CSR' : `these ${csrs.length} CSRs`}? [y/N] `);
  if (answer === true) return null;
  const hint =
    answer === false
      ? 'The CSR stays pending. To reject it: kubectl certificate deny'
      : 'Compare the names with your records, then add --trust-node-status; or give --host or -f fleet.yaml as a source other than the Node';
  return csrs.map((one) => {
    const sans = unconfirmedSans(one).join(', ');
    const why = answer === false ? 'not confirmed' : `only the status of the Node, which its kubelet writes, confirms ${sans}`;
    return { code: 'CSR_NOT_CONFIRMED', message: `${one.csr.name} is not approved: ${why}`, hint };
  });
}

async function approve({ output }: Services, cluster: Cluster, one: ValidatedCsr, dryRun: boolean): Promise<void> {
  if (!dryRun) await approveCsr(cluster, one);
  output.stdout(`${resourceName(one.csr.name)} approved${dryRun ? ' (dry run)' : ''}\n`);
}

/** As kubectl names it. */
function resourceName(name: string): string {
  return `certificatesigningrequest.certificates.k8s.io/${name}`;
}

/** The node, the SANs and the sources of each. */
function renderReview({ csr, verdict }: ValidatedCsr): string {
  const rows = verdict.sans.map(({ san, sources }) => [`  ${san}`, sources.join(', ')]);
  return joinLines([`${csr.name} for Node ${nodeOfRequest(csr)}, requested by ${csr.username}`, ...renderTable(rows)]);
}

function renderList(found: readonly ValidatedCsr[], now: Date): string {
  if (found.length === 0) return 'No certificate signing request is pending.\n';
  const header = ['NAME', 'AGE', 'SIGNERNAME', 'REQUESTOR', 'REQUESTEDDURATION', 'CONDITION', 'NAMES', 'CHECK'];
  const rows = found.map((one) => [
    one.csr.name,
    formatAge(now.getTime() - one.csr.created.getTime()),
    printableName(one.csr.signerName),
    printableName(one.csr.username),
    one.csr.expirationSeconds === null ? '<none>' : formatAge(one.csr.expirationSeconds * 1000),
    conditionOf(one.csr.state.kind),
    listed([...(one.csr.request?.dnsNames ?? []), ...(one.csr.request?.ipAddresses ?? [])]),
    isPendingServing(one) ? checkOf(one) : '-',
  ]);
  return joinLines(renderTable([header, ...rows]));
}

const MAX_LISTED = 8;

function listed(names: readonly string[]): string {
  const more = names.length > MAX_LISTED ? [`(${names.length - MAX_LISTED} more)`] : [];
  return [...names.slice(0, MAX_LISTED).map(printableName), ...more].join(',') || '<none>';
}

function checkOf(one: ValidatedCsr): string {
  const refusals = one.verdict.refusals.map(({ code, message }) => `${message} [${code}]`);
  if (refusals.length > 0) return refusals.join('; ');
  const unconfirmed = unconfirmedSans(one);
  return unconfirmed.length === 0 ? 'ok' : `needs confirmation: only the status of the Node confirms ${unconfirmed.join(', ')}`;
}

/** The condition as kubectl get csr prints it. */
function conditionOf(kind: ValidatedCsr['csr']['state']['kind']): string {
  return { pending: 'Pending', approved: 'Approved', issued: 'Approved,Issued', denied: 'Denied', failed: 'Approved,Failed' }[kind];
}

function listDocument(found: readonly ValidatedCsr[]): object {
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'KubeletRequestList',
    items: found.map((one) => ({
      name: one.csr.name,
      created: one.csr.created.toISOString(),
      signerName: one.csr.signerName,
      requestor: one.csr.username,
      condition: conditionOf(one.csr.state.kind),
      node: nodeOfRequest(one.csr),
      names: one.csr.request?.dnsNames ?? [],
      addresses: one.csr.request?.ipAddresses ?? [],
      ...(isPendingServing(one)
        ? {
            approvable: one.verdict.refusals.length === 0,
            needsConfirmation: unconfirmedSans(one).length > 0,
            sans: one.verdict.sans,
            refusals: one.verdict.refusals,
          }
        : {}),
    })),
  };
}
