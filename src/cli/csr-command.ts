import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { CsrSourcesRequest } from '../fleet/use-cases/csr-sources.ts';
import type { CommandOptions, On } from './command.ts';
import type { CsrApproveRequest, CsrListRequest } from './csr.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addClusterOptions, addHostOption, addSshOptions, addTableOptions } from './options.ts';
import { outputOption } from './output-options.ts';
import { hostsRequest, kubeconfigRequest, outputRequest, runRequest, selectorOf, tableRequest } from './request-parts.ts';

/** `csr list`, `csr approve`. */
export function defineCsr(csr: Command, on: On): void {
  const list = csr
    .command('list')
    .description('List pending CSRs for serving certificates and the result of each check')
    .option('--all', 'include CSRs for client certificates and CSRs already approved or denied')
    .option('-l, --selector <labels>', 'label selector of Nodes, as in kubectl: only CSRs of existing Nodes with these labels');
  on(addSources(addTableOptions(list), COMPARED), listRequest, async (...args) => (await import('./csr.ts')).runCsrList(...args));
  const approve = csr
    .command('approve')
    .description('Check CSRs for serving certificates, and approve the CSRs that pass every check')
    .argument('[name...]', 'names of CSRs, as NAME or csr/NAME')
    .option('--all', 'approve all pending CSRs that pass every check, and list the others with the reason')
    .option(
      '--trust-node-status',
      'approve a CSR without asking even if only the status of the Node confirms a name; insecure, because a compromised kubelet can write any name into this status',
    )
    .option('--dry-run', 'print the CSRs that would be approved')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(addSources(approve, SELECTED), approveRequest, async (...args) => (await import('./csr.ts')).runCsrApprove(...args));
  addSections(approve, { notes: NOTES, examples: EXAMPLES });
}

const COMPARED = 'host, reached over SSH, whose names and addresses are compared with the CSRs (repeatable)';
const SELECTED =
  'host, reached over SSH: select the CSRs of its Node, and compare them with the names and addresses of the host (repeatable)';

function addSources(command: Command, hostText: string): Command {
  addHostOption(addClusterOptions(command), hostText);
  addOptionGroup(command, HEADINGS.host, (host) =>
    host.option(
      '-f, --file <file>',
      "fleet file whose names and addresses are compared with the CSRs, and in which --host looks up names; '-' for standard input",
    ),
  );
  return addSshOptions(command);
}

function listRequest(_: readonly string[], options: CommandOptions): CsrListRequest {
  return { ...sourcesRequest(options), all: options.all === true, selector: selectorOf(options), output: tableRequest(options) };
}

function approveRequest(args: readonly string[], options: CommandOptions): CsrApproveRequest {
  const names = args.map(csrName);
  const sources = sourcesRequest(options);
  if (names.length === 0 && options.all !== true && sources.hosts.addresses.length === 0)
    throw usageError('csr approve: no CSR selected', 'Pass names of CSRs, --host for the nodes on these hosts, or --all');
  const run = runRequest(options);
  return { ...sources, names, trustNodeStatus: options.trustNodeStatus === true, run, ...outputRequest(options) };
}

const CSR_TYPES = /^(?:csr|certificatesigningrequests?(?:\.certificates\.k8s\.io)?)$/i;

/** `NAME`, or TYPE/NAME as kubectl and `csr approve` print it. */
function csrName(argument: string): string {
  const at = argument.indexOf('/');
  if (at < 0) return argument;
  if (CSR_TYPES.test(argument.slice(0, at)) && at < argument.length - 1) return argument.slice(at + 1);
  throw usageError(`${argument} does not name a CSR`, 'Write NAME or csr/NAME');
}

function sourcesRequest(options: CommandOptions): CsrSourcesRequest {
  return {
    fleetFile: flagText(options, 'file'),
    hosts: { ...hostsRequest(options), file: flagText(options, 'file') },
    cluster: kubeconfigRequest(options),
  };
}

const NOTES = `A kubelet with serverTLSBootstrap: true requests its serving certificate with a CSR, which no Kubernetes controller approves. The command checks the requester, the subject, the usages and each name and address (SAN). Names and addresses of the API server, of Services, of pods and of other Nodes are always refused.

The kubelet itself writes the status of its Node. A name that only this status contains is therefore not approved automatically. Pass a fleet file or --host as a second source of names, answer the prompt on a terminal, or add --trust-node-status. The exit code is 1 if a CSR was refused.`;

const EXAMPLES = `  kubeletadm csr list
  # CSRs of two nodes, names and addresses compared with those of the hosts
  kubeletadm csr approve --host node2 --host node3
  # all CSRs whose names and addresses the fleet file declares
  kubeletadm csr approve --all -f fleet.yaml
  # names are compared only with the status of the Nodes
  kubeletadm csr approve --all --trust-node-status`;
