import { AppError, type Problem } from '../../src/base/errors.ts';
import type { SensitiveText } from '../../src/base/text/secret.ts';
import { type ReportModel, runReport, statusReport } from '../../src/fleet/report/report-model.ts';
import type { HostOutcome, HostStatus } from '../../src/fleet/run/fleet.ts';
import type { HostCertificate, HostStatusRow } from '../../src/fleet/use-cases/fleet-status.ts';
import type { HostChange } from '../../src/host/plan/change.ts';
import type { FieldChange } from '../../src/host/plan/impact.ts';
import { drainForecastWarning } from '../../src/maintenance/drain/drain-problems.ts';
import type { NodeForecast } from '../../src/maintenance/forecast/forecast.ts';
import { type TimedEvent, timelinesOfEvents } from './replay-run.ts';

export const STARTED = new Date('2030-01-01T00:00:00Z');
const DAY_MS = 86_400_000;

const FACTS = {
  operator: 'alice@laptop',
  commandLine: 'kubeletadm apply -f fleet.yaml --reason OPS-1',
  reason: 'OPS-1',
  plan: null,
  signer: null,
  exitCode: 0,
};
const HEAD = {
  subject: 'fleet.yaml',
  cluster: { server: 'https://10.0.0.1:6443', context: 'admin@shop' },
  facts: FACTS,
  startedAt: STARTED,
};
const RAISED: FieldChange = { field: 'maxPods', before: 110, after: 200, impact: 'safe' };

export interface PlannedHostInput {
  readonly status?: HostStatus;
  readonly fields?: readonly FieldChange[];
  readonly before?: string;
  readonly content?: string | SensitiveText;
  readonly warning?: string;
  readonly drain?: NodeForecast;
}

/** A host whose config.yaml is written. */
export function plannedHost(host: string, input: PlannedHostInput = {}): HostOutcome {
  const { status = 'pending', fields = [RAISED], before = 'maxPods: 110\n', content = 'maxPods: 200\n', warning, drain } = input;
  const change: HostChange = {
    kind: 'write-file',
    path: '/var/lib/kubelet/config.yaml',
    mode: 0o644,
    owner: 'root:root',
    content,
    action: 'update',
    before: { content: before, mode: 0o644, owner: 'root:root' },
    reason: 'its content differs',
    ...(fields.length === 0 ? {} : { impact: fields[0]?.impact ?? 'safe', fields }),
  };
  const forecast = drain === undefined ? null : drainForecastWarning(drain);
  const warnings = [
    ...(warning === undefined ? [] : [{ code: 'SOME_WARNING', message: warning }]),
    ...(forecast === null ? [] : [forecast]),
  ];
  const plan = { name: host, own: { node: host }, phases: [{ phase: 'kubelet-start', plan: { changes: [change] } }] };
  return { host, status, error: null, plan: { host: plan, warnings, refusals: [], ...(drain === undefined ? {} : { drain }) } };
}

/** A host without a plan. */
export function failedHost(host: string, status: HostStatus, problem: Omit<Problem, 'host'>): HostOutcome {
  return { host, status, plan: null, error: new AppError({ host, ...problem }) };
}

/** The report of a plan or a run. */
export function runModel(outcomes: readonly HostOutcome[], events: readonly TimedEvent[] = [], canary = 1): ReportModel {
  const problems = outcomes.flatMap(({ error }) => error?.problems ?? []);
  const nowMs = Math.max(1_000, ...events.map(({ atMs }) => atMs));
  return runReport({
    ...HEAD,
    progress: 'ended',
    hosts: outcomes.map(({ host }) => host),
    changing: [],
    plans: new Map(),
    gates: [],
    command: events.length === 0 ? 'plan' : 'apply',
    endedAt: new Date(STARTED.getTime() + nowMs),
    outcomes,
    failure: problems.length === 0 ? null : new AppError(problems, { exitCode: 4 }),
    timelines: timelinesOfEvents(
      events.toSorted((a, b) => a.atMs - b.atMs),
      { canary, nowMs },
    ),
  });
}

