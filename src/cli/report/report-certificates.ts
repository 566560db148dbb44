import { groupBy } from '../../base/group-by.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { HostCertificate } from '../../fleet/use-cases/fleet-status.ts';
import type { Tag } from './report-timeline.ts';
import { dateText, hostCount } from './report-words.ts';

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;

type State = 'expired' | 'soon' | 'ok';

/** The expiration dates of all certificates, equal ones in one row. */
export function certificatesView(certificates: readonly HostCertificate[], now: Date): object {
  const hosts = new Set(certificates.map(({ host }) => host)).size;
  const bad = certificates.filter((each) => stateOf(each, now) !== 'ok').length;
  return {
    summary: `${certificates.length} certificates of ${hostCount(hosts)}; ${bad} of them expired, not valid or about to expire within ${SOON_DAYS} days.`,
    dates: datesOf(certificates, now),
  };
}

function stateOf({ notAfter, state }: HostCertificate, now: Date): State {
  if (notAfter === null || notAfter < now || state === 'error') return 'expired';
  return notAfter.getTime() - now.getTime() < SOON_DAYS * DAY_MS ? 'soon' : 'ok';
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
