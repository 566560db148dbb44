import type { ExitCode } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type ApproveCsrsRequest, approveCsrs, type ListCsrsRequest, listCsrs } from '../fleet/use-cases/kubelet-csrs.ts';
import type { RunSettings } from '../host/run-settings.ts';
import { nodeOfCsr } from '../kubeadm/node-identity/node-csr.ts';
import { printableName } from '../kubeadm/pki/san.ts';
import { isPendingServing, unconfirmedSans, type ValidatedCsr } from '../kubeadm/workflows/certificates/serving-csrs.ts';
import { dryRunMark } from './dry-run.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';
import { showTable, type Table, type TableRequest } from './show-table.ts';

export interface CsrListRequest extends ListCsrsRequest {
  readonly output: TableRequest;
}

/** `csr approve NAME...`, `--all` or `--host`. */
export interface CsrApproveRequest extends ApproveCsrsRequest {
  readonly run: RunSettings;
  readonly verbosity: number;
  readonly format: DocumentFormat;
}

/** `csr list`. */
export async function runCsrList(services: Services, request: CsrListRequest): Promise<ExitCode> {
  const shown = await listCsrs(services, request);
  showTable(services.output, tableOf(shown, services.clock.now()), request.output);
  return 0;
}

/** `csr approve NAME...`, `--all` or `--host`. */
export async function runCsrApprove(services: Services, request: CsrApproveRequest): Promise<ExitCode> {
  const { run, verbosity, format } = request;
  const isText = format === 'text';
  const approved = new Set<ValidatedCsr>();
  let selected: readonly ValidatedCsr[] | null = null;
  try {
    await approveCsrs(services, request, {
      reporter: services.reporter({ verbosity, format: 'text' }),
      selected: (csrs) => {
        selected = csrs;
        if (isText && csrs.length === 0) services.output.stdout('No certificate signing request is pending.\n');
      },
      confirm: (csrs) => confirm(services, csrs, request),
      approved: (one) => {
        approved.add(one);
        if (isText) services.output.stdout(`${resourceName(one.csr.name)} approved${dryRunMark(run)}\n`);
      },
    });
    return 0;
  } finally {
    // Also if some were refused.
    if (!isText && selected !== null) {
      const document = listDocument(selected, (one) => ({ [run.dryRun ? 'wouldApprove' : 'approved']: approved.has(one) }));
      services.output.stdout(renderDocument(document, format));
    }
  }
}

/** Asks about CSRs whose SANs only the status of the Node confirms; a dry run names them as text. */
async function confirm(
  { output, confirm }: Services,
  csrs: readonly ValidatedCsr[],
  { run, format }: CsrApproveRequest,
): Promise<boolean | 'later' | null> {
  const review = `Some names are confirmed only by the status of the Node, which its kubelet writes:\n\n${csrs.map(renderReview).join('\n')}\n`;
  if (run.dryRun) {
    if (format === 'text')
      output.stdout(`${review}${csrs.map(({ csr }) => `${resourceName(csr.name)} needs a decision (dry run)\n`).join('')}`);
    return 'later';
  }
  output.stderr(review);
  return confirm(`Approve ${csrs.length === 1 ? 'this CSR' : `these ${csrs.length} CSRs`}? [y/N] `);
}

/** As kubectl names it. */
function resourceName(name: string): string {
  return `certificatesigningrequest.certificates.k8s.io/${name}`;
}

/** The node, the SANs and the sources of each. */
function renderReview({ csr, verdict }: ValidatedCsr): string {
  const rows = verdict.sans.map(({ san, sources }) => [`  ${san}`, sources.join(', ')]);
  return joinLines([`${csr.name} for Node ${nodeOfCsr(csr)}, requested by ${csr.username}`, ...renderTable(rows)]);
}

function tableOf(found: readonly ValidatedCsr[], now: Date): Table {
  const cellsOf = (one: ValidatedCsr): readonly string[] => [
    one.csr.name,
    formatAge(now.getTime() - one.csr.created.getTime()),
    printableName(one.csr.signerName),
    printableName(one.csr.username),
    one.csr.expirationSeconds === null ? '<none>' : formatAge(one.csr.expirationSeconds * 1000),
    conditionOf(one.csr.state.kind),
    listed([...(one.csr.request?.dnsNames ?? []), ...(one.csr.request?.ipAddresses ?? [])]),
    isPendingServing(one) ? checkOf(one) : '-',
  ];
  return {
    columns: ['NAME', 'AGE', 'SIGNERNAME', 'REQUESTOR', 'REQUESTEDDURATION', 'CONDITION', 'NAMES', 'CHECK'],
    wide: ['NODE', 'CREATED'],
    rows: found.map((one) => ({
      name: resourceName(one.csr.name),
      cells: cellsOf(one),
      wide: [nodeOfCsr(one.csr) ?? '-', one.csr.created.toISOString().replace('.000', '')],
    })),
    empty: 'No certificate signing request is pending.',
    document: () => listDocument(found),
  };
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
  return unconfirmed.length === 0 ? 'ok' : `needs a decision: only the status of the Node contains ${unconfirmed.join(', ')}`;
}

/** The condition as kubectl get csr prints it. */
function conditionOf(kind: ValidatedCsr['csr']['state']['kind']): string {
  return { pending: 'Pending', approved: 'Approved', issued: 'Approved,Issued', denied: 'Denied', failed: 'Approved,Failed' }[kind];
}

function listDocument(found: readonly ValidatedCsr[], resultOf: (one: ValidatedCsr) => object = () => ({})): object {
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'KubeletRequestList',
    items: found.map((one) => ({
      name: one.csr.name,
      created: one.csr.created.toISOString(),
      signerName: one.csr.signerName,
      requestor: one.csr.username,
      condition: conditionOf(one.csr.state.kind),
      node: nodeOfCsr(one.csr),
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
      ...resultOf(one),
    })),
  };
}
