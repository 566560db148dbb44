import type { ExitCode } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type MetaName, reportStore, type StoreReading, type StoreReport } from '../dynamic/native-report.ts';
import { hasAgent, readAgent } from '../dynamic/workflows/read-agent.ts';
import { type ReadStore, readStore } from '../dynamic/workflows/read-store.ts';
import { repairWorkflow } from '../dynamic/workflows/repair-config.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import { type ConnectionRequest, readHostTarget } from '../fleet/use-cases/host-access.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import { clusterOnUse } from '../kubeadm/use-cases/cluster-on-use.ts';
import { isKubeconfigGiven, type KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { loadCatalogue } from '../kubelet/catalogue.ts';
import { describeIdentity } from '../kubelet/config-source.ts';
import { findingDocument, findingLine, type Inspected, inspectedAgent } from './dynamic-inspect-agent.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

export interface DynamicInspectRequest {
  /** The host; `localhost`: the local host. */
  readonly address: string;
  readonly repair: boolean;
  /** The checkpoint directory; null: from the command line of the kubelet. */
  readonly directory: string | null;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
  readonly plan: PlanRequest;
  readonly writing: WritingRequest;
}

/** `dynamic inspect HOST [--repair]`: exit code 1 when something is broken. */
export async function runDynamicInspect(services: Services, request: DynamicInspectRequest): Promise<ExitCode> {
  const { directory } = request;
  const { format } = request.plan;
  const target = await readHostTarget(services, request.address, request.connection);
  if (request.repair) return repair(services, target, request);
  const catalogue = await loadCatalogue();
  const cluster = request.cluster.kubeconfig === undefined ? null : clusterOnUse(services, request.cluster);
  const host = await services.connectHost(target);
  try {
    const { shown, findings } =
      directory === null && (await hasAgent(host, services.signal))
        ? inspectedAgent(host.name, await readAgent(host, catalogue, services.signal), format)
        : inspectedStore(
            host.name,
            await readStore(host, { catalogue, directory, cluster: (await cluster?.open()) ?? null, signal: services.signal }),
            format,
          );
    services.output.stdout(shown);
    return findings.some(({ severity }) => severity !== 'warning') ? 1 : 0;
  } finally {
    await cluster?.close();
    await host.close();
  }
}

function inspectedStore(host: string, found: ReadStore, format: DocumentFormat): Inspected {
  const report = reportStore(found.reading);
  return {
    shown: format === 'text' ? render(host, found, report) : renderDocument(document(host, found, report), format),
    findings: report.findings,
  };
}

async function repair(services: Services, target: HostTarget, request: DynamicInspectRequest): Promise<ExitCode> {
  const { directory, plan, writing } = request;
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const cluster = isKubeconfigGiven(request.cluster) ? clusterOnUse(services, request.cluster, { writes: reporter }) : null;
  try {
    const options = { catalogue: await loadCatalogue(), directory };
    return await runOnHosts(services, {
      targets: [target],
      cluster: (await cluster?.open()) ?? null,
      planHost: (context, run) => planWorkflow(repairWorkflow, context, options, run),
      plan,
      writing,
      reporter,
      warnings: [],
      dryRun: plan.dryRun,
      skipPhases: [],
    });
  } finally {
    await cluster?.close();
  }
}

const NAMES = { assigned: 'assigned', lastKnownGood: 'last known good' } as const;

function render(host: string, { reading, kubeletVersion }: ReadStore, report: StoreReport): string {
  const { unit } = reading;
  const age = report.assignedAgeSeconds === null ? '' : `, written ${formatAge(report.assignedAgeSeconds * 1000)} ago`;
  const lines = [
    `${host}: kubelet ${kubeletVersion}, store ${reading.directory}/store`,
    ...(unit === null ? [] : [`unit: ${unit.activeState} (${unit.subState}), ${unit.restarts} restarts, Restart=${unit.restartPolicy}`]),
    `assigned: ${describeMeta(report.assigned)}${age}`,
    `last known good: ${describeMeta(report.lastKnownGood)}`,
    `starts with: ${report.starts === 'assigned' || report.starts === 'lastKnownGood' ? NAMES[report.starts] : report.starts}`,
  ];
  const header = ['CHECKPOINT', 'VERSION', 'KEYS', 'USED AS'];
  const rows = reading.checkpoints.map(({ uid, resourceVersion, keys }) => [
    uid,
    resourceVersion,
    keys.join(',') || '-',
    usesOf(report, uid, resourceVersion)
      .map((name) => NAMES[name])
      .join(', ') || '-',
  ]);
  const left = reading.leftovers.map((path) => `left over: ${path}`);
  const findings = report.findings.map(findingLine);
  return joinLines([...lines, ...(rows.length === 0 ? [] : renderTable([header, ...rows])), ...left, ...findings]);
}

function usesOf({ assigned, lastKnownGood }: StoreReport, uid: string, resourceVersion: string): readonly MetaName[] {
  const metas = { assigned, lastKnownGood };
  return (['assigned', 'lastKnownGood'] as const).filter((name) => {
    const meta = metas[name];
    return meta.kind === 'source' && meta.identity.uid === uid && meta.identity.resourceVersion === resourceVersion;
  });
}

function describeMeta(meta: StoreReport['assigned']): string {
  if (meta.kind === 'source') return describeIdentity(meta.identity);
  return meta.kind === 'local' ? 'local configuration' : `corrupt: ${meta.why}`;
}

function document(host: string, { reading, kubeletVersion, nodeName }: ReadStore, report: StoreReport): object {
  const { unit } = reading;
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'NativeConfigStore',
    host,
    node: nodeName,
    kubeletVersion,
    directory: reading.directory,
    unit:
      unit === null
        ? null
        : { activeState: unit.activeState, subState: unit.subState, restarts: unit.restarts, restart: unit.restartPolicy },
    assigned: report.assigned,
    lastKnownGood: report.lastKnownGood,
    startsWith: report.starts,
    assignedAgeSeconds: report.assignedAgeSeconds,
    crashLoop: report.isLooping,
    checkpoints: checkpointDocuments(reading, report),
    leftovers: reading.leftovers,
    findings: report.findings.map(findingDocument),
  };
}

function checkpointDocuments({ checkpoints }: StoreReading, report: StoreReport): readonly object[] {
  return checkpoints.map((one) => ({ ...one, usedAs: usesOf(report, one.uid, one.resourceVersion) }));
}
