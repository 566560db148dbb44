import { AppError, type ExitCode, type Problem, usageError } from '../core/errors.ts';
import { combineFacts } from '../core/facts/fact.ts';
import { clientIdentity } from '../core/facts/kubelet-identity.ts';
import { operatingSystem } from '../core/facts/operating-system.ts';
import { ownAddresses } from '../core/facts/own-addresses.ts';
import { type KnownNames, withoutShared } from '../core/kubernetes/judge-serving-csr.ts';
import { nodeOfRequest, SERVING_SIGNER } from '../core/kubernetes/node-csr.ts';
import { formatAge } from '../core/text/age.ts';
import { renderTable } from '../core/text/table.ts';
import { observe } from '../engine/observe.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Services } from '../ports/services.ts';
import { approveCsr, type JudgedCsr, type KnownNodes, listKubeletCsrs, refusalsOf } from '../workflows/serving-csrs.ts';
import { openCluster } from './open-cluster.ts';
import type { CommandOptions } from './program.ts';
import { flagList, readHostTargets } from './read-options.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** `csr list`. */
export async function runCsrList(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  return withCluster<ExitCode>(services, options, async (cluster) => {
    const found = await listKubeletCsrs(cluster, await lookAtHosts(services, options));
    const shown = options.all === true ? found : found.filter(isPendingServing);
    const format = formatOf(options);
    const now = services.clock.now();
    services.output.stdout(format === 'text' ? renderList(shown, now) : renderDocument(listDocument(shown), format));
    return 0;
  });
}

/** `csr approve NAME...`, `--all` or `--host`. */
export async function runCsrApprove(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const hosts = flagList(options, 'host');
  if (args.length === 0 && options.all !== true && hosts.length === 0)
    throw usageError('nothing to approve was named', 'Give names, --host for the nodes on these hosts, or --all');
  return withCluster<ExitCode>(services, options, async (cluster) => {
    const known = await lookAtHosts(services, options);
    const found = await listKubeletCsrs(cluster, known);
    const unknown = args.filter((name) => !found.some(({ csr }) => csr.name === name));
    const wanted = found.filter((one) =>
      args.length > 0 ? args.includes(one.csr.name) : isPendingServing(one) && isOf(one, known, hosts),
    );
    const problems: Problem[] = unknown.map((name) => ({
      code: 'CSR_UNKNOWN',
      message: `there is no certificate signing request ${name} of a kubelet`,
      mend: 'csr list --all shows them',
    }));
    for (const one of wanted) {
      if (one.against.length > 0) problems.push(...refusalsOf(one));
      else await approve(services, cluster, one, options.dryRun === true);
    }
    if (problems.length > 0) throw new AppError(problems);
    if (wanted.length === 0) services.output.stdout('No certificate signing request is pending.\n');
    return 0;
  });
}

async function approve({ output }: Services, cluster: Cluster, one: JudgedCsr, dryRun: boolean): Promise<void> {
  if (!dryRun) await approveCsr(cluster, one);
  output.stdout(`certificatesigningrequest.certificates.k8s.io/${one.csr.name} approved${dryRun ? ' (dry run)' : ''}\n`);
}

function isPendingServing({ csr }: Pick<JudgedCsr, 'csr'>): boolean {
  return csr.signerName === SERVING_SIGNER && csr.state.kind === 'pending';
}

function isOf({ csr }: JudgedCsr, known: KnownNodes, hosts: readonly string[]): boolean {
  return hosts.length === 0 || known.has(nodeOfRequest(csr) ?? '');
}

/** What the hosts of `--host` are called and reached by, asked on the hosts themselves. */
async function lookAtHosts(services: Services, options: CommandOptions): Promise<KnownNodes> {
  const found: KnownNames[] = [];
  if (flagList(options, 'host').length === 0) return new Map();
  const facts = combineFacts({ os: operatingSystem, addresses: ownAddresses, identity: clientIdentity });
  for (const target of await readHostTargets(services, options)) {
    const host = await services.connectHost(target);
    try {
      const { os, addresses, identity } = await observe(host, facts, services.signal);
      const certified = identity.state === 'usable' ? /^system:node:(.+)$/.exec(identity.commonName ?? '')?.[1] : undefined;
      const nodeName = certified ?? os.hostname;
      if (nodeName === null) throw new AppError({ host: host.name, code: 'HOST_NO_NAME', message: 'the host does not tell its name' });
      const names = [...new Set([nodeName, ...(os.hostname === null ? [] : [os.hostname])])];
      found.push({ names, addresses: addresses ?? [], source: `host ${host.name}` });
    } finally {
      await host.close();
    }
  }
  return new Map(withoutShared(found).map((known) => [known.names[0] as string, known]));
}

function renderList(found: readonly JudgedCsr[], now: Date): string {
  if (found.length === 0) return 'No certificate signing request is pending.\n';
  const header = ['NAME', 'AGE', 'SIGNERNAME', 'REQUESTOR', 'REQUESTEDDURATION', 'CONDITION', 'NAMES', 'CHECK'];
  const rows = found.map(({ csr, against }) => [
    csr.name,
    formatAge(now.getTime() - csr.created.getTime()),
    csr.signerName,
    csr.username,
    csr.expirationSeconds === null ? '<none>' : formatAge(csr.expirationSeconds * 1000),
    conditionOf(csr.state.kind),
    [...(csr.request?.dnsNames ?? []), ...(csr.request?.ipAddresses ?? [])].join(',') || '<none>',
    isPendingServing({ csr }) ? (against.length === 0 ? 'ok' : against.join('; ')) : '-',
  ]);
  return `${renderTable([header, ...rows]).join('\n')}\n`;
}

/** As kubectl get csr says it. */
function conditionOf(kind: JudgedCsr['csr']['state']['kind']): string {
  return { pending: 'Pending', approved: 'Approved', issued: 'Approved,Issued', denied: 'Denied', failed: 'Approved,Failed' }[kind];
}

function listDocument(found: readonly JudgedCsr[]): object {
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'KubeletRequestList',
    items: found.map(({ csr, against }) => ({
      name: csr.name,
      created: csr.created.toISOString(),
      signerName: csr.signerName,
      requestor: csr.username,
      condition: conditionOf(csr.state.kind),
      node: nodeOfRequest(csr),
      names: csr.request?.dnsNames ?? [],
      addresses: csr.request?.ipAddresses ?? [],
      ...(isPendingServing({ csr }) ? { approvable: against.length === 0, against } : {}),
    })),
  };
}

async function withCluster<T>(services: Services, options: CommandOptions, use: (cluster: Cluster) => Promise<T>): Promise<T> {
  const { cluster } = await openCluster(services, options, { dryRun: false, staged: false });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}
