import type { ExitCode } from '../base/errors.ts';
import { formatAge } from '../base/text/age.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type MetaName, type ObservedStore, reportStore, type StoreReport } from '../dynamic/native/native-report.ts';
import type { ReadStore } from '../dynamic/workflows/read-store.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { type InspectedHost, type InspectRequest, inspectNodeConfig, openRepair } from '../fleet/use-cases/inspect-node-config.ts';
import type { RunSettings } from '../host/run-settings.ts';
import { describeIdentity } from '../kubelet/layers/config-source.ts';
import {
  assignerLines,
  assignerMember,
  findingDocument,
  findingLine,
  hostText,
  type Inspected,
  inspectedAgent,
} from './dynamic-inspect-agent.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

export interface DynamicInspectRequest extends InspectRequest {
  readonly repair: boolean;
  readonly plan: PlanRequest;
  readonly run: RunSettings;
  readonly writing: WritingRequest;
}

/** `dynamic inspect HOST [--repair]`: exit code 1 when something is broken. */
export async function runDynamicInspect(services: Services, request: DynamicInspectRequest): Promise<ExitCode> {
  const { plan } = request;
  const { format } = plan;
  if (request.repair)
    return runOnHosts(services, request, {
      title: 'dynamic inspect --repair',
      open: (scope) => openRepair(services, request, scope),
    });
  const found = await inspectNodeConfig(services, request);
  const { shown, findings } = 'agent' in found ? inspectedAgent(found, found.agent, format) : inspectedStore(found, found.store, format);
  services.output.stdout(shown);
  return findings.some(({ severity }) => severity !== 'warning') ? 1 : 0;
}

function inspectedStore(inspected: InspectedHost, found: ReadStore, format: DocumentFormat): Inspected {
  const report = reportStore(found.reading);
  return {
    shown: format === 'text' ? render(inspected, found, report) : renderDocument(document(inspected, found, report), format),
    findings: report.findings,
  };
}

const NAMES = { assigned: 'assigned', lastKnownGood: 'last known good' } as const;

function render({ host, assigner }: InspectedHost, { reading, kubeletVersion, nodeName }: ReadStore, report: StoreReport): string {
  const { unit } = reading;
  const age = report.assignedAgeSeconds === null ? '' : `, written ${formatAge(report.assignedAgeSeconds * 1000)} ago`;
  const lines = [
    `${hostText(host, nodeName)}: kubelet ${kubeletVersion}, store ${reading.directory}/store`,
    ...(unit === null ? [] : [`unit: ${unit.activeState} (${unit.subState}), ${unit.restarts} restarts, Restart=${unit.restartPolicy}`]),
    `assigned: ${describeMeta(report.assigned)}${age}`,
    ...assignerLines(assigner),
    `last known good: ${describeMeta(report.lastKnownGood)}`,
    `starts with: ${report.starts === 'assigned' || report.starts === 'lastKnownGood' ? NAMES[report.starts] : report.starts}`,
  ];
  const header = ['CHECKPOINT', 'VERSION', 'KEYS', 'USED AS'];
  const rows = reading.checkpoints.map(({ uid, resourceVersion, keys }) => [
    uid,
    resourceVersion,
    keys.join(',') || '-',
    nativeCheckpointUses(report, uid, resourceVersion)
      .map((name) => NAMES[name])
      .join(', ') || '-',
  ]);
  const left = reading.leftovers.map((path) => `left over: ${path}`);
  const findings = report.findings.map(findingLine);
  return joinLines([...lines, ...(rows.length === 0 ? [] : renderTable([header, ...rows])), ...left, ...findings]);
}

function nativeCheckpointUses({ assigned, lastKnownGood }: StoreReport, uid: string, resourceVersion: string): readonly MetaName[] {
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

function document({ host, assigner }: InspectedHost, { reading, kubeletVersion, nodeName }: ReadStore, report: StoreReport): object {
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
    ...assignerMember(assigner),
    lastKnownGood: report.lastKnownGood,
    startsWith: report.starts,
    assignedAgeSeconds: report.assignedAgeSeconds,
    crashLoop: report.isLooping,
    checkpoints: checkpointDocuments(reading, report),
    leftovers: reading.leftovers,
    findings: report.findings.map(findingDocument),
  };
}

function checkpointDocuments({ checkpoints }: ObservedStore, report: StoreReport): readonly object[] {
  return checkpoints.map((one) => ({ ...one, usedAs: nativeCheckpointUses(report, one.uid, one.resourceVersion) }));
}