/** The events of a host that is changed in this time, with a restart after 400 ms. */
export function changeEvents(host: string, beganMs: number, endedMs: number, status: HostStatus = 'changed'): readonly TimedEvent[] {
  const reported = (atMs: number, code: string, data = {}): TimedEvent => ({
    kind: 'reported',
    host,
    atMs,
    event: { code, phase: 'kubelet-start', data },
  });
  return [
    { kind: 'inspecting', host, atMs: 0 },
    { kind: 'planned', host, atMs: Math.min(200, beganMs) },
    { kind: 'began', host, atMs: beganMs },
    reported(beganMs + 100, 'CHANGE_DONE', { kind: 'write-file' }),
    reported(beganMs + 400, 'CHANGE_DONE', { kind: 'restart-unit', unit: 'kubelet' }),
    ...(status === 'changed'
      ? [reported(endedMs - 200, 'COMMIT_VERIFIED'), reported(endedMs - 100, 'COMMIT_CONFIRMED')]
      : [reported(endedMs - 300, 'ROLLBACK_STARTED')]),
    { kind: 'ended', host, atMs: endedMs, status },
  ];
}

/** A healthy row of `fleet status`. */
export function statusRow(host: string, row: Partial<HostStatusRow> = {}): HostStatusRow {
  const known = {
    kubelet: 'v1.36.2',
    config: 'ce6acdbc92a2',
    health: 'ok',
    node: 'Ready',
    nodeName: host,
    drift: 'none',
    unconfirmed: null,
  };
  return { host, address: host, groups: [], reachable: true, source: { kind: 'file', dropIns: 0 }, ...known, ...row };
}

/** @param days until the certificate expires */
export function certificate(host: string, days: number, rest: Partial<HostCertificate> = {}): HostCertificate {
  const notAfter = new Date(STARTED.getTime() + days * DAY_MS);
  return { host, role: 'client', path: '/var/lib/kubelet/pki/kubelet-client-current.pem', notAfter, state: 'ok', notes: [], ...rest };
}

export function statusModel(rows: readonly HostStatusRow[], certificates: readonly HostCertificate[] = []): ReportModel {
  return statusReport({ ...HEAD, cluster: null, endedAt: STARTED, failure: null, rows, certificates });
}

/** Names and texts that would be markup, an attribute, or a template if a page did not escape them. */
export const INJECTIONS: readonly string[] = [
  '<script>window.injected = 1</script>',
  '"onmouseover="window.injected = 1" x="',
  "'onload='window.injected = 1",
  '</style><script>window.injected = 1</script>',
  '</title></svg><img src=x onerror="window.injected = 1">',
  '<!--',
  ']]>',
  '{{csp}}{{{script}}}',
  '&lt;b&gt;',
  '\u202egnp.exe\u0007',
];

/** A report of each command in which every text is hostile. */
export function hostileModels(): readonly ReportModel[] {
  const hosts = INJECTIONS.map((text, i) =>
    plannedHost(`${i}${text}`, {
      fields: [{ field: text, before: text, after: [text], impact: 'unsafe' }],
      before: `label: ${text}\n`,
      content: `label: ${text}${text}\n`,
      warning: text,
      status: 'changed',
    }),
  );
  const failed = INJECTIONS.map((text, i) =>
    failedHost(`f${i}${text}`, 'failed', {
      code: 'SOME_CODE',
      message: text,
      hint: text,
      path: text,
      position: { file: text, line: 1, column: 1 },
    }),
  );
  const events = [...hosts, ...failed].flatMap(({ host, status }, i) => changeEvents(host, i * 10, i * 10 + 5_000, status));
  const rows = INJECTIONS.map((text) =>
    statusRow(text, { kubelet: text, config: text, health: text, node: text, drift: text, source: { kind: 'unknown', why: text } }),
  );
  const certificates = INJECTIONS.map((text) => certificate(text, 10, { role: text, path: text, notes: [text] }));
  const named = (model: ReportModel): ReportModel => ({
    ...model,
    subject: INJECTIONS.join(''),
    facts: {
      ...FACTS,
      operator: INJECTIONS.join(''),
      commandLine: INJECTIONS.join(''),
      reason: INJECTIONS.join(''),
      signer: INJECTIONS.join(''),
    },
    cluster: { server: INJECTIONS.join(''), context: INJECTIONS.join('') },
  });
  return [runModel([...hosts, ...failed]), runModel([...hosts, ...failed], events), statusModel(rows, certificates)].map(named);
}

/** A secret in the content of a file. */
export const SECRET_TEXT = 'abcdef.0123456789abcdef';
