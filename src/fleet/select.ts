import { usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { matchPattern } from '../ssh/pattern.ts';
import type { ResolvedHost } from './model.ts';
import { expandRanges } from './range.ts';

export interface Selection {
  /** Names with `*`, `?` and ranges, or names of groups; a leading `!` excludes. Empty: all hosts. */
  readonly limit: readonly string[];
  /** Hosts in any of these groups. Empty: all hosts. */
  readonly groups: readonly string[];
}

type Selectable = Pick<ResolvedHost, 'name' | 'groups'>;

/**
 * Selects hosts, in file order.
 * @throws AppError USAGE for a pattern or group without a match, which is probably a typo
 */
export function selectHosts<H extends Selectable>(hosts: readonly H[], { limit, groups }: Selection): readonly H[] {
  const known = new Set(hosts.flatMap((host) => host.groups));
  for (const group of groups) if (!known.has(group)) throw nodes(`--group ${group}: no such group with hosts`, group, [...known]);
  const patterns = limit.map((text) => {
    const pattern = text.replace(/^!/, '');
    return { text, pattern, isLeftOut: text.startsWith('!'), means: hostMatcher(pattern) };
  });
  for (const { text, pattern, means } of patterns)
    if (!hosts.some(means)) throw nodes(`--limit ${text}: no such host or group`, pattern, [...hosts.map(({ name }) => name), ...known]);
  const desired = patterns.filter(({ isLeftOut }) => !isLeftOut);
  const selected = hosts.filter(
    (host) =>
      (groups.length === 0 || groups.some((group) => host.groups.includes(group))) &&
      (desired.length === 0 || desired.some(({ means }) => means(host))) &&
      !patterns.some(({ isLeftOut, means }) => isLeftOut && means(host)),
  );
  if (selected.length === 0) throw usageError('no host matches --limit and --group', 'List hosts and groups: kubeletadm fleet inventory');
  return selected;
}

/**
 * Returns a function that matches hosts by name or group. Ranges have the syntax of the file and of messages:
 * `edge-[001:020]`. A text with brackets that are not a range matches no host.
 */
export function hostMatcher(pattern: string): (host: Selectable) => boolean {
  const expansion = expandRanges(pattern);
  const texts = 'items' in expansion ? expansion.items.map(({ text }) => text) : [];
  const names = new Set(texts);
  const patterns = texts.filter((text) => /[*?]/.test(text));
  return ({ name, groups }) => names.has(name) || patterns.some((text) => matchPattern(name, text)) || groups.includes(pattern);
}

function nodes(message: string, name: string, known: readonly string[]) {
  const likely = closestName(name, known);
  return usageError(message, likely === null ? 'List hosts and groups: kubeletadm fleet inventory' : `Did you mean ${likely}?`);
}
