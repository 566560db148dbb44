import { type FlagEntry, formatMinor, NEWEST_MINOR } from '../../kubelet/catalogue.ts';
import type { ExplainOptions, FlagExplanation } from './explanation.ts';
import { periods } from './periods.ts';

export function explainFlag(entry: FlagEntry, { catalogue, minor }: ExplainOptions): FlagExplanation {
  const flag = catalogue.flag(entry.flag, minor);
  const last = entry.removedIn === null ? NEWEST_MINOR : entry.removedIn - 1;
  const fieldSince = Math.max(entry.fieldSince ?? 0, catalogue.fields.get(entry.field ?? '')?.minors[0] ?? 0);
  return {
    kind: 'Flag',
    name: entry.flag,
    kubernetesVersion: formatMinor(minor),
    known: flag !== null,
    type: entry.type,
    since: formatMinor(entry.since),
    removedIn: entry.removedIn === null ? null : formatMinor(entry.removedIn),
    default: flag?.default ?? entry.default,
    defaults: periods(entry.defaultByMinor ?? [{ from: entry.since, value: entry.default }], last, ({ value }) => value),
    field:
      entry.field === null
        ? null
        : { path: entry.field, since: formatMinor(fieldSince), known: catalogue.field(entry.field, minor) !== null && minor >= fieldSince },
    deprecated:
      entry.deprecatedSince === null && !entry.deprecated
        ? null
        : { since: entry.deprecatedSince === null ? null : formatMinor(entry.deprecatedSince), how: entry.deprecation ?? null },
    origin: entry.group,
  };
}
