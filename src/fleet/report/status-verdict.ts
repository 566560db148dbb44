import type { AppError, Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { HostCertificate, HostStatusRow } from '../use-cases/fleet-status.ts';
import type { Verdict } from './run-verdict.ts';

/** A problem that several hosts may share; without a host: of the run. */
export interface SharedProblem {
  readonly severity: 'error' | 'warning';
  readonly hosts: readonly string[];
  /** `code`: null for a state that no command reports as a problem. */
  readonly problem: Omit<Problem, 'code' | 'host'> & { readonly code: string | null };
}

const DAY_MS = 86_400_000;
/** A certificate that expires earlier needs attention. */
export const SOON_DAYS = 30;

interface KnownStatus {
  readonly rows: readonly HostStatusRow[];
  readonly certificates: readonly HostCertificate[];
  readonly now: Date;
}

/** `expired` also if a certificate is not valid for another reason. */
export function certificateState({ notAfter, state }: HostCertificate, now: Date): 'expired' | 'soon' | 'ok' {
  if (notAfter === null || notAfter < now || state === 'error') return 'expired';
  return notAfter.getTime() - now.getTime() < SOON_DAYS * DAY_MS ? 'soon' : 'ok';
}

/** How bad a value of a row is; null: not bad, or unknown. */
export const STATUS_LEVELS: Readonly<Record<'reachable' | 'health' | 'node' | 'drift', (row: HostStatusRow) => StatusLevel>> = {
  reachable: ({ reachable }) => (reachable ? null : 'error'),
  health: ({ health }) => (health === null || health === 'ok' ? null : /^(?:restarted|unknown)/.test(health) ? 'warning' : 'error'),
  node: ({ node }) => (node === null || node === 'Ready' ? null : node === 'none' ? 'warning' : 'error'),
  drift: ({ drift }) => (drift === null || drift === 'none' ? null : 'warning'),
};

type StatusLevel = 'error' | 'warning' | null;

/** The states of hosts that need attention; unreachable hosts are problems of the command. */
export function statusProblems({ rows, certificates, now }: KnownStatus): readonly SharedProblem[] {
  const found = rows.flatMap((row) => rowProblems(row).map((problem) => ({ ...problem, host: row.host })));
  const dated = certificates.flatMap((certificate) => certificateProblems(certificate, now));
  const shared = groupBy([...found, ...dated], ({ severity, message }) => `${severity}\0${message}`);
  return [...shared.values()].map((same) => {
    const [{ severity, message, hint }] = same as [Found];
    return { severity, hosts: [...new Set(same.map(({ host }) => host))], problem: { code: null, message, hint } };
  });
}

interface Found {
  readonly host: string;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  readonly hint: string;
}

function rowProblems(row: HostStatusRow): readonly Omit<Found, 'host'>[] {
  const { health, node, drift, unconfirmed } = row;
  const found = (severity: StatusLevel, message: string, hint: string): readonly Omit<Found, 'host'>[] =>
    severity === null ? [] : [{ severity, message, hint }];
  const isJoined = node !== 'none';
  return [
    ...(isJoined
      ? found(STATUS_LEVELS.node(row), `the Node is ${node}`, 'To see its conditions, run kubectl describe node NODE')
      : found('warning', 'the cluster has no Node of this host', 'To join the host, run kubeletadm apply')),
    ...found(STATUS_LEVELS.health(row), `the kubelet is not healthy: ${health}`, 'On the host, run journalctl -u kubelet'),
    ...(unconfirmed !== null
      ? found(
          'warning',
          `a change of ${unconfirmed.owner} is not confirmed, and rolls back at ${unconfirmed.revertsAt}`,
          'To keep it, run kubeletadm fleet confirm',
        )
      : isJoined
        ? found(STATUS_LEVELS.drift(row), `drift from the fleet file: ${drift}`, 'To see the fields, run kubeletadm fleet drift')
        : []),
  ];
}

function certificateProblems(certificate: HostCertificate, now: Date): readonly Found[] {
  const { host, role, notAfter, notes } = certificate;
  const state = certificateState(certificate, now);
  if (state === 'ok') return [];
  const hint = 'To see all certificates of a host, run kubeletadm certs check --host HOST';
  if (state === 'soon') return [{ host, severity: 'warning', message: `the certificate ${role} expires within ${SOON_DAYS} days`, hint }];
  const why = notAfter !== null && notAfter < now ? 'has expired' : `is not valid${notes.length === 0 ? '' : `: ${notes.join('; ')}`}`;
  return [{ host, severity: 'error', message: `the certificate ${role} ${why}`, hint }];
}

/** The verdict about the hosts of a fleet. */
export function statusVerdict({ rows, certificates, now }: KnownStatus, failure: AppError | null): Verdict {
  const count = (number: number, one: string, many: string): readonly string[] =>
    number === 0 ? [] : [`${number} ${number === 1 ? one : many}`];
  const of = (level: (row: HostStatusRow) => string | null, wanted: 'error' | 'warning'): number =>
    rows.filter((row) => level(row) === wanted).length;
  const seen = rows.filter(({ reachable }) => reachable);
  const states = certificates.map((each) => certificateState(each, now));
  const errors = [
    ...count(of(STATUS_LEVELS.reachable, 'error'), 'host unreachable', 'hosts unreachable'),
    ...count(of(STATUS_LEVELS.node, 'error'), 'Node NotReady', 'Nodes NotReady'),
    ...count(of(STATUS_LEVELS.health, 'error'), 'kubelet not healthy', 'kubelets not healthy'),
    ...count(states.filter((state) => state === 'expired').length, 'certificate expired or not valid', 'certificates expired or not valid'),
  ];
  const warnings = [
    ...count(of(STATUS_LEVELS.node, 'warning'), 'host not joined', 'hosts not joined'),
    ...count(of(STATUS_LEVELS.health, 'warning'), 'kubelet restarted recently', 'kubelets restarted recently'),
    ...count(
      states.filter((state) => state === 'soon').length,
      `certificate expires within ${SOON_DAYS} days`,
      `certificates expire within ${SOON_DAYS} days`,
    ),
    ...count(of(STATUS_LEVELS.drift, 'warning'), 'host differs from the fleet file', 'hosts differ from the fleet file'),
    ...count(seen.filter(({ node }) => node === null).length, 'Node unknown', 'Nodes unknown'),
    ...count(
      seen.filter(({ drift }) => drift === null).length,
      'host not compared with the fleet file',
      'hosts not compared with the fleet file',
    ),
  ];
  const hosts = `${rows.length} ${rows.length === 1 ? 'host' : 'hosts'}`;
  if (rows.length === 0 && failure !== null) return { level: 'error', text: `Failed: ${failure.problems[0]?.message ?? 'unknown error'}.` };
  if (errors.length + warnings.length === 0) return { level: 'ok', text: `${hosts}: all reachable, Ready and as the fleet file declares.` };
  return { level: errors.length > 0 ? 'error' : 'warning', text: `${hosts}: ${[...errors, ...warnings].join(', ')}.` };
}
