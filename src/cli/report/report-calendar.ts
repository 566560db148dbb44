import { groupBy } from '../../base/group-by.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { HostCertificate } from '../../fleet/use-cases/fleet-status.ts';
import type { Tag } from './report-timeline.ts';
import { dateText, hostCount } from './report-words.ts';

const DAY_MS = 86_400_000;
/** Certificates of kubelets and of kubeadm are valid for one year; CAs, which are valid longer, are counted next to the axis. */
const SHOWN_MONTHS = 13;
const SHOWN_DAYS = (SHOWN_MONTHS * 365) / 12;
const SOON_DAYS = 30;
const WIDTH = 1000;

const STATES = { expired: 'expired, not readable or not valid', soon: `expires within ${SOON_DAYS} days`, ok: 'valid' } as const;
type State = keyof typeof STATES;

/** The expiration dates of all certificates on one axis, and as a table. */
export function calendarOf(certificates: readonly HostCertificate[], now: Date): object {
  const states = new Set(certificates.map((each) => stateOf(each, now)));
  const hosts = new Set(certificates.map(({ host }) => host)).size;
  const bad = certificates.filter((each) => stateOf(each, now) !== 'ok').length;
  return {
    summary: `${certificates.length} certificates of ${hostCount(hosts)}; ${bad} of them expired, not valid or about to expire within ${SOON_DAYS} days.`,
    legend: (Object.keys(STATES) as State[]).filter((state) => states.has(state)).map((state) => ({ state, words: STATES[state] })),
    ticks: Array.from({ length: SHOWN_MONTHS }, (_, month) => (month === 0 ? 'now' : month % 3 === 0 ? `${month} mo` : '')),
    later: 'later',
    roles: [...groupBy(certificates, ({ role }) => role)].map(([role, own]) => roleView(role, own, now)),
    dates: datesOf(certificates, now),
  };
}

function stateOf({ notAfter, state }: HostCertificate, now: Date): State {
  if (notAfter === null || notAfter < now || state === 'error') return 'expired';
  return notAfter.getTime() - now.getTime() < SOON_DAYS * DAY_MS ? 'soon' : 'ok';
}

/** One mark per day; its height shows the number of certificates. */
function roleView(role: string, certificates: readonly HostCertificate[], now: Date): object {
  const days = [...groupBy(certificates, (each) => dayOf(each, now))];
  const shown = days.filter(([day]) => day <= SHOWN_DAYS);
  const later = days.reduce((sum, [day, own]) => (day <= SHOWN_DAYS ? sum : sum + own.length), 0);
  const most = Math.max(1, ...shown.map(([, own]) => own.length));
  return {
    role,
    words: `${role}: ${certificates.length} certificates, the first expires ${firstDate(certificates)}`,
    marks: shown.map(([day, own]) => {
      const height = Math.round(3 + (7 * own.length) / most);
      const states = new Set(own.map((each) => stateOf(each, now)));
      const state = states.has('expired') ? 'expired' : states.has('soon') ? 'soon' : 'ok';
      return { state, x: Math.round((day / SHOWN_DAYS) * (WIDTH - 3)), y: 10 - height, height };
    }),
    later: later === 0 ? '' : String(later),
  };
}

/** Days until a certificate expires; 0: expired, or not readable. */
function dayOf({ notAfter }: HostCertificate, now: Date): number {
  return notAfter === null ? 0 : Math.max(0, Math.floor((notAfter.getTime() - now.getTime()) / DAY_MS));
}

function firstDate(certificates: readonly HostCertificate[]): string {
  const times = certificates.flatMap(({ notAfter }) => (notAfter === null ? [] : [notAfter.getTime()]));
  return times.length === 0 ? 'unknown' : dateText(new Date(Math.min(...times)));
}

function datesOf(certificates: readonly HostCertificate[], now: Date): readonly object[] {
  const dateOf = ({ notAfter }: HostCertificate): string => (notAfter === null ? 'unknown' : dateText(notAfter));
  const keyOf = (each: HostCertificate): string => JSON.stringify([dateOf(each), each.role, stateOf(each, now), each.notes]);
  return [...groupBy(certificates, keyOf).values()].map((same) => {
    const [first] = same as [HostCertificate];
    return {
      date: dateOf(first),
      role: first.role,
      tag: TAGS[stateOf(first, now)],
      hosts: namesText(same.map(({ host }) => host)),
      notes: first.notes.join('; '),
    };
  });
}

const TAGS: Readonly<Record<State, Tag>> = {
  expired: { kind: 'error', text: 'problem' },
  soon: { kind: 'warning', text: `within ${SOON_DAYS} days` },
  ok: { kind: 'info', text: 'valid' },
};
