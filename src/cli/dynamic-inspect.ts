import { describeIdentity, sameSource } from '../core/dynamic/config-source.ts';
import { type MetaName, planStoreRepair, reportStore, type StoreReading, type StoreReport } from '../core/dynamic/native-report.ts';
import { AppError, type ExitCode, formatProblem, usageError } from '../core/errors.ts';
import { loadCatalogue } from '../core/kubelet/catalogue.ts';
import { planDocument, planIsEmpty } from '../core/plan/document.ts';
import { formatAge } from '../core/text/age.ts';
import { renderTable } from '../core/text/table.ts';
import { applyHostChanges } from '../engine/apply.ts';
import { waitForHealthyKubelet } from '../engine/kubelet-health.ts';
import type { Host } from '../ports/host.ts';
import type { Services } from '../ports/services.ts';
import { readNodes } from '../workflows/dynamic/read-nodes.ts';
import { type ReadStore, readStore } from '../workflows/dynamic/read-store.ts';
import { clusterOnUse } from './cluster-on-use.ts';
import type { CommandOptions } from './program.ts';
import { flagText, readHostTarget, verbosityOf } from './read-options.ts';
import { formatOf, renderDocument } from './show-document.ts';
import { renderPlan } from './show-plan.ts';

const PHASE = 'dynamic-repair';
const SETTLE_MS = 15_000;

/** `dynamic inspect HOST [--repair]`: exit code 1 when something is broken. */
export async function runDynamicInspect(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const [address, ...more] = args;
  if (address === undefined || more.length > 0) throw usageError('one host is inspected at a time', 'Name it; localhost is this machine');
  if (options.repair !== true && options.dryRun === true)
    throw usageError('--dry-run is for --repair', 'Without --repair nothing is changed');
  const catalogue = await loadCatalogue();
  const host = await services.connectHost(await readHostTarget(services, address, options));
  try {
    const directory = flagText(options, 'dynamicConfigDir') ?? null;
    const found = await readStore(host, { catalogue, directory, signal: services.signal });
    const report = reportStore(found.reading);
    if (options.repair === true) return await repair(services, host, { ...found, report }, options);
    const format = formatOf(options);
    services.output.stdout(
      format === 'text' ? render(host.name, found, report) : renderDocument(document(host.name, found, report), format),
    );
    return report.findings.some(({ severity }) => severity !== 'warning') ? 1 : 0;
  } finally {
    await host.close();
  }
}

interface Found extends ReadStore {
  readonly report: StoreReport;
}

async function repair(services: Services, host: Host, found: Found, options: CommandOptions): Promise<ExitCode> {
  const changes = planStoreRepair(found.reading, found.report);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const format = formatOf(options);
  const plan = changes.length === 0 ? { changes, noop: 'nothing is broken there' } : { changes };
  const planned = planDocument([{ name: host.name, phases: [{ phase: PHASE, plan }] }], []);
  if (options.dryRun === true) {
    services.output.stdout(renderPlan(planned, format, services.output.colour));
    return options.exitCode === true && !planIsEmpty(planned) ? 6 : 0;
  }
  if (changes.length === 0) {
    reporter.report({ level: 'info', code: 'DYNAMIC_REPAIRED', host: host.name, message: 'nothing to do: nothing is broken there' });
    return 0;
  }
  await refuseComeback(services, host, found, options);
  const context = { host, clock: services.clock, reporter, signal: services.signal, cluster: null };
  await applyHostChanges(host, changes, { reporter, phase: PHASE, signal: services.signal });
  await waitForHealthyKubelet(context, PHASE, { url: null, timeoutMs: 60_000 });
  // By then it has read its assignment, and come back from that if it took it.
  await services.clock.sleep(SETTLE_MS, services.signal);
  const after = await readStore(host, {
    catalogue: await loadCatalogue(),
    directory: found.reading.directory,
    journalSeconds: SETTLE_MS / 1000,
    signal: services.signal,
  });
  const broken = reportStore(after.reading).findings.filter(({ severity }) => severity !== 'warning');
  if (broken.length > 0) throw new AppError(broken.map((finding) => ({ host: host.name, ...finding })));
  const message = 'the kubelet is back; dynamic status shows what it makes of its assignment';
  reporter.report({ level: 'info', code: 'DYNAMIC_REPAIRED', host: host.name, message });
  return 0;
}

/** A kubelet reads its assignment ten seconds after it is started: it must not be what it died of. */
async function refuseComeback(services: Services, host: Host, { report, nodeName }: Found, options: CommandOptions): Promise<void> {
  const { assigned } = report;
  if (assigned.kind !== 'source' || report.starts !== 'assigned') return;
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  if (flagText(options, 'kubeconfig') === undefined || nodeName === null) {
    const message = `make sure that the Node is not assigned ${describeIdentity(assigned.identity)} any more, or the kubelet takes it again in ten seconds (--kubeconfig looks)`;
    reporter.report({ level: 'warning', code: 'DYNAMIC_STILL_ASSIGNED', host: host.name, message });
    return;
  }
  const cluster = clusterOnUse(services, options);
  try {
    const [node] = await readNodes(await cluster.open(), [nodeName], 'native');
    if (node === undefined || !sameSource(node.source.source, assigned.identity)) return;
    const message = `Node ${nodeName} is still assigned ${describeIdentity(assigned.identity)}: the kubelet would take it again in ten seconds`;
    const mend = `Run dynamic reset ${nodeName} --wait none, or assign another, first`;
    throw new AppError({ host: host.name, code: 'DYNAMIC_STILL_ASSIGNED', message, mend }, { exitCode: 3 });
  } finally {
    await cluster.close();
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
  const findings = report.findings.map((finding) => `${finding.severity === 'warning' ? 'warning: ' : ''}${formatProblem(finding)}`);
  return `${[...lines, ...(rows.length === 0 ? [] : renderTable([header, ...rows])), ...left, ...findings].join('\n')}\n`;
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
    findings: report.findings.map(({ code, message, mend, severity }) => ({
      code,
      severity: severity ?? 'error',
      message,
      ...(mend ? { mend } : {}),
    })),
  };
}

function checkpointDocuments({ checkpoints }: StoreReading, report: StoreReport): readonly object[] {
  return checkpoints.map((one) => ({ ...one, usedAs: usesOf(report, one.uid, one.resourceVersion) }));
}
