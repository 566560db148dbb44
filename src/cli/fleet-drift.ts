import { type ExitCode, formatProblem, type Problem } from '../base/errors.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type Drift, hasDrift } from '../fleet/drift/drift.ts';
import type { HostOutcome } from '../fleet/run/fleet.ts';
import { fleetDrift, type HostDrift } from '../fleet/use-cases/fleet-drift.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { fleetFileOf } from '../fleet/use-cases/load-fleet.ts';
import { foldedLines, reasonOf, uncheckedLines } from './fleet-report.ts';
import { type Annotation, type JUnitCase, renderAnnotations, renderJUnit } from './output/ci-formats.ts';
import { nodeColumn } from './output/node-column.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderDocument } from './output/show-document.ts';
import type { CI_FORMATS } from './output-options.ts';
import { watchRun } from './watch-run.ts';

export interface FleetDriftRequest extends FleetRunRequest {
  readonly output: { readonly format: ReadFormat | (typeof CI_FORMATS)[number]; readonly verbosity: number };
  /** Show the changes that apply would make. */
  readonly showsDiff: boolean;
  /** Exit code 6 if a host has drifted. */
  readonly failsIfDrifted: boolean;
}

/** `fleet drift`: reports hosts that differ from the fleet file. */
export async function runFleetDrift(services: Services, request: FleetDriftRequest): Promise<ExitCode> {
  const { output, showsDiff, failsIfDrifted } = request;
  const watch = watchRun(services, { format: 'text', verbosity: output.verbosity }, { title: 'fleet drift', reads: true });
  const verbosity = output.format === 'text' ? output.verbosity : 1;
  const warning = (problem: Problem): void => services.output.stderr(`warning: ${formatProblem(problem)}\n`);
  const { outcomes, drifts, failure } = await fleetDrift(services, request, { ...watch, verbosity, warning }).finally(() => watch.close());
  const { format } = output;
  if (format === 'junit') services.output.stdout(renderJUnit('kubeletadm fleet drift', testCases(outcomes, drifts)));
  else if (format === 'github') services.output.stdout(renderAnnotations(annotations(testCases(outcomes, drifts), request.file)));
  else if (format !== 'text') services.output.stdout(renderDocument(documentOf(outcomes, drifts), format));
  else {
    const diff = showsDiff ? foldedLines(outcomes, { verbosity: output.verbosity, showsDiff }) : [];
    const lines = drifts.length === 0 ? noDriftLines(outcomes) : [...tableOf(drifts), ...uncheckedLines(outcomes)];
    services.output.stdout(joinLines([...lines, ...diff]));
  }
  if (failure !== null) throw failure;
  return drifts.length > 0 && failsIfDrifted ? 6 : 0;
}

/** The summary claims nothing about unchecked hosts, and nothing at all when no host was checked. */
function noDriftLines(outcomes: readonly HostOutcome[]): readonly string[] {
  const unchecked = uncheckedLines(outcomes);
  const checked = outcomes.filter(({ plan }) => plan !== null).length;
  if (checked === 0) return unchecked;
  if (unchecked.length === 0) return ['No drift.'];
  return [`No drift on the ${checked === 1 ? '1 host' : `${checked} hosts`} that answered; ${unchecked.join('; ')}`];
}

/** Hosts with the same drift in one line. */
function tableOf(drifts: readonly HostDrift[]): readonly string[] {
  const rows = new Map<string, { readonly hosts: string[]; readonly one: Drift }>();
  for (const { host, drift } of drifts)
    for (const one of drift) {
      const key = JSON.stringify(one);
      const row = rows.get(key);
      if (row === undefined) rows.set(key, { hosts: [host], one });
      else row.hosts.push(host);
    }
  const node = nodeColumn(drifts);
  const lines = [...rows.values()].map(({ hosts, one }) => [namesText(hosts), ...node.cells(...hosts), one.what, one.why]);
  return renderTable([['HOSTS', ...node.header, 'WHAT', 'DRIFT'], ...lines]);
}

/** A test case for each host, which fails if the host has drifted. */
function testCases(outcomes: readonly HostOutcome[], drifts: readonly HostDrift[]): readonly JUnitCase[] {
  return outcomes.map((outcome) => {
    const drift = drifts.find(({ host }) => host === outcome.host)?.drift ?? [];
    const failures = drift.map(({ what, why }) => ({ type: 'drift', message: `${what}: ${why}` }));
    return { name: outcome.host, failures, ...(outcome.plan === null ? { error: reasonOf(outcome) } : {}) };
  });
}

function annotations(cases: readonly JUnitCase[], file: string | undefined): readonly Annotation[] {
  const place = { severity: 'error', file: fleetFileOf(file) } as const;
  return cases.flatMap(({ name, failures, error }) => [
    ...failures.map(({ message }) => ({ ...place, title: `${name} drifted`, message })),
    ...(error === undefined ? [] : [{ ...place, title: `${name} was not checked`, message: error }]),
  ]);
}

function documentOf(outcomes: readonly HostOutcome[], drifts: readonly HostDrift[]): object {
  const byHost = new Map(drifts.map(({ host, drift }) => [host, drift]));
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'FleetDrift',
    hosts: outcomes.map((outcome) => {
      const drift = byHost.get(outcome.host) ?? [];
      const isDrifted = outcome.status === 'pending' || (outcome.status === 'unchanged' && (hasDrift(outcome) || drift.length > 0));
      return {
        name: outcome.host,
        status: isDrifted ? 'drifted' : outcome.status,
        // Null: unknown.
        drift: outcome.plan === null ? null : drift,
        ...(outcome.plan === null ? { reason: reasonOf(outcome) } : {}),
      };
    }),
  };
}
